"""Walks through a log file from batch to batch, by their headers alone.

Checks no CRC: this is for files known to be whole, where it costs one small read per few kilobytes.
An invalid header is StorageCorrupt; `scan` is for doubtful files.

No CRC covers a base offset, so a walk compares it with the batches on both sides. A batch that
begins right behind the one in front, and has as many records as offsets, needs no comparison with
the one behind. Others do: gaps are normal in a compacted log only.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from brokers.protocol.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MIN_LENGTH,
    stored_max_timestamp,
)
from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files
from brokers.storage.offset_index import IndexEntry

# Base offset, length, leader epoch, magic, attributes, last offset delta, base and max timestamp,
# record count; the rest is skipped.
_POINTS: Final = Struct(">qiib4xhiqq14xi")
_BASE_OFFSET: Final = Struct(">q")
# Holds all batches between two entries of a sparse index at the usual interval of 4 KiB.
_BLOCK_BYTES: Final = 8192
# Stands for an unknown last offset of the batch in front; -1 in front of offset 0.
NO_OFFSET: Final = -2
# Stands for an unknown upper bound of a file's offsets.
NO_BOUND: Final = 2**63 - 1


class Header(NamedTuple):
    """The position of one batch, in the file and in the log."""

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
    """No batch begins at a required position; `last_offset` is of the batch in front, if known.

    No batch that begins in front of `doubted_until` can be trusted either.
    """

    def __init__(
        self,
        path: str,
        position: int,
        reason: str,
        last_offset: int | None,
        doubted_until: int | None = None,
    ) -> None:
        super().__init__(path, position, reason)
        self.last_offset = last_offset
        self.doubted_until = position + 1 if doubted_until is None else doubted_until


def walk(
    files: Files,
    fd: int,
    path: str,
    position: int,
    stop: int,
    *,
    last_offset: int = NO_OFFSET,
    bound: int = NO_BOUND,
    is_trusted: bool = True,
) -> Iterator[Header]:
    """Yield the headers of the batches from `position` to `stop`, where the last one ends.

    NoBatch where there is none, or one whose offsets contradict its neighbours. `last_offset` is
    that of the batch in front; without it the first batch is accepted if it `is_trusted`. All
    offsets are below `bound`.
    """
    block, start, size = b"", position, 0
    is_believed = is_trusted and last_offset == NO_OFFSET
    while position < stop:
        at = position - start
        if at + HEADER_SIZE > len(block):
            # A large batch fills its block, so behind it only the next header is worth reading.
            wanted = _BLOCK_BYTES if size <= _BLOCK_BYTES // 2 else HEADER_SIZE
            block, start, at = files.pread(fd, min(wanted, stop - position), position), position, 0
            if len(block) < HEADER_SIZE:
                reason = f"{len(block)} bytes hold no batch header"
                raise NoBatch(path, position, reason, _known(last_offset))
        base, length, epoch, magic, attributes, delta, first_timestamp, timestamp, count = (
            _POINTS.unpack_from(block, at)
        )
        size = length + LOG_OVERHEAD
        if (
            magic != MAGIC
            or length < MIN_LENGTH
            or delta < 0
            or count > delta + 1
            or position + size > stop
        ):
            reason = (
                f"no batch, with magic {magic}, length {length}, last offset delta {delta} and "
                f"record count {count}"
            )
            raise NoBatch(path, position, reason, _known(last_offset))
        reached = base + delta
        if base <= last_offset or reached >= bound:
            reason = f"offsets {base} to {reached} between {last_offset} and {bound}"
            raise NoBatch(path, position, reason, _known(last_offset))
        if timestamp <= 0 or first_timestamp > timestamp:
            timestamp = stored_max_timestamp(attributes, first_timestamp, timestamp)
        header = Header(position, size, base, reached, timestamp, epoch)
        if (base != last_offset + 1 or count != delta + 1) and not is_believed:
            following = _base_offset_at(files, fd, header.end, stop, block, start)
            if following is not None and following <= reached:
                _refuse_contradicted(files, fd, path, header, count, stop, last_offset, bound)
        is_believed = False
        last_offset = reached
        yield header
        position += size


def header_at(files: Files, fd: int, position: int, stop: int) -> Header | None:
    """Return the batch from `position` that ends at or before `stop`; None if it is invalid."""
    data = files.pread(fd, HEADER_SIZE, position)
    if len(data) < HEADER_SIZE:
        return None
    base_offset, length, epoch, magic, attributes, delta, first_timestamp, timestamp, count = (
        _POINTS.unpack_from(data)
    )
    size = length + LOG_OVERHEAD
    if (
        magic != MAGIC
        or length < MIN_LENGTH
        or delta < 0
        or count > delta + 1
        or position + size > stop
    ):
        return None
    timestamp = stored_max_timestamp(attributes, first_timestamp, timestamp)
    return Header(position, size, base_offset, base_offset + delta, timestamp, epoch)


def seek(
    files: Files,
    fd: int,
    path: str,
    entry: IndexEntry,
    stop: int,
    offset: int,
    limit: int,
) -> Header | None:
    """Find the first batch from an entry on that does not end below `offset`, or None.

    The entry must match the batch at its position; the one at 0 says where the file begins. Batches
    that begin at or behind `limit` are skipped. This is `walk` without a stop at every batch: cold
    readers pay for each one in between. It does not tell which of two batches is wrong.
    """
    unpack = _POINTS.unpack_from
    first_ends_at, position = entry
    last_offset, is_confirmed = NO_OFFSET, True
    if position == 0:
        last_offset, is_confirmed = first_ends_at - 1, False
    block, start, size = b"", position, 0
    while position < limit:
        at = position - start
        if at + HEADER_SIZE > len(block):
            wanted = _BLOCK_BYTES if size <= _BLOCK_BYTES // 2 else HEADER_SIZE
            block, start, at = files.pread(fd, min(wanted, stop - position), position), position, 0
            if len(block) < HEADER_SIZE:
                break
        base, length, epoch, magic, attributes, delta, first_timestamp, timestamp, count = unpack(
            block, at
        )
        size = length + LOG_OVERHEAD
        reached = base + delta
        if is_confirmed and reached != first_ends_at:
            raise StorageCorrupt(path, position, f"it ends at {reached}, not {first_ends_at}")
        if magic != MAGIC or length < MIN_LENGTH or position + size > stop or count > delta + 1:
            raise StorageCorrupt(path, position, f"no batch, with magic {magic}, length {length}")
        if base <= last_offset:
            raise StorageCorrupt(path, position, f"offset {base} behind {last_offset}")
        if reached >= offset:
            if (base != last_offset + 1 or count != delta + 1) and not is_confirmed:
                following = _base_offset_at(files, fd, position + size, stop, block, start)
                if following is not None and following <= reached:
                    raise StorageCorrupt(path, position, f"{reached} in front of {following}")
            timestamp = stored_max_timestamp(attributes, first_timestamp, timestamp)
            return Header(position, size, base, reached, timestamp, epoch)
        is_confirmed = False
        last_offset = reached
        position += size
    return None


def _known(last_offset: int) -> int | None:
    return None if last_offset == NO_OFFSET else last_offset


def _base_offset_at(
    files: Files, fd: int, position: int, stop: int, block: bytes, start: int
) -> int | None:
    """Return the base offset at `position`, from the block at `start` if there; None at the end."""
    if position + _BASE_OFFSET.size > stop:
        return None
    at = position - start
    if at + _BASE_OFFSET.size > len(block):
        block, at = files.pread(fd, _BASE_OFFSET.size, position), 0
        if len(block) < _BASE_OFFSET.size:
            return None
    found: int = _BASE_OFFSET.unpack_from(block, at)[0]
    return found


def _refuse_contradicted(
    files: Files,
    fd: int,
    path: str,
    header: Header,
    count: int,
    stop: int,
    last_offset: int,
    bound: int,
) -> None:
    """Raise NoBatch if a batch is wrong whose last offset is not in front of the batch behind it.

    It is wrong if the batch behind it would not fit behind it, whatever its base offset were; the
    other is wrong if `count` records do not fit in front of it. Where neither is certain, both are
    doubted.
    """
    following = header_at(files, fd, header.end, stop)
    if following is None:
        return  # separate damage, which the walk meets next
    third = header_at(files, fd, following.end, stop)
    place_behind = (bound if third is None else third.base_offset) - header.last_offset - 1
    place_in_front = following.base_offset - last_offset - 1
    is_wrong = place_behind <= following.last_offset - following.base_offset
    if place_in_front < count and not is_wrong:
        return  # the walk refuses the batch behind
    reason = (
        f"offsets {header.base_offset} to {header.last_offset} in front of a batch that begins "
        f"with {following.base_offset}"
    )
    doubted_until = header.end if is_wrong else following.end
    raise NoBatch(path, header.position, reason, _known(last_offset), doubted_until)
