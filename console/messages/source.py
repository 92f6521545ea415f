"""Reads records of one topic from its brokers, over the protocol, as any client does.

Joins no group and commits nothing. Uncommitted records are read too: a person who looks for a
record wants to see it.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from console.messages.places import Places
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.values import Position, PositionKind, Record, Span

# A person waits for the answer.
TIMEOUT_S: Final = 10.0
# Of each partition at a time: a page needs little of each, and a topic may have a thousand. A
# larger batch arrives whole.
FETCH_BYTES: Final = 128 * 1024
PROPERTIES: Final = {
    "isolation.level": "read_uncommitted",
    "fetch.message.max.bytes": str(FETCH_BYTES),
}
BEGINNING: Final = Position(kind=PositionKind.BEGINNING)
END: Final = Position(kind=PositionKind.END)


class Records(Protocol):
    """A running read; `finish` ends a partition before its span does."""

    def batches(self) -> Iterator[list[Record]]: ...
    def finish(self, partition: int) -> None: ...


class Source(Protocol):
    """One topic. Every call may raise KafkaFailure."""

    def bounds(self, partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return the first offset, and the one after the last."""
        ...

    def at_time(self, partitions: Sequence[int], time_ms: int) -> dict[int, int]:
        """Return the offset of the first record of this time or later; the end if there is none."""
        ...

    def reading(
        self, spans: Sequence[Span], *, stops_at_end: bool
    ) -> AbstractContextManager[Records]: ...


class KafkaSource:
    """See `Source`. Not thread-safe."""

    def __init__(self, places: Places) -> None:
        self._topic = places.topic
        self._connection = Connection(
            bootstrap=places.bootstrap,
            timeout_s=TIMEOUT_S,
            client_id="samsa-console",
            properties=PROPERTIES,
        )
        self._admin: Admin | None = None

    def bounds(self, partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        first = self._offsets(partitions, BEGINNING)
        end = self._offsets(partitions, END)
        return {index: (first[index], max(first[index], end[index])) for index in partitions}

    def at_time(self, partitions: Sequence[int], time_ms: int) -> dict[int, int]:
        return self._offsets(partitions, Position(kind=PositionKind.TIME, value=time_ms))

    @contextmanager
    def reading(self, spans: Sequence[Span], *, stops_at_end: bool) -> Iterator[Records]:
        with Reader(self._connection, self._topic, spans, stops_at_end=stops_at_end) as reader:
            yield reader

    def _offsets(self, partitions: Sequence[int], at: Position) -> dict[int, int]:
        if self._admin is None:
            self._admin = Admin(self._connection)
        return self._admin.offsets(self._topic, partitions, at)
