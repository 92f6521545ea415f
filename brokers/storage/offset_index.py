"""A segment's `.index`: maps some of its offsets to positions in its log file.

Never reads the log. Kafka's sparse format: entries of 8 bytes, int32 offset − base and int32
position, where the offset is the *last* one of the batch that begins at the position.

An entry is a hint until the header at the position has confirmed it: callers check.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

from brokers.storage.files import Files
from brokers.storage.index_columns import KEYS, UINT32, VALUES, Layout
from brokers.storage.index_file import IndexFile
from brokers.storage.memory_budget import MemoryBudget
from brokers.storage.names import OFFSET_INDEX

LAYOUT: Final = Layout(key=UINT32, entry_size=8)


class IndexEntry(NamedTuple):
    """The batch that ends with `offset` begins at `position`; (base, 0) is the file's start."""

    offset: int
    position: int


class OffsetIndex:
    """The offset index of one segment. Not thread-safe; belongs to its segment."""

    __slots__ = ("_base_offset", "file")

    def __init__(self, files: Files, budget: MemoryBudget, log_path: str, base_offset: int) -> None:
        self.file = IndexFile(files, budget, log_path, OFFSET_INDEX, LAYOUT)
        self._base_offset = base_offset

    @property
    def last(self) -> IndexEntry:
        """The newest entry, or (base, 0)."""
        return self._absolute(self.file.last)

    def entry(self, number: int) -> IndexEntry:
        """Return the entry with this number, from 0; (base, 0) for a negative one."""
        return self._absolute(self.file.entry(number))

    def number_of(self, offset: int) -> int:
        """Return the number of the greatest entry at or below `offset`; -1 without any."""
        return self.file.number_of(KEYS, offset - self._base_offset)

    def number_at(self, position: int) -> int:
        """Return the number of the greatest entry at or in front of `position`; -1 without any."""
        return self.file.number_of(VALUES, position)

    def lookup(self, offset: int) -> IndexEntry:
        """Return the greatest entry at or below `offset`."""
        return self._absolute(self.file.greatest(KEYS, offset - self._base_offset))

    def lookup_position(self, position: int) -> IndexEntry:
        """Return the greatest entry whose batch begins at or before `position`."""
        return self._absolute(self.file.greatest(VALUES, position))

    def sample_after(self, offset: int, count: int) -> list[IndexEntry]:
        """Return at most `count` of the entries above `offset` in the file, evenly spread."""
        return list(map(self._absolute, self.file.sample_after(offset - self._base_offset, count)))

    def extend(self, last_offsets: Iterable[int], positions: Iterable[int]) -> None:
        """Add entries in memory."""
        base = self._base_offset
        keys = array(UINT32, [offset - base for offset in last_offsets])
        self.file.extend(keys, array(UINT32, positions))

    def cut(self, offset: int, position: int) -> None:
        """Forget entries past the end of a log that now ends at `position`, below `offset`."""
        keys, values = self.file.take_all()
        keep = min(
            bisect_left(keys, offset - self._base_offset),
            bisect_left(values, position),
        )
        if keep:
            self.file.extend(keys[:keep], values[:keep])

    def _absolute(self, entry: tuple[int, int] | None) -> IndexEntry:
        if entry is None:
            return IndexEntry(self._base_offset, 0)
        return IndexEntry(self._base_offset + entry[KEYS], entry[VALUES])
