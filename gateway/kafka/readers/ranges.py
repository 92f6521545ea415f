"""Reads ranges of offsets of one topic, in the caller's thread, with a client of its own.

For reads with an end: a shared fetch would run past it. Joins no group and commits nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.positions import bounds
from gateway.kafka.values import Position, PositionKind, Record, Span

# Of each partition at a time: a page needs little of each, and a topic may have a thousand. A
# larger batch arrives whole.
FETCH_BYTES: Final = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The offsets to read from a partition, [first, end), within those that it holds."""

    partition: int
    log_start: int
    log_end: int
    first: int
    end: int

    def from_offset(self, offset: int) -> "Range":
        """Return the rest of the range from an offset on."""
        return replace(self, first=min(max(self.first, offset), self.end))


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

    def reading(self, spans: Sequence[Span]) -> AbstractContextManager[Records]:
        """Read spans to their ends, or to the ends of their partitions."""
        ...


class KafkaSource:
    """See `Source`. Not thread-safe."""

    def __init__(self, admission: Admission, connection: Connection, topic: str) -> None:
        admission.require([topic])
        self._topic = topic
        self._connection = replace(
            connection,
            properties={**connection.properties, "fetch.message.max.bytes": str(FETCH_BYTES)},
        )
        self._admin: Admin | None = None

    def bounds(self, partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        return bounds(self._admins(), self._topic, partitions)

    def at_time(self, partitions: Sequence[int], time_ms: int) -> dict[int, int]:
        at = Position(kind=PositionKind.TIME, value=time_ms)
        return self._admins().offsets(self._topic, partitions, at)

    @contextmanager
    def reading(self, spans: Sequence[Span]) -> Iterator[Records]:
        with Reader(self._connection, self._topic, spans, stops_at_end=True) as reader:
            yield reader

    def _admins(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self._connection)
        return self._admin
