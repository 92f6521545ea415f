"""Tracks and limits the producers and readers that wait for a partition.

Knows no requests and no connections; a wait is notified and acts by itself. All waits are counted
in one room, because each holds memory on behalf of a client: a disk that hangs must lead to
refusals and not to a broker without memory.
"""

from collections.abc import Sized
from typing import Final, Protocol

from brokers.protocol.errors import KafkaError

# Batches that may wait for the disk. A thousand pipelined requests of a hundred connections; at
# about 1 KiB each it matches the next limit, too.
MAX_APPEND_WAITS: Final = 100_000
# The memory of waiting answers, as estimated by their creators.
MAX_APPEND_WAIT_BYTES: Final = 64 * 1024 * 1024
# Fetches that may watch for data: every consumer of a broker has one for each connection.
MAX_FETCH_WAITS: Final = 20_000
# Of one connection: clients have one, and a few more while sessions are replaced. Answers leave in
# order, so more would gain nothing, and a thousand in each of twenty connections would take all.
MAX_FETCH_WAITS_EACH: Final = 4
# The longest wait of a reader: twice the default of any client, and a bound on the time of one that
# will never be notified.
MAX_FETCH_WAIT_MS: Final = 60_000
# Partitions that these watch in all; an entry is about 100 bytes.
MAX_WATCHED: Final = 500_000


class AppendWaiter(Protocol):
    """Waits until its batch may be acknowledged; `slot` is the waiter's own number for a batch."""

    def reached(self, slot: int) -> None:
        """The high watermark has passed the batch."""

    def lost(self, slot: int, error: KafkaError) -> None:
        """The high watermark will not pass it, as far as this broker can tell."""


class Watcher(Protocol):
    """Waits for data to read; notified of everything that becomes readable."""

    def grew(self, size: int) -> None:
        """About `size` more bytes can be read."""

    def changed(self) -> None:
        """A read now has another result: an error, or another start of the log."""

    def expire(self) -> None:
        """The time is over: answer with the present data."""


class WaitRoom:
    """The limits of all waits of one broker. Belongs to the event loop."""

    __slots__ = (
        "_fetches_by",
        "append_bytes",
        "appends",
        "fetches",
        "kept_bytes",
        "max_append_bytes",
        "max_appends",
        "max_fetches",
        "max_watched",
        "unwatched",
        "watched",
    )

    def __init__(
        self,
        *,
        max_appends: int = MAX_APPEND_WAITS,
        max_append_bytes: int = MAX_APPEND_WAIT_BYTES,
        max_fetches: int = MAX_FETCH_WAITS,
        max_watched: int = MAX_WATCHED,
    ) -> None:
        self.max_appends = max_appends
        self.max_append_bytes = max_append_bytes
        self.max_fetches = max_fetches
        self.max_watched = max_watched
        self.appends = 0  # batches in the partitions' lists, those of disconnected clients included
        self.append_bytes = 0
        self.kept_bytes = 0  # copies of records that are not appended yet
        self.fetches = 0
        self.watched = 0
        # Fetches beyond the limits, which wait only for their time. At most one for each
        # connection, which is held meanwhile.
        self.unwatched: dict[Watcher, None] = {}
        self._fetches_by: dict[object, int] = {}

    @property
    def is_full_of_appends(self) -> bool:
        """Whether no further append may wait."""
        return self.appends >= self.max_appends or self.append_bytes >= self.max_append_bytes

    def admit_fetch(self, partitions: Sized, connection: object = None) -> bool:
        """Count a fetch that watches these partitions; False if it exceeds a limit.

        None is the broker itself, which waits no more often than it has partitions to load.
        """
        here = self._fetches_by.get(connection, 0) if connection is not None else 0
        if (
            here >= MAX_FETCH_WAITS_EACH
            or self.fetches >= self.max_fetches
            or self.watched + len(partitions) > self.max_watched
        ):
            return False
        self.fetches += 1
        self.watched += len(partitions)
        if connection is not None:
            self._fetches_by[connection] = here + 1
        return True

    def dismiss_fetch(self, partitions: Sized, connection: object = None) -> None:
        self.fetches -= 1
        self.watched -= len(partitions)
        if connection is not None:
            left = self._fetches_by.pop(connection) - 1
            if left:
                self._fetches_by[connection] = left
