"""A segment's `.timeindex`: the greatest timestamp so far, at some of its offsets.

Never reads the log. Kafka's format: entries of 12 bytes, int64 timestamp and int32 offset − base,
where the offset is the last one of the batch with that greatest timestamp. An entry is added only
when the timestamp has grown, so both columns rise. Only a hint, like the offset index.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from brokers.storage.files import Files
from brokers.storage.index_columns import INT64, KEYS, UINT32, VALUES, Layout
from brokers.storage.index_file import IndexFile
from brokers.storage.memory_budget import MemoryBudget
from brokers.storage.names import TIME_INDEX

LAYOUT: Final = Layout(key=INT64, entry_size=12)
NO_TIMESTAMP: Final = -1


class TimeEntry(NamedTuple):
    """No batch up to the one that ends with `offset` is later than `timestamp`."""

    timestamp: int
    offset: int


class TimeIndex:
    """The time index of one segment. Not thread-safe; belongs to its segment."""

    __slots__ = ("_base_offset", "file")

    def __init__(self, files: Files, budget: MemoryBudget, log_path: str, base_offset: int) -> None:
        self.file = IndexFile(files, budget, log_path, TIME_INDEX, LAYOUT)
        self._base_offset = base_offset

    @property
    def last(self) -> TimeEntry:
        """The newest entry, or (-1, base)."""
        return self._absolute(self.file.last)

    def lookup(self, timestamp: int) -> TimeEntry:
        """Return the greatest entry at or before `timestamp`."""
        return self._absolute(self.file.greatest(KEYS, timestamp))

    def extend(self, timestamps: Sequence[int], offsets: Sequence[int]) -> None:
        """Add, in memory, the entries whose timestamps have grown."""
        newest = self.file.last_key
        last = NO_TIMESTAMP if newest is None else newest
        if max(timestamps) <= last:
            return
        keys, values, base = array(INT64), array(UINT32), self._base_offset
        for timestamp, offset in zip(timestamps, offsets, strict=True):
            if timestamp > last:
                last = timestamp
                keys.append(timestamp)
                values.append(offset - base)
        self.file.extend(keys, values)

    def cut(self, offset: int) -> None:
        """Forget entries of batches that do not end below `offset`."""
        keys, values = self.file.take_all()
        keep = bisect_left(values, offset - self._base_offset)
        if keep:
            self.file.extend(keys[:keep], values[:keep])

    def _absolute(self, entry: tuple[int, int] | None) -> TimeEntry:
        if entry is None:
            return TimeEntry(NO_TIMESTAMP, self._base_offset)
        return TimeEntry(entry[KEYS], self._base_offset + entry[VALUES])
