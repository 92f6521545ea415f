"""A segment's `.timeindex`: the greatest timestamp so far, at some of its offsets.

Never reads the log. Kafka's format: entries of 12 bytes, int64 timestamp and int32 offset − base,
both big-endian, where the offset is the last one of the batch with that greatest timestamp. An
entry is added only when the timestamp has grown, so both columns rise. Written in bulk and read
into native arrays like the offset index, and like it only a hint.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from brokers.storage.files import Files
from brokers.storage.index_file import read_entries, write_entries
from brokers.storage.memory_budget import MemoryBudget
from brokers.storage.names import TIME_INDEX, beside
from brokers.storage.offset_index import IS_SWAPPED

ENTRY: Final = Struct(">qi")
ENTRY_SIZE: Final = ENTRY.size
NO_TIMESTAMP: Final = -1


class TimeEntry(NamedTuple):
    """No batch up to the one that ends with `offset` is later than `timestamp`."""

    timestamp: int
    offset: int


class _Table:
    """The columns of some entries, in native byte order."""

    __slots__ = ("offsets", "timestamps")

    def __init__(self, data: bytes) -> None:
        self.timestamps = _column(data, 0, 8, "q")
        self.offsets = _column(data, 8, 12, "I")

    def encoded(self) -> bytearray:
        data = bytearray(ENTRY_SIZE * len(self.offsets))
        _set_column(data, 0, 8, self.timestamps)
        _set_column(data, 8, 12, self.offsets)
        return data


class TimeIndex:
    """The time index of one segment. Not thread-safe; belongs to its segment."""

    __slots__ = (
        "_budget",
        "_files",
        "_last_timestamp",
        "_pending",
        "_table",
        "_written",
        "base_offset",
        "log_path",
    )

    def __init__(self, files: Files, budget: MemoryBudget, log_path: str, base_offset: int) -> None:
        self._files = files
        self._budget = budget
        self.log_path = log_path
        self.base_offset = base_offset
        self._table: _Table | None = None
        self._pending: _Table | None = None  # not yet in the file
        self._written = -1  # entries in the file; unknown until it is read
        self._last_timestamp = NO_TIMESTAMP  # meaningful once `_written` is known

    @property
    def path(self) -> str:
        return beside(self.log_path, TIME_INDEX)

    @property
    def entries(self) -> int:
        written = self._written if self._written >= 0 else len(self._loaded().offsets)
        return written + (len(self._pending.offsets) if self._pending else 0)

    @property
    def last(self) -> TimeEntry:
        """The newest entry, or (-1, base)."""
        table = self._pending or self._loaded()
        return self._entry(table, len(table.offsets) - 1)

    def lookup(self, timestamp: int) -> TimeEntry:
        """Return the greatest entry at or before `timestamp`."""
        table = self._pending
        if table is None or table.timestamps[0] > timestamp:
            table = self._loaded()
        return self._entry(table, bisect_right(table.timestamps, timestamp) - 1)

    def extend(self, timestamps: Sequence[int], offsets: Sequence[int]) -> None:
        """Add, in memory, the entries whose timestamps have grown."""
        if self._written < 0:
            self._loaded()
        if max(timestamps) <= self._last_timestamp:
            return
        pending = _Table(b"") if self._pending is None else self._pending
        last, base = self._last_timestamp, self.base_offset
        for timestamp, offset in zip(timestamps, offsets, strict=True):
            if timestamp > last:
                last = timestamp
                pending.timestamps.append(timestamp)
                pending.offsets.append(offset - base)
        if pending.offsets:
            self._pending, self._last_timestamp = pending, last

    def write_pending(self) -> None:
        """Write the waiting entries; after an OSError they still wait."""
        pending = self._pending or _Table(b"")
        count = len(pending.offsets)
        written = self.entries - count
        write_entries(self._files, self.path, pending.encoded(), written * ENTRY_SIZE)
        self._pending = None
        self._written = written + count
        if self._table is not None:
            self._table.timestamps.extend(pending.timestamps)
            self._table.offsets.extend(pending.offsets)
            self._budget.hold(self, self._written * ENTRY_SIZE)

    def clear(self) -> None:
        """Forget every entry; the next write removes those in the file."""
        self.release()
        self._pending = None
        self._written = 0
        self._last_timestamp = NO_TIMESTAMP

    def cut(self, offset: int) -> None:
        """Forget entries of batches that do not end below `offset`."""
        table = self._loaded()
        if self._pending is not None:
            table.timestamps.extend(self._pending.timestamps)
            table.offsets.extend(self._pending.offsets)
        keep = bisect_left(table.offsets, offset - self.base_offset)
        self.clear()
        if keep:
            self._pending = _Table(b"")
            self._pending.timestamps = table.timestamps[:keep]
            self._pending.offsets = table.offsets[:keep]
            self._last_timestamp = table.timestamps[keep - 1]

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
            return _Table(b"")
        data = read_entries(self._files, self.path, ENTRY_SIZE)
        if self._written >= 0:
            # Entries behind these are those of a write that failed.
            data = data[: self._written * ENTRY_SIZE]
        elif data:
            self._last_timestamp = ENTRY.unpack_from(data, len(data) - ENTRY_SIZE)[0]
        self._table = _Table(data)
        self._written = len(self._table.offsets)
        self._budget.hold(self, self._written * ENTRY_SIZE)
        return self._table

    def _entry(self, table: _Table, index: int) -> TimeEntry:
        if index < 0:
            return TimeEntry(NO_TIMESTAMP, self.base_offset)
        return TimeEntry(table.timestamps[index], self.base_offset + table.offsets[index])


def _column(data: bytes, start: int, stop: int, code: str) -> "array[int]":
    """Return one big-endian column of the entries as a native array, moved byte by byte in C."""
    width = stop - start
    moved = bytearray(len(data) // ENTRY_SIZE * width)
    for place in range(width):
        moved[place::width] = data[start + place :: ENTRY_SIZE]
    column = array(code, bytes(moved))
    if IS_SWAPPED:
        column.byteswap()
    return column


def _set_column(data: bytearray, start: int, stop: int, column: "array[int]") -> None:
    """Write a native array into one big-endian column of the entries, likewise."""
    moved = array(column.typecode, column)
    if IS_SWAPPED:
        moved.byteswap()
    width = stop - start
    content = moved.tobytes()
    for place in range(width):
        data[start + place :: ENTRY_SIZE] = content[place::width]
