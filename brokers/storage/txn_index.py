"""A segment's aborted transactions, which a reader of only committed records must skip.

Holds offsets, not records. One entry of 34 bytes per abort marker written in the segment, in the
order of the markers; the first abort creates the file. It is derived from the log, so recovery
rebuilds a damaged one.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, write_all

ENTRY = struct.Struct(">hqqqq")
ENTRY_SIZE = ENTRY.size
# One page of entries: a reader mostly needs one or two, and one of all needs little memory.
ENTRIES_PER_READ = 4096 // ENTRY_SIZE
_VERSION = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTxn:
    """One aborted transaction: producer, first offset, marker offset, and the LSO just after."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedTxns:
    """The transactions that one segment has for a range; later ones may have more if incomplete."""

    found: list[AbortedTxn]
    is_complete: bool


class TxnIndex:
    """The `.txnindex` file of one segment. Not thread-safe; belongs to its segment.

    It keeps a descriptor only while it holds bytes that are not yet synced: a file with unflushed
    bytes is never closed, because a later descriptor might not report that they were lost.
    """

    __slots__ = ("_changes", "_fd", "_files", "_last_offset", "_size", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._fd = -1
        self.path = path
        self._size = -1
        self._changes = 0  # counts writes and cuts, so that a sync can name those that it covers
        self._last_offset = -1

    @property
    def size_bytes(self) -> int:
        """The file's length; 0 before the first abort."""
        if self._size < 0:
            self._measure()
        return self._size

    def append(self, txn: AbortedTxn) -> None:
        """Add an abort whose marker was just written. A failed write leaves no half entry."""
        size = self.size_bytes
        assert txn.last_offset > self._last_offset, f"{txn} is not behind {self._last_offset}"
        entry = ENTRY.pack(
            _VERSION, txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset
        )
        if self._fd < 0:
            self._fd = self._files.open(self.path, os.O_RDWR | os.O_CREAT)
        try:
            self._files.seek(self._fd, size)
            write_all(self._files, self._fd, entry)
        except OSError:
            self._files.truncate(self._fd, size)
            raise
        self._size = size + ENTRY_SIZE
        self._changes += 1
        self._last_offset = txn.last_offset

    def aborted_between(self, first: int, upper: int) -> AbortedTxns:
        """Return the transactions that overlap with `first` up to but not including `upper`."""
        found = []
        for txn in self._entries_from(self._first_ending_at(first)):
            if txn.first_offset < upper:
                found.append(txn)
            # Transactions aborted later began at or above this entry's last stable offset.
            if txn.last_stable_offset >= upper:
                return AbortedTxns(found=found, is_complete=True)
        return AbortedTxns(found=found, is_complete=False)

    def entries(self) -> Iterator[AbortedTxn]:
        """Yield all entries in order; StorageCorrupt at one that cannot be an entry."""
        return self._entries_from(0)

    def check(self, base_offset: int, end_offset: int) -> None:
        """Raise StorageCorrupt unless the file can belong to a segment of these offsets."""
        if self.size_bytes % ENTRY_SIZE:
            reason = f"{self._size} bytes are not a multiple of {ENTRY_SIZE}"
            raise StorageCorrupt(self.path, self._size, reason)
        before = -1
        for number, txn in enumerate(self.entries()):
            # A marker follows at least one record, and the last stable offset is at most behind it.
            is_sane = (
                txn.producer_id >= 0
                and 0 <= txn.first_offset < txn.last_offset
                and 0 <= txn.last_stable_offset <= txn.last_offset + 1
            )
            if not (is_sane and max(before + 1, base_offset) <= txn.last_offset < end_offset):
                reason = f"{txn} cannot be in a segment from {base_offset} to {end_offset}"
                raise StorageCorrupt(self.path, number * ENTRY_SIZE, reason)
            before = txn.last_offset

    def truncate_to(self, offset: int) -> None:
        """Remove aborts whose markers are at or above `offset`; durable on return.

        An entry that reappeared after a crash would make readers skip the next records there.
        """
        number = self._first_ending_at(offset)
        if number * ENTRY_SIZE < self.size_bytes:
            self._cut(number * ENTRY_SIZE)
            # The descriptor stays open: a flush in another thread may be using it.
            self._files.datasync(self._fd)

    def reset(self) -> None:
        """Remove all entries, or a damaged file, before the segment's recovery fills it again."""
        if self._files.exists(self.path):
            self._cut(0)

    def unsynced(self) -> tuple[int, int] | None:
        """Return the descriptor to sync and a mark of what this covers; None if all is synced.

        The descriptor stays open until `synced` is called, so another thread may sync it meanwhile,
        whatever happens here.
        """
        return None if self._fd < 0 else (self._fd, self._changes)

    def synced(self, mark: int) -> None:
        """Record that everything up to the mark of `unsynced` is on the disk."""
        if mark == self._changes:
            self.close()

    def close(self) -> None:
        """Close the descriptor. The caller has synced the file or is about to remove it."""
        if self._fd >= 0:
            self._files.close(self._fd)
            self._fd = -1

    def _measure(self) -> None:
        with self._opened() as fd:
            self._size = self._files.size(fd) if fd >= 0 else 0
            if self._size >= ENTRY_SIZE:
                self._last_offset = self._read_entry(fd, self._size // ENTRY_SIZE - 1).last_offset

    def _first_ending_at(self, offset: int) -> int:
        """Return the number of the first entry whose marker is at or above `offset`; sorted."""
        low, high = 0, self.size_bytes // ENTRY_SIZE
        if high == 0:
            return 0
        with self._opened() as fd:
            while low < high:
                middle = (low + high) // 2
                if self._read_entry(fd, middle).last_offset < offset:
                    low = middle + 1
                else:
                    high = middle
        return low

    def _entries_from(self, number: int) -> Iterator[AbortedTxn]:
        # Never the whole file at once: a segment may hold millions of aborts.
        end = self.size_bytes // ENTRY_SIZE
        if number >= end:
            return
        with self._opened() as fd:
            for start in range(number, end, ENTRIES_PER_READ):
                count = min(ENTRIES_PER_READ, end - start)
                block = self._files.pread(fd, count * ENTRY_SIZE, start * ENTRY_SIZE)
                for index in range(len(block) // ENTRY_SIZE):
                    yield self._decode(block, index * ENTRY_SIZE, start + index)

    def _read_entry(self, fd: int, number: int) -> AbortedTxn:
        data = self._files.pread(fd, ENTRY_SIZE, number * ENTRY_SIZE)
        return self._decode(data, 0, number)

    def _decode(self, data: bytes, position: int, number: int) -> AbortedTxn:
        at = number * ENTRY_SIZE
        if len(data) < position + ENTRY_SIZE:
            raise StorageCorrupt(self.path, at, "the entry is cut off")
        version, producer_id, first, last, stable = ENTRY.unpack_from(data, position)
        if version != _VERSION:
            raise StorageCorrupt(self.path, at, f"version is {version}, not {_VERSION}")
        return AbortedTxn(
            producer_id=producer_id, first_offset=first, last_offset=last, last_stable_offset=stable
        )

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Yield a descriptor for reading; -1 when there is no file."""
        if self._fd >= 0:
            yield self._fd
            return
        try:
            fd = self._files.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            yield -1
            return
        try:
            yield fd
        finally:
            self._files.close(fd)

    def _cut(self, size: int) -> None:
        if self._fd < 0:
            self._fd = self._files.open(self.path, os.O_RDWR)
        self._files.truncate(self._fd, size)
        self._size = size
        self._changes += 1
        self._last_offset = -1
        if size:
            self._last_offset = self._read_entry(self._fd, size // ENTRY_SIZE - 1).last_offset
