"""Walks through a log file from batch to batch, by their headers alone.

Knows no offsets to expect and checks no CRC: this is for files known to be whole, where it costs
one small read per few kilobytes. What cannot be a batch is StorageCorrupt; `scan` is for files in
doubt.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from brokers.protocol.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MIN_LENGTH
from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files

# Base offset, length, leader epoch, magic, last offset delta, max timestamp; the rest is skipped.
_POINTS: Final = Struct(">qiib6xi8xq")
# Holds all batches between two entries of a sparse index at the usual interval of 4 KiB.
_BLOCK_BYTES: Final = 8192


class Header(NamedTuple):
    """Where one batch is, in the file and in the log."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int

    @property
    def end(self) -> int:
        return self.position + self.size


class NoBatch(StorageCorrupt):
    """No batch begins where one must; `last_offset` is that of the batch in front, if known."""

    def __init__(self, path: str, position: int, reason: str, last_offset: int | None) -> None:
        super().__init__(path, position, reason)
        self.last_offset = last_offset


def walk(files: Files, fd: int, path: str, position: int, stop: int) -> Iterator[Header]:
    """The headers of the batches from `position` up to `stop`, where the last one ends.

    NoBatch where there is none.
    """
    block, start, size = b"", position, 0
    last_offset: int | None = None
    while position < stop:
        at = position - start
        if at + HEADER_SIZE > len(block):
            # Large batches lie one per block, so behind one only the next header is worth reading.
            wanted = _BLOCK_BYTES if size <= _BLOCK_BYTES // 2 else HEADER_SIZE
            block, start, at = files.pread(fd, min(wanted, stop - position), position), position, 0
            if len(block) < HEADER_SIZE:
                reason = f"{len(block)} bytes hold no batch header"
                raise NoBatch(path, position, reason, last_offset)
        base_offset, length, epoch, magic, delta, max_timestamp = _POINTS.unpack_from(block, at)
        size = length + LOG_OVERHEAD
        if magic != MAGIC or length < MIN_LENGTH or delta < 0 or position + size > stop:
            reason = f"no batch, with magic {magic}, length {length} and last offset delta {delta}"
            raise NoBatch(path, position, reason, last_offset)
        last_offset = base_offset + delta
        yield Header(position, size, base_offset, last_offset, max_timestamp, epoch)
        position += size


def header_at(files: Files, fd: int, position: int, stop: int) -> Header | None:
    """What begins at `position` and ends at or before `stop`; None if that is no batch."""
    data = files.pread(fd, HEADER_SIZE, position)
    if len(data) < HEADER_SIZE:
        return None
    base_offset, length, epoch, magic, delta, max_timestamp = _POINTS.unpack_from(data)
    size = length + LOG_OVERHEAD
    if magic != MAGIC or length < MIN_LENGTH or delta < 0 or position + size > stop:
        return None
    return Header(position, size, base_offset, base_offset + delta, max_timestamp, epoch)


def seek(
    files: Files,
    fd: int,
    path: str,
    position: int,
    stop: int,
    offset: int,
    first_ends_at: int | None,
    limit: int | None = None,
) -> Header | None:
    """The first batch from `position` on that does not end below `offset`; None if there is none.

    `first_ends_at` is what an index says of the batch at `position`, and must be true. Batches that
    begin at or behind `limit` are not looked at. This is `walk` without a stop at every batch: cold
    readers pay for each one in between.
    """
    unpack = _POINTS.unpack_from
    block, start, size = b"", position, 0
    if limit is None:
        limit = stop
    while position < limit:
        at = position - start
        if at + HEADER_SIZE > len(block):
            wanted = _BLOCK_BYTES if size <= _BLOCK_BYTES // 2 else HEADER_SIZE
            block, start, at = files.pread(fd, min(wanted, stop - position), position), position, 0
            if len(block) < HEADER_SIZE:
                break
        base_offset, length, epoch, magic, delta, max_timestamp = unpack(block, at)
        size = length + LOG_OVERHEAD
        last_offset = base_offset + delta
        if first_ends_at is not None and last_offset != first_ends_at:
            raise StorageCorrupt(path, position, f"it ends at {last_offset}, not {first_ends_at}")
        first_ends_at = None
        if magic != MAGIC or length < MIN_LENGTH or position + size > stop:
            raise StorageCorrupt(path, position, f"no batch, with magic {magic}, length {length}")
        if last_offset >= offset:
            return Header(position, size, base_offset, last_offset, max_timestamp, epoch)
        position += size
    return None
