"""Flushes all logs side by side, for the last time before they are closed.

Knows no leaders: by now nobody appends, and who waited has been answered. A log that cannot be
flushed here is left to its close, which finds out why.
"""

from collections.abc import Iterable
from typing import Final

from brokers.replication.flusher import Flusher
from brokers.storage.fsync import FlushTicket
from brokers.storage.log import PartitionLog


class _LastFlush:
    """To the flusher, a log to be flushed."""

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
    """Brings to the disk what the logs need for a quick start; `flusher` is stopped before it."""
    try:
        flusher.start()
    except OSError:
        return  # no descriptor left for it: closing them one by one takes no more
    for log in logs:
        flusher.ask(_LastFlush(log))
    await flusher.stop()
