"""Creates the folders of new partitions together, and off the event loop.

Has no topics and no leadership. One batch of folders is one job of the flusher, so that a thread
waits for the disk while the loop serves clients; some batches run at a time, while the next one is
collected.
"""

import asyncio
from collections import deque
from typing import Final, TypeAlias

from brokers.protocol.errors import KafkaError
from brokers.replication.flusher import Flusher
from brokers.storage.errors import StorageError
from brokers.storage.fsync import FlushTicket
from brokers.storage.log_dir import LogDir, NewPartition

# Folders of one batch. Their syncs share the work of the first one; more would only keep more files
# open at once.
TOGETHER: Final = 64
# Running batches: half of the flusher's parallel jobs, so that producers are not kept waiting.
AT_ONCE: Final = 4

# The error that kept folders from being made, or None.
Outcome: TypeAlias = KafkaError | StorageError | None


class _Batch:
    """Partitions whose folders are made together, as a log to be flushed for the flusher."""

    is_flush_early: Final = False

    def __init__(
        self, new: list[NewPartition], log_dir: LogDir, ended: "asyncio.Future[Outcome]"
    ) -> None:
        self.new = new
        self.ended = ended
        self.is_flush_asked = False
        self.is_flushing = False
        self._log_dir = log_dir

    def begin_flush(self) -> FlushTicket | None:
        """For the flusher."""
        try:
            return self._log_dir.begin_create(self.new)
        except (KafkaError, StorageError) as error:
            self._end(error)
            return None

    def finish_flush(self, ticket: FlushTicket | None) -> None:
        """For the flusher, which needs no error here: the waiting caller gets it."""
        if ticket is None:
            return
        try:
            self._log_dir.finish_create(ticket)
        except (KafkaError, StorageError) as error:
            self._end(error)
        else:
            self._end(None)

    def _end(self, outcome: Outcome) -> None:
        if not self.ended.done():  # The waiting task is gone if the broker stops meanwhile.
            self.ended.set_result(outcome)


class Creations:
    """The new partitions of one image. Belongs to the event loop."""

    def __init__(
        self, log_dir: LogDir, *, flusher: Flusher, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._log_dir = log_dir
        self._flusher = flusher
        self._loop = loop
        self._gathered: list[NewPartition] = []
        self._under_way: deque[_Batch] = deque()

    @property
    def is_full(self) -> bool:
        """Whether there are enough for a batch."""
        return len(self._gathered) >= TOGETHER

    @property
    def is_busy(self) -> bool:
        """Whether a batch must be taken before the next one begins."""
        return len(self._under_way) >= AT_ONCE

    @property
    def are_done(self) -> bool:
        """Whether nothing waits to be made or to be taken."""
        return not self._gathered and not self._under_way

    def add(self, new: NewPartition) -> None:
        """Add a partition to the next batch."""
        self._gathered.append(new)

    def begin(self) -> None:
        """Start the collected batch."""
        if self._gathered:
            batch = _Batch(self._gathered, self._log_dir, self._loop.create_future())
            self._gathered = []
            self._under_way.append(batch)
            self._flusher.ask(batch)

    async def take(self) -> tuple[list[NewPartition], Outcome]:
        """Wait for the oldest batch; its logs may be opened, unless there was an error.

        A broker whose disk has failed waits here until it is ended.
        """
        oldest = self._under_way[0]
        outcome = await oldest.ended
        self._under_way.popleft()
        return oldest.new, outcome
