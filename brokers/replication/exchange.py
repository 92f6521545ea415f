"""Moves one cleaned file into a log, while the log goes on being written and read.

Runs the steps of `brokers.storage.swaps` in order, with waits for the disk in the flusher's
threads. Once begun it runs to its end, even if its caller is gone: a log with a running step can
neither be closed nor removed.
"""

import asyncio
from typing import Final, TypeAlias

from brokers.clock import Clock
from brokers.protocol.errors import KafkaError
from brokers.replication.flusher import Flusher
from brokers.replication.partition import Partition
from brokers.storage.cleaning import Cleaned
from brokers.storage.compaction import Cleaning
from brokers.storage.errors import StorageError
from brokers.storage.fsync import FlushTicket

# Whether the new file is in place, or the error; False if the log has changed.
Outcome: TypeAlias = bool | KafkaError | StorageError


class Exchange:
    """A log to be flushed twice, for the flusher. `ended` is set to the outcome."""

    is_flush_early: Final = False

    def __init__(
        self,
        partition: Partition,
        cleaning: Cleaning,
        group: Cleaned,
        *,
        flusher: Flusher,
        clock: Clock,
        ended: "asyncio.Future[Outcome]",
    ) -> None:
        self.ended = ended
        self.is_flush_asked = False
        self.is_flushing = False
        self._partition = partition
        self._log = partition.log
        self._cleaning = cleaning
        self._group = group
        self._flusher = flusher
        self._clock = clock
        self._last_ticket: FlushTicket | None = None  # of the second step

    def begin_flush(self) -> FlushTicket | None:
        """For the flusher."""
        if self._last_ticket is not None:
            return self._last_ticket
        if not self._partition.is_leading:
            return None
        try:
            return self._log.begin_swap(self._cleaning, self._group)
        except (KafkaError, StorageError) as error:
            self._end(error)
            return None

    def finish_flush(self, ticket: FlushTicket | None) -> None:
        """For the flusher, which needs no error here: the waiting caller gets it."""
        if ticket is None:
            self._end(False)
            return
        try:
            if ticket is self._last_ticket:
                self._log.finish_swap(ticket)
                self._end(True)
                return
            self._last_ticket = self._log.exchange_cleaned(ticket, self._clock.now_ms())
        except (KafkaError, StorageError) as error:
            self._end(error)
            return
        if self._last_ticket is None:
            self._end(False)
        else:
            self._flusher.ask(self)

    def _end(self, outcome: Outcome) -> None:
        if not self.ended.done():  # The waiting task is gone if the broker stops meanwhile.
            self.ended.set_result(outcome)
