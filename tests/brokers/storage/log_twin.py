"""A partition log as a list: what any log must answer, as slow as it reads.

Nothing here knows segments, indexes or files. Batches are never removed at the front, since a log
may keep more than it serves; readers ask within `start` and `end` only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brokers.protocol.records.batch import Batch, batches
from brokers.protocol.records.control import read_end_txn
from brokers.protocol.records.reader import records
from brokers.storage.log import PartitionLog

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
    keys: tuple[bytes | None, ...]
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
    read = list(records(batch, max_bytes=MAX_BYTES))
    return Stored(
        base=batch.base_offset,
        last=batch.last_offset,
        data=data,
        epoch=batch.leader_epoch,
        max_timestamp=batch.max_timestamp,
        times=tuple((record.offset, record.timestamp) for record in read),
        keys=tuple(record.key for record in read),
        producer=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        ends_with=None if marker is None else ("commit" if marker.is_commit else "abort"),
    )


def stored_end(data: bytes) -> int:
    """The offset behind the last batch of a slice."""
    end, position = 0, 0
    while position < len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        end = stored(data[position : position + size]).last + 1
        position += size
    return end


def stored_in(log: PartitionLog) -> list[Stored]:
    """What lies in the files of a log, also below its start."""
    found = []
    for segment in log.segments:
        data = Path(segment.file.path).read_bytes()[: segment.size]
        found += [stored(bytes(batch.buffer)) for batch in batches(memoryview(data))]
    return found


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

    def clean(self, left: list[Stored], cleaned: range, dirty: range, whole: list[range]) -> None:
        """Takes what a cleaning has `left` from its first offset on; the records must be right.

        What came last of each key is told by what is `dirty`. Segments that had to stay `whole` are
        left, too. Which batches stay without any record is the cleaner's business.
        """
        last: dict[bytes | None, int] = {}
        older = [batch for batch in self.batches if batch.base < cleaned.start]
        newer = self.batches[len(older) :]
        for batch in newer:
            if batch.last in dirty and not batch.is_transactional and batch.ends_with is None:
                last.update(zip(batch.keys, (offset for offset, _ in batch.times), strict=True))
        expected = [
            time
            for batch in newer
            for time, key in zip(batch.times, batch.keys, strict=True)
            if batch.base not in cleaned
            or any(batch.base in segment for segment in whole)
            or (key is not None and last.get(key, time[0]) <= time[0])
        ]
        assert [time for batch in left for time in batch.times] == expected
        before = {batch.base: batch for batch in self.batches}
        for batch in left:
            was = before[batch.base]
            assert (batch.last, batch.epoch, batch.producer) == (was.last, was.epoch, was.producer)
            assert (batch.sequence, batch.ends_with) == (was.sequence, was.ends_with)
            assert batch.data == was.data or len(batch.times) < len(was.times)
        self.batches = older + left

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

    def has_transactions(self, span: range) -> bool:
        """Whether a batch of one, or a marker, begins at one of these offsets."""
        return any(
            batch.is_transactional or batch.ends_with is not None
            for batch in self.batches
            if batch.base in span
        )

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
