"""Defines the errors of a connector: three kinds, by who can fix them.

Any other exception that leaves a task counts as fatal, as in Kafka Connect.
"""


class ConnectorError(Exception):
    """The task fails, and its trace is shown until a user restarts it.

    The text goes to logs and pages, so it must not contain secrets. What may repeat a record, such
    as the answer of a server, is `about_record`: it follows the text, and only users who may read
    the record's topic see it.
    """

    def __init__(self, text: str = "", *, about_record: str | None = None) -> None:
        super().__init__(f"{text}{about_record or ''}")
        self.text = text
        self.about_record = about_record


class RetriableError(ConnectorError):
    """The same call may succeed later: it is repeated with growing waits.

    A sink gets the same batch again, a source is polled again from its last offset.
    """

    def __init__(
        self, text: str, *, wait_s: float | None = None, about_record: str | None = None
    ) -> None:
        super().__init__(text, about_record=about_record)
        # The requested wait, as in `Retry-After`; None for the framework's own waits.
        self.wait_s = wait_s


class RecordError(ConnectorError):
    """One record is refused, but not the others of its batch.

    `index` is its place in the batch. If the connector tolerates errors, the record goes to the
    dead letters and the batch is put again without it; otherwise the task fails. Without an
    `about_record`, the whole text counts as that.
    """

    def __init__(self, text: str, *, index: int, about_record: str | None = None) -> None:
        super().__init__(text, about_record=about_record)
        self.index = index


class DataError(ConnectorError):
    """A value does not fit its schema, or cannot be converted; its text is about the record."""


class ConfigError(ConnectorError):
    """A config cannot work, for a reason that the checks of single keys do not find."""
