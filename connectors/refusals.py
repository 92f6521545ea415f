"""Why a change of a connector is not made: four kinds, by what the caller can do about it."""

from connectors.validation import Validation


class NotServed(Exception):
    """What all of these are. The text is for the caller."""


class NotFound(NotServed):
    """There is no such connector, or task."""


class Conflict(NotServed):
    """The connector is there already, or changed at the same moment."""


class Refused(NotServed):
    """The caller lacks a right, which the text names."""


class Unfit(NotServed):
    """What is asked for cannot be done now, or with these values; the text says what to do."""


class Invalid(Unfit):
    """A config that would not work, in the words of Kafka Connect."""

    def __init__(self, validation: Validation) -> None:
        errors = validation.errors
        super().__init__(
            "Connector configuration is invalid and contains the following"
            f" {len(errors)} error(s):\n" + "\n".join(errors) + "\nYou can also find the above list"
            " of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
        )
        self.validation = validation
