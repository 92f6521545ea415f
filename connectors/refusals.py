"""Defines four reasons to refuse a change of a connector, by what the caller can do."""

from connectors.validation import Validation


class NotServed(Exception):
    """The base class. The text is for the caller."""


class NotFound(NotServed):
    """The connector or the task does not exist."""


class Conflict(NotServed):
    """The connector exists already, or changed at the same moment."""


class Refused(NotServed):
    """The caller lacks the right that the text names."""


class Unfit(NotServed):
    """The request cannot be fulfilled now, or with these values; the text says what to do."""


class Invalid(Unfit):
    """An invalid config, with the errors of Kafka Connect."""

    def __init__(self, validation: Validation) -> None:
        errors = validation.errors
        super().__init__(
            "Connector configuration is invalid and contains the following"
            f" {len(errors)} error(s):\n" + "\n".join(errors) + "\nYou can also find the above list"
            " of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
        )
        self.validation = validation
