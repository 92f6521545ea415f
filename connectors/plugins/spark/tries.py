"""How often a job has failed in a row, without failures of others that waiting may mend."""

from typing import Final, Self

from connectors.sdk.connector import JobContext
from connectors.sdk.errors import RetriableError

# The failure behind so many ends the task.
MAX_TRIES: Final = 5
# By job, in the one process of a worker that uses Spark.
FAILED: Final[dict[str, int]] = {}


class Failed(RetriableError):
    """A failure that counts: after several in a row, the task ends."""


class Tries:
    def __init__(self, job: str, retries: int) -> None:
        self._job = job
        # The framework counts every failure, and begins at zero with a restart of the task.
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
