"""How a connector says what went wrong: three kinds, by who must act.

Any other exception that leaves a task counts as fatal, as in Kafka Connect.
"""


class ConnectorError(Exception):
    """A task cannot go on: it fails, and its trace is shown until somebody restarts it.

    The text goes to logs and pages, so it holds no secret.
    """


class RetriableError(ConnectorError):
    """The same call may succeed later: it is repeated with growing waits.

    A sink is given the same batch again, a source is polled again from its last offset.
    """

    def __init__(self, text: str, *, wait_s: float | None = None) -> None:
        super().__init__(text)
        # What the other side asked for, as `Retry-After`; None for the framework's own waits.
        self.wait_s = wait_s


class RecordError(ConnectorError):
    """One record cannot be taken; the others of its batch can.

    `index` is its place in the batch. Where the connector tolerates errors, the record goes to the
    dead letters and the batch is given again without it; else the task fails.
    """

    def __init__(self, text: str, *, index: int) -> None:
        super().__init__(text)
        self.index = index


class DataError(ConnectorError):
    """A value does not fit its schema, or cannot be converted."""


class ConfigError(ConnectorError):
    """A config cannot work, which was found out only beyond the checks of single keys."""
