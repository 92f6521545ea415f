"""Flushes all logs in parallel, for the last time before they are closed.

Has no leadership: there are no more appends or waiting requests by now. A log that cannot be
flushed here is left to its `close`, which reports the error.
"""

from collections.abc import Iterable
from typing import Final

from brokers.replication.flusher import Flusher
from brokers.storage.fsync import FlushTicket
from brokers.storage.log import PartitionLog


class _LastFlush:
    """A log to be flushed, for the flusher."""

    is_flush_early: Final = False

    __slots__ = ("_log", "is_flush_asked", "is_flushing")

    def __init__(self, log: PartitionLog) -> None:
        self.is_flush_asked = False
        self.is_flushing = False
        self._log = log

    def begin_flush(self) -> FlushTicket | None:
        """For the flusher."""
        return self._log.begin_close()

    def finish_flush(self, ticket: FlushTicket | None) -> None:
        """For the flusher."""
        if ticket is not None:
            self._log.finish_flush(ticket)


async def flush_last(logs: Iterable[PartitionLog], flusher: Flusher) -> None:
    """Flush the files that speed up the next start; `flusher` must be stopped before."""
    try:
        flusher.start()
    except OSError:
        return  # no free descriptor: closing them one by one needs no further one
    for log in logs:
        flusher.ask(_LastFlush(log))
    await flusher.stop()
