"""A partition log as a list: what any log must answer, as slow as it reads.

Nothing here knows segments, indexes or files. Batches are never removed at the front, since a log
may keep more than it serves; readers ask within `start` and `end` only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from brokers.protocol.records.batch import Batch
from brokers.protocol.records.control import read_end_txn
from brokers.protocol.records.reader import records

MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One batch as the log should hold it."""

    base: int
    last: int
    data: bytes
    epoch: int
    max_timestamp: int
    times: tuple[tuple[int, int], ...]  # offset and timestamp of each record
    producer: int
    producer_epoch: int
    sequence: int
    is_transactional: bool
    ends_with: str | None  # "commit" or "abort" for a marker

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def last_sequence(self) -> int:
        return (self.sequence + self.last - self.base) % 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """An aborted transaction from its first record to its marker."""

    producer: int
    first: int
    last: int


def stored(data: bytes) -> Stored:
    """What the bytes of one batch say, after the log has given them their place."""
    batch = Batch(memoryview(data))
    marker = read_end_txn(batch) if batch.is_control else None
    times = tuple(
        (record.offset, record.timestamp) for record in records(batch, max_bytes=MAX_BYTES)
    )
    return Stored(
        base=batch.base_offset,
        last=batch.last_offset,
        data=data,
        epoch=batch.leader_epoch,
        max_timestamp=batch.max_timestamp,
        times=times,
        producer=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        ends_with=None if marker is None else ("commit" if marker.is_commit else "abort"),
    )


class LogTwin:
    """The batches in order, and between which offsets they are served."""

    def __init__(self) -> None:
        self.batches: list[Stored] = []
        self.start = 0
        self.end = 0

    def append(self, batch: Stored) -> None:
        assert batch.base >= self.end, f"{batch.base} is taken, the log ends at {self.end}"
        self.batches.append(batch)
        self.end = batch.last + 1

    def truncate(self, offset: int) -> None:
        """Cuts the end; a batch that reaches across goes as a whole."""
        while self.batches and self.batches[-1].last >= offset:
            self.batches.pop()
        self.ends_at(min(self.end, offset))

    def ends_at(self, offset: int) -> None:
        """Offsets behind the last batch may count as passed or not: the log decides."""
        assert not self.batches or self.batches[-1].last < offset
        self.end = offset
        self.start = min(self.start, offset)

    def start_at(self, offset: int) -> None:
        self.batches.clear()
        self.start = self.end = offset

    def first_at(self, offset: int) -> int:
        """The index of the first batch that does not end below `offset`."""
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].last < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def served(self) -> Iterator[Stored]:
        return iter(self.batches[self.first_at(self.start) :])

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int, int] | None:
        """Offset, timestamp and epoch of the first record at or behind a time."""
        for batch in self.served():
            for offset, time in batch.times:
                if time >= timestamp and offset >= self.start:
                    return offset, time, batch.epoch
        return None

    def transactions(self) -> tuple[list[Aborted], dict[int, int]]:
        """The aborted transactions, by their markers, and the first offsets of those still open."""
        aborted: list[Aborted] = []
        open_since: dict[int, int] = {}
        for batch in self.batches:
            if batch.ends_with is None and batch.is_transactional:
                open_since.setdefault(batch.producer, batch.base)
            elif batch.ends_with is not None:
                first = open_since.pop(batch.producer, None)
                if first is not None and batch.ends_with == "abort":
                    aborted.append(Aborted(producer=batch.producer, first=first, last=batch.base))
        return aborted, open_since

    def last_of(self, producer: int) -> Stored | None:
        """The newest batch of a producer, markers included."""
        for batch in reversed(self.batches):
            if batch.producer == producer:
                return batch
        return None
