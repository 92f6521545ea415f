"""Reads, grows, cuts and writes an index file of a segment, whatever its entries mean.

Relies on two properties: entries have one size, and no entry is all zeros. Both hold for Kafka's
offset and time indexes, whose files end in zeros while Kafka has them preallocated.

New entries wait in memory and are written in bulk; losing them is harmless, because an index is
derived from its log and continued or rebuilt after an unclean stop. A file is read on first use,
and the memory budget may drop what was read.
"""

import os
from array import array
from bisect import bisect_right
from contextlib import suppress
from typing import Final

from brokers.storage.files import Buffer, Files
from brokers.storage.index_columns import KEYS, UINT32, VALUES, Columns, Layout
from brokers.storage.memory_budget import MemoryBudget
from brokers.storage.names import beside

# Kafka's default is 10 MiB per index. Bytes beyond this are not read: a lookup that ends early only
# walks further in the log, while a file grown by damage must not become an allocation.
MAX_INDEX_BYTES: Final = 64 * 1024 * 1024


class IndexFile:
    """One index file and the entries that wait for it. Not thread-safe; belongs to its segment."""

    __slots__ = (
        "_budget",
        "_files",
        "_last_key",
        "_layout",
        "_log_path",
        "_pending",
        "_suffix",
        "_table",
        "_written",
    )

    def __init__(
        self, files: Files, budget: MemoryBudget, log_path: str, suffix: str, layout: Layout
    ) -> None:
        self._files = files
        self._budget = budget
        self._log_path = log_path
        self._suffix = suffix
        self._layout = layout
        self._table: Columns | None = None  # of the entries in the file
        self._pending: Columns | None = None  # not yet in the file, and never empty
        self._written = -1  # entries in the file; unknown until it is read
        self._last_key: int | None = None  # meaningful once `_written` is known

    @property
    def path(self) -> str:
        return beside(self._log_path, self._suffix)

    @property
    def entries(self) -> int:
        written = self._written if self._written >= 0 else len(self._loaded()[KEYS])
        return written + (len(self._pending[KEYS]) if self._pending else 0)

    @property
    def last(self) -> tuple[int, int] | None:
        """The newest entry."""
        table = self._pending or self._loaded()
        return _entry(table, len(table[KEYS]) - 1)

    @property
    def last_key(self) -> int | None:
        """The key of the newest entry; known even while the file's entries are not in memory."""
        if self._written < 0:
            self._loaded()
        return self._last_key

    def entry(self, number: int) -> tuple[int, int] | None:
        """Return the entry with this number, from 0; None for a negative one."""
        table = self._loaded()
        written = len(table[KEYS])
        if self._pending is not None and number >= written:
            return _entry(self._pending, number - written)
        return _entry(table, number)

    def greatest(self, column: int, most: int) -> tuple[int, int] | None:
        """Return the last entry with at most `most` in the column."""
        table = self._pending
        if table is None or table[column][0] > most:
            table = self._loaded()
        number = bisect_right(table[column], most) - 1
        return None if number < 0 else (table[KEYS][number], table[VALUES][number])

    def number_of(self, column: int, most: int) -> int:
        """Return the number of the last entry with at most `most` in the column; -1 without any."""
        table, pending = self._loaded(), self._pending
        if pending is not None and pending[column][0] <= most:
            return len(table[column]) + bisect_right(pending[column], most) - 1
        return bisect_right(table[column], most) - 1

    def sample_after(self, key: int, count: int) -> list[tuple[int, int]]:
        """Return at most `count` of the entries above `key` in the file, evenly spread."""
        keys, values = self._loaded()
        first = bisect_right(keys, key)
        step = max(1, -(-(len(keys) - first) // count))
        return list(zip(keys[first::step], values[first::step], strict=True))

    def extend(self, keys: "array[int]", values: "array[int]") -> None:
        """Add at least one entry in memory."""
        if self._pending is None:
            self._pending = (keys, values)
        else:
            _extend(self._pending, (keys, values))
        self._last_key = keys[-1]

    def write_pending(self) -> None:
        """Write the waiting entries, and complete the file; after an OSError they still wait."""
        pending = self._pending or _empty(self._layout)
        count = len(pending[KEYS])
        written = self.entries - count
        data = self._layout.encode(pending)
        write_entries(self._files, self.path, data, written * self._layout.entry_size)
        self._pending = None
        self._written = written + count
        if self._table is not None:
            _extend(self._table, pending)
            self._budget.hold(self, self._written * self._layout.entry_size)

    def clear(self) -> None:
        """Forget every entry; the next write removes those in the file."""
        self.release()
        self._pending = None
        self._written = 0
        self._last_key = None

    def take_all(self) -> Columns:
        """Return all entries, and forget them; the next write removes those in the file."""
        table = self._loaded()
        if self._pending is not None:
            _extend(table, self._pending)
        self.clear()
        return table

    def rename(self, log_path: str) -> None:
        """Give the file the name that belongs to a log; may be repeated after an OSError."""
        if self._log_path != log_path:
            # A missing one is rebuilt when it is needed.
            with suppress(FileNotFoundError):
                self._files.rename(self.path, beside(log_path, self._suffix))
            self._log_path = log_path

    def release(self) -> None:
        """Free the memory; the file is read again when needed."""
        self._budget.forget(self)
        self._table = None

    def unload(self) -> None:
        self._table = None

    def _loaded(self) -> Columns:
        if self._table is not None:
            self._budget.touch(self)
            return self._table
        if self._written == 0:
            return _empty(self._layout)
        data = read_entries(self._files, self.path, self._layout.entry_size)
        if self._written >= 0:
            # Entries behind these are those of a write that failed.
            data = data[: self._written * self._layout.entry_size]
        self._table = keys, _values = self._layout.decode(data)
        if keys and self._last_key is None:
            self._last_key = keys[-1]
        self._written = len(keys)
        self._budget.hold(self, self._written * self._layout.entry_size)
        return self._table


def read_entries(files: Files, path: str, entry_size: int) -> bytes:
    """Return the whole entries of an index file, without trailing zeros; empty if it is missing."""
    try:
        fd = files.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        data = files.pread(fd, min(files.size(fd), MAX_INDEX_BYTES), 0)
    finally:
        files.close(fd)
    whole = len(data) - len(data) % entry_size
    # The last entry's own low bytes may be zero, so the end of the data is rounded up to an entry.
    used = -(-len(data.rstrip(b"\0")) // entry_size) * entry_size
    return data[: min(whole, used)]


def write_entries(files: Files, path: str, data: Buffer, position: int) -> None:
    """Replace everything behind the first `position` bytes of an index file with `data`."""
    fd = files.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        # The rest is Kafka's preallocation, the remainder of a truncated log, or a failed write.
        if files.size(fd) != position:
            files.truncate(fd, position)
        view = memoryview(data).cast("B")
        written = 0
        while written < len(view):
            written += files.pwrite(fd, view[written:], position + written)
    finally:
        files.close(fd)


def _empty(layout: Layout) -> Columns:
    return array(layout.key), array(UINT32)


def _entry(columns: Columns, number: int) -> tuple[int, int] | None:
    return None if number < 0 else (columns[KEYS][number], columns[VALUES][number])


def _extend(columns: Columns, more: Columns) -> None:
    columns[KEYS].extend(more[KEYS])
    columns[VALUES].extend(more[VALUES])
