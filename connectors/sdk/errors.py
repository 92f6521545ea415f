"""Defines the errors of a connector: three kinds, by who can fix them.

Any other exception that leaves a task counts as fatal, as in Kafka Connect.
"""


class ConnectorError(Exception):
    """The task fails, and its trace is shown until a user restarts it.

    The text goes to logs and pages, so it must not contain secrets.
    """


class RetriableError(ConnectorError):
    """The same call may succeed later: it is repeated with growing waits.

    A sink gets the same batch again, a source is polled again from its last offset.
    """

    def __init__(self, text: str, *, wait_s: float | None = None) -> None:
        super().__init__(text)
        # The requested wait, as in `Retry-After`; None for the framework's own waits.
        self.wait_s = wait_s


class RecordError(ConnectorError):
    """One record is refused, but not the others of its batch.

    `index` is its place in the batch. If the connector tolerates errors, the record goes to the
    dead letters and the batch is put again without it; otherwise the task fails.
    """

    def __init__(self, text: str, *, index: int) -> None:
        super().__init__(text)
        self.index = index


class DataError(ConnectorError):
    """A value does not fit its schema, or cannot be converted."""


class ConfigError(ConnectorError):
    """A config cannot work, for a reason that the checks of single keys do not find."""
