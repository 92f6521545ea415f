"""Reads a doubtful log file batch by batch, and stops at the first one that is not sound.

A flaw is a position and a reason; `recovery` decides what it means. Every batch is checked as a
whole (bounds, magic, CRC, consecutive offsets and epochs), at one large read per megabyte and two
microseconds per batch.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, TypeAlias

from brokers.protocol.records.batch import (
    CHECKED_POSITION,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MIN_LENGTH,
    Batch,
    stored_max_timestamp,
)
from brokers.protocol.records.crc32c import crc32c
from brokers.storage.files import Files

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and max
# timestamp, producer id.
_POINTS: Final = Struct(">qiibIhiqqq")
# Large enough that the cost of reads is negligible, small enough to stay in the cache.
BLOCK_BYTES: Final = 1024 * 1024

# A batch that passed: position, size, base offset, last offset, leader epoch, max timestamp,
# producer id. A plain tuple, because a recovery makes one for each of millions.
Sound: TypeAlias = tuple[int, int, int, int, int, int, int]


class Scan:
    """One pass over one file, from `position`, where a batch must begin, up to `stop`.

    After the pass `position` and `next_offset` are the end of the sound part, and `flaw` is the
    reason if that is not at `stop`. The batch there may be `is_cut_off`, lacking only its end, or
    `is_whole`: it passes its CRC and yet cannot follow, which no crash leaves.
    """

    __slots__ = (
        "_at",
        "_block",
        "_fd",
        "_files",
        "epoch",
        "flaw",
        "is_cut_off",
        "is_whole",
        "next_offset",
        "position",
        "stop",
    )

    def __init__(
        self, files: Files, fd: int, *, position: int, stop: int, next_offset: int, epoch: int = -1
    ) -> None:
        self._files = files
        self._fd = fd
        self.epoch = epoch  # of the newest batch; later ones have this or a newer one
        self._block = memoryview(b"")
        self._at = 0  # the start of the latest batch in the block
        self.position = position
        self.stop = stop
        self.next_offset = next_offset  # the lowest base offset allowed for the next batch
        self.flaw: str | None = None
        self.is_cut_off = False
        self.is_whole = False

    def __iter__(self) -> Iterator[Sound]:
        unpack, block, start = _POINTS.unpack_from, self._block, self.position
        position, stop, next_offset, epoch = start, self.stop, self.next_offset, self.epoch
        while position < stop:
            at = position - start
            if at + HEADER_SIZE > len(block):
                block, start, at = self._read(position), position, 0
                if len(block) < HEADER_SIZE:
                    self.flaw = f"{len(block)} bytes hold no batch header"
                    self.is_cut_off = True
                    return
            # fmt: off
            (base, length, batch_epoch, magic, crc, attributes, delta, first_timestamp, timestamp,
             producer) = unpack(block, at)
            # fmt: on
            size = length + LOG_OVERHEAD
            if (
                base < next_offset
                or magic != MAGIC
                or delta < 0
                or length < MIN_LENGTH
                or position + size > stop
                or 0 <= batch_epoch < epoch
            ):
                self.flaw = (
                    f"no batch may follow with base offset {base} (at least {next_offset}), "
                    f"magic {magic}, length {length} ({stop - position} bytes are left), "
                    f"last offset delta {delta} and leader epoch {batch_epoch} (at least {epoch})"
                )
                if magic == MAGIC and delta >= 0 and length >= MIN_LENGTH:
                    self.is_cut_off = position + size > stop and base >= next_offset
                    self.is_whole = position + size <= stop and crc == self._crc(
                        position + CHECKED_POSITION, size - CHECKED_POSITION
                    )
                return
            if at + size > len(block) and at > 0:
                block, start, at = self._read(position), position, 0
            if at + size > len(block):
                actual = self._crc(position + CHECKED_POSITION, size - CHECKED_POSITION)
            else:
                actual = crc32c(block[at + CHECKED_POSITION : at + size])
            if actual != crc:
                self.flaw = f"CRC is {actual:#010x}, the batch says {crc:#010x}"
                return
            next_offset = base + delta + 1
            self._block, self._at = block, at
            self.position, self.next_offset = position + size, next_offset
            self.epoch = epoch = batch_epoch
            if timestamp <= 0 or first_timestamp > timestamp:
                timestamp = stored_max_timestamp(attributes, first_timestamp, timestamp)
            yield position, size, base, next_offset - 1, batch_epoch, timestamp, producer
            position += size

    def batch(self, position: int, size: int) -> Batch:
        """Return the latest batch, in full."""
        assert position + size == self.position, "only the latest batch is at hand"
        view = self._block[self._at : self._at + size]
        if len(view) < size:
            view = memoryview(self._files.pread(self._fd, size, position))
        return Batch(view)

    def _read(self, position: int) -> memoryview:
        length = min(BLOCK_BYTES, self.stop - position)
        return memoryview(self._files.pread(self._fd, length, position))

    def _crc(self, position: int, length: int) -> int:
        """Compute the CRC of a batch larger than a block in parts: its length may be wrong."""
        crc = 0
        while length > 0:
            data = self._files.pread(self._fd, min(BLOCK_BYTES, length), position)
            if not data:
                break
            crc = crc32c(data, crc)
            position += len(data)
            length -= len(data)
        return crc
