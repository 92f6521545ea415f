"""A segment's `.index`: maps some of its offsets to positions in its log file.

Never reads the log. Kafka's sparse format: entries of 8 bytes, int32 offset − base and int32
position, both big-endian, where the offset is the *last* one of the batch that begins at the
position. New entries wait in memory and are written in bulk; losing them is harmless, because an
index is derived from its log and continued or rebuilt after an unclean stop. A file is read into
native arrays on first use, so that C bisect can search it, and may be dropped.

An entry is a hint until the header at the position has confirmed it: callers check.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from brokers.storage.files import Files
from brokers.storage.index_file import read_entries, write_entries
from brokers.storage.memory_budget import MemoryBudget
from brokers.storage.names import OFFSET_INDEX, beside

ENTRY_SIZE: Final = 8
IS_SWAPPED: Final = sys.byteorder == "little"


class IndexEntry(NamedTuple):
    """The batch that ends with `offset` begins at `position`; (base, 0) is the file's start."""

    offset: int
    position: int


class _Table:
    """The columns of some entries, in native byte order."""

    __slots__ = ("offsets", "positions")

    def __init__(self, flat: "array[int]") -> None:
        self.offsets = flat[0::2]  # relative to the segment's base offset
        self.positions = flat[1::2]

    def encoded(self) -> "array[int]":
        flat = array("I", bytes(ENTRY_SIZE * len(self.offsets)))
        flat[0::2] = self.offsets
        flat[1::2] = self.positions
        if IS_SWAPPED:
            flat.byteswap()
        return flat


class OffsetIndex:
    """The offset index of one segment. Not thread-safe; belongs to its segment."""

    __slots__ = ("_budget", "_files", "_pending", "_table", "_written", "base_offset", "log_path")

    def __init__(self, files: Files, budget: MemoryBudget, log_path: str, base_offset: int) -> None:
        self._files = files
        self._budget = budget
        self.log_path = log_path
        self.base_offset = base_offset
        self._table: _Table | None = None
        self._pending: _Table | None = None  # not yet in the file
        self._written = -1  # entries in the file; unknown until it is read

    @property
    def path(self) -> str:
        return beside(self.log_path, OFFSET_INDEX)

    @property
    def entries(self) -> int:
        written = self._written if self._written >= 0 else len(self._loaded().offsets)
        return written + (len(self._pending.offsets) if self._pending else 0)

    @property
    def last(self) -> IndexEntry:
        """The newest entry, or (base, 0)."""
        table = self._pending or self._loaded()
        return self._entry(table, len(table.offsets) - 1)

    def entry(self, number: int) -> IndexEntry:
        """Return the entry with this number, from 0; (base, 0) for a negative one."""
        table = self._loaded()
        written = len(table.offsets)
        if self._pending is not None and number >= written:
            return self._entry(self._pending, number - written)
        return self._entry(table, number)

    def number_of(self, offset: int) -> int:
        """Return the number of the greatest entry at or below `offset`; -1 without any."""
        relative = offset - self.base_offset
        table, pending = self._loaded(), self._pending
        if pending is not None and pending.offsets[0] <= relative:
            return len(table.offsets) + bisect_right(pending.offsets, relative) - 1
        return bisect_right(table.offsets, relative) - 1

    def number_at(self, position: int) -> int:
        """Return the number of the greatest entry at or in front of `position`; -1 without any."""
        table, pending = self._loaded(), self._pending
        if pending is not None and pending.positions[0] <= position:
            return len(table.positions) + bisect_right(pending.positions, position) - 1
        return bisect_right(table.positions, position) - 1

    def lookup(self, offset: int) -> IndexEntry:
        """Return the greatest entry at or below `offset`."""
        relative = offset - self.base_offset
        table = self._pending
        if table is None or table.offsets[0] > relative:
            table = self._loaded()
        return self._entry(table, bisect_right(table.offsets, relative) - 1)

    def lookup_position(self, position: int) -> IndexEntry:
        """Return the greatest entry whose batch begins at or before `position`."""
        table = self._pending
        if table is None or table.positions[0] > position:
            table = self._loaded()
        return self._entry(table, bisect_right(table.positions, position) - 1)

    def sample_after(self, offset: int, count: int) -> list[IndexEntry]:
        """Return at most `count` of the entries above `offset` in the file, evenly spread."""
        table = self._loaded()
        first = bisect_right(table.offsets, offset - self.base_offset)
        step = max(1, -(-(len(table.offsets) - first) // count))
        return [self._entry(table, index) for index in range(first, len(table.offsets), step)]

    def extend(self, last_offsets: Iterable[int], positions: Iterable[int]) -> None:
        """Add entries in memory."""
        if self._pending is None:
            self._pending = _Table(array("I"))
        base = self.base_offset
        self._pending.offsets.extend(array("I", [offset - base for offset in last_offsets]))
        self._pending.positions.extend(array("I", positions))

    def write_pending(self) -> None:
        """Write the waiting entries; after an OSError they still wait."""
        pending = self._pending or _Table(array("I"))
        count = len(pending.offsets)
        written = self.entries - count
        write_entries(self._files, self.path, pending.encoded(), written * ENTRY_SIZE)
        self._pending = None
        self._written = written + count
        if self._table is not None:
            self._table.offsets.extend(pending.offsets)
            self._table.positions.extend(pending.positions)
            self._budget.hold(self, self._written * ENTRY_SIZE)

    def clear(self) -> None:
        """Forget every entry; the next write removes those in the file."""
        self.release()
        self._pending = None
        self._written = 0

    def cut(self, offset: int, position: int) -> None:
        """Forget entries past the end of a log that now ends at `position`, below `offset`."""
        table = self._loaded()
        if self._pending is not None:
            table.offsets.extend(self._pending.offsets)
            table.positions.extend(self._pending.positions)
        keep = min(
            bisect_left(table.offsets, offset - self.base_offset),
            bisect_left(table.positions, position),
        )
        self.clear()
        if keep:
            self._pending = _Table(array("I"))
            self._pending.offsets = table.offsets[:keep]
            self._pending.positions = table.positions[:keep]

    def release(self) -> None:
        """Free the memory; the file is read again when needed."""
        self._budget.forget(self)
        self._table = None

    def unload(self) -> None:
        self._table = None

    def _loaded(self) -> _Table:
        if self._table is not None:
            self._budget.touch(self)
            return self._table
        if self._written == 0:
            return _Table(array("I"))
        flat = array("I", read_entries(self._files, self.path, ENTRY_SIZE))
        if IS_SWAPPED:
            flat.byteswap()
        if self._written >= 0:
            # Entries behind these are those of a write that failed.
            del flat[2 * self._written :]
        self._table = _Table(flat)
        self._written = len(self._table.offsets)
        self._budget.hold(self, self._written * ENTRY_SIZE)
        return self._table

    def _entry(self, table: _Table, index: int) -> IndexEntry:
        if index < 0:
            return IndexEntry(self.base_offset, 0)
        return IndexEntry(self.base_offset + table.offsets[index], table.positions[index])
