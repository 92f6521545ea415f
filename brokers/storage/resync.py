"""Searches at and behind a flaw in a log file for a lost page and for sound batches.

Decides nothing. A batch is found again without trusting a single byte in front of it: by its magic,
at the right distance from a plausible next offset, and by its CRC.
"""

from collections.abc import Iterator
from typing import Final

from brokers.protocol.records.batch import (
    CHECKED_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    MIN_LENGTH,
)
from brokers.protocol.records.crc32c import crc32c
from brokers.storage.files import Files

# Damage is local and batches are at most a few megabytes long, so a sound one is near.
SEARCH_BYTES: Final = 64 * 1024 * 1024
MAX_BATCH_BYTES: Final = 16 * 1024 * 1024
# Payload may look like headers everywhere; this bounds the search to about a second.
MAX_CHECKED_BYTES: Final = 4 * 1024**3
# File systems allocate, write and lose whole pages; one that was never written reads as zeros.
PAGE_BYTES: Final = 4096
_BLOCK_BYTES: Final = 1024 * 1024
_MAGIC_BYTE: Final = bytes([MAGIC])


def has_lost_page(files: Files, fd: int, position: int, stop: int) -> bool:
    """Tell whether the bad batch at `position` has a hole that only a lost page leaves.

    Either nothing from its beginning to the end of that page was written, or one of the next pages
    that it reaches was not. A crash does that to bytes that were not synced; rot hardly ever does.
    """
    if position >= stop:
        return False
    page_end = position - position % PAGE_BYTES + PAGE_BYTES
    head = files.pread(fd, min(page_end, stop) - position, position)
    if not any(head):
        return True
    if len(head) < HEADER_SIZE:
        head = files.pread(fd, HEADER_SIZE, position)
    if len(head) < HEADER_SIZE:
        return False
    size = HEADER.unpack_from(head)[1] + LOG_OVERHEAD
    end = min(position + size, position + MAX_BATCH_BYTES, stop)
    return any(
        not any(files.pread(fd, min(PAGE_BYTES, stop - page), page))
        for page in range(page_end, end, PAGE_BYTES)
    )


def has_sound_batch(files: Files, fd: int, position: int, stop: int, next_offset: int) -> bool:
    """Tell whether a batch that may follow on `next_offset` begins behind `position`."""
    return next(sound_batches(files, fd, position, stop, next_offset), None) is not None


def sound_batches(
    files: Files, fd: int, position: int, stop: int, next_offset: int
) -> Iterator[int]:
    """Yield the starts of batches behind `position` that may follow on `next_offset`.

    A payload may hold whole batches, too: nested ones are found like those of the log.
    """
    budget = MAX_CHECKED_BYTES
    stop = min(stop, position + SEARCH_BYTES)
    for start in range(position + 1, stop, _BLOCK_BYTES):
        # Headers that begin in this block may end in the next one.
        block = files.pread(fd, min(_BLOCK_BYTES + HEADER_SIZE, stop - start), start)
        magic_at = block.find(_MAGIC_BYTE, MAGIC_POSITION)
        while 0 <= magic_at <= len(block) - HEADER_SIZE + MAGIC_POSITION:
            at = magic_at - MAGIC_POSITION
            base, length, _, _, crc, _, delta, *_ = HEADER.unpack_from(block, at)
            size = length + LOG_OVERHEAD
            if (
                base >= next_offset
                and delta >= 0
                and MIN_LENGTH <= length < MAX_BATCH_BYTES
                and start + at + size <= stop
            ):
                budget -= size
                if budget < 0:
                    return
                checked = start + at + CHECKED_POSITION
                if crc32c(files.pread(fd, size - CHECKED_POSITION, checked)) == crc:
                    yield start + at
            magic_at = block.find(_MAGIC_BYTE, magic_at + 1)
