"""Counts the consecutive failures of a job, except other failures that waiting may mend."""

from typing import Final, Self

from connectors.sdk.connector import JobContext
from connectors.sdk.errors import RetriableError

# One more failure than this ends the task.
MAX_TRIES: Final = 5
# By job, in the only process of a worker that uses Spark.
FAILED: Final[dict[str, int]] = {}


class Failed(RetriableError):
    """A failure that counts: several in a row end the task."""


class Tries:
    def __init__(self, job: str, retries: int) -> None:
        self._job = job
        # The framework counts every failure, and starts at zero when the task restarts.
        self.failed = min(FAILED.get(job, 0), retries)

    @classmethod
    def of(cls, context: JobContext) -> Self:
        return cls(f"{context.connector}/{context.task}", context.retries)

    @property
    def are_used_up(self) -> bool:
        return self.failed >= MAX_TRIES

    def count(self) -> None:
        FAILED[self._job] = self.failed + 1

    def succeed(self) -> None:
        FAILED.pop(self._job, None)
