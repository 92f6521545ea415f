"""Finds batches of a segment where its index has failed.

Distinguishes damage to the file from a wrong index by a walk from the nearest batch that an entry
names and its header confirms. A flaw on such a walk is damage, and the walk goes on behind the
hole. An entry is wrong if it names no batch and no damage explains that; it is also wrong if the
batch is too far behind it. Then the indexes are rebuilt. No walk is longer than an index with all
its entries would ever require.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from brokers.storage.errors import StorageCorrupt
from brokers.storage.headers import Header, NoBatch
from brokers.storage.holes import (
    UNKNOWN_OFFSET,
    Hole,
    RecordsDamaged,
    confirmed,
    confirmed_before,
    find_hole,
)
from brokers.storage.index_rebuild import IndexUnfinished
from brokers.storage.log_config import LogConfig
from brokers.storage.offset_index import IndexEntry

if TYPE_CHECKING:
    from brokers.storage.segment import Segment

# The longest walk behind an entry: 3 ms for small batches. The next entry is much closer unless the
# index has lost some, or the interval is larger.
_WALK_BYTES: Final = 512 * 1024
# A walk past so few batches costs next to nothing, however large they are.
_FREE_BATCHES: Final = 16
# Holes of one segment. The next one extends to the end of the file: with so much damage, the
# remaining batches cannot be identified.
MAX_HOLES: Final = 64


class Walked:
    """How far a walk has come behind an entry; holes cost nothing."""

    __slots__ = ("_batches", "_bytes", "_most")

    def __init__(self, config: LogConfig) -> None:
        self._batches = self._bytes = 0
        self._most = reach(config)

    def is_too_far(self, header: Header) -> bool:
        """Count one more batch; True if an entry is missing on the way."""
        self._batches += 1
        self._bytes += header.size
        return self._bytes > self._most and self._batches > _FREE_BATCHES


def reach(config: LogConfig) -> int:
    """Return how many bytes behind an entry a lookup may search for a batch."""
    return max(_WALK_BYTES, 2 * config.index_interval_bytes)


def find_around(
    segment: "Segment", offset: int, config: LogConfig, *, is_rebuilt: bool = False
) -> Header | None:
    """Find the first batch that does not end below `offset`, where the index did not lead to it.

    RecordsDamaged if it is in a hole, IndexUnfinished if the index must be made first.
    """
    if segment.rebuild is not None:
        raise IndexUnfinished(segment.file.path)
    index = segment.offset_index
    number = index.number_of(offset)
    if not (is_rebuilt or is_explained(segment, index.entry(number), config)):
        segment.rebuild_in_steps(config)
        return find_around(segment, offset, config, is_rebuilt=True)
    walked = Walked(config)
    for header in segment.headers(start_before(segment, number)):
        if header.last_offset >= offset:
            if header.base_offset > offset:
                _refuse_lost(segment, offset, header.position)
            return header
        if walked.is_too_far(header) and not is_rebuilt:
            segment.rebuild_in_steps(config)
            return find_around(segment, offset, config, is_rebuilt=True)
    _refuse_lost(segment, offset, segment.size)
    return None


def is_explained(segment: "Segment", entry: IndexEntry, config: LogConfig) -> bool:
    """Tell whether an entry is right, or damage hides its batch; otherwise the index is wrong."""
    if entry.position == 0:
        return True
    fd = segment.handles.open(segment.file)
    if confirmed(segment.handles.files, fd, segment.size, entry) is not None:
        return True
    number = segment.offset_index.number_at(entry.position) - 1
    walked = Walked(config)
    for header in segment.headers(start_before(segment, number)):
        if header.position >= entry.position or walked.is_too_far(header):
            break
    return any(hole.covers(entry.position) for hole in segment.holes)


def start_before(segment: "Segment", number: int) -> int:
    """Return the start of a walk: a batch that an entry up to this one names, or 0."""
    fd = segment.handles.open(segment.file)
    files, index = segment.handles.files, segment.offset_index
    header = confirmed_before(files, fd, segment.size, index, number)
    return 0 if header is None else header.position


def hole_at(segment: "Segment", flaw: StorageCorrupt) -> Hole:
    """Return the hole that begins at a flaw found by a walk; record a new one."""
    for hole in segment.holes:
        if hole.covers(flaw.position):
            return hole
    if isinstance(flaw, NoBatch) and flaw.last_offset is not None:
        first_offset = flaw.last_offset + 1
    else:
        first_offset = _offset_at(segment, flaw.position)
    doubted_until = flaw.doubted_until if isinstance(flaw, NoBatch) else flaw.position + 1
    if len(segment.holes) < MAX_HOLES:
        hole = find_hole(
            segment.handles.files,
            segment.handles.open(segment.file),
            segment.file.path,
            index=segment.offset_index,
            position=flaw.position,
            size=segment.size,
            first_offset=first_offset,
            doubted_until=doubted_until,
        )
    else:
        hole = Hole(flaw.position, segment.size, first_offset, UNKNOWN_OFFSET)
    others = [one for one in segment.holes if not hole.covers(one.start)]
    segment.holes = sorted([*others, hole])
    segment.handles.note_damage(RecordsDamaged(segment.file.path, hole, flaw.reason))
    return hole


def _offset_at(segment: "Segment", position: int) -> int:
    """Return the offset behind the last batch in front of a flaw at `position`."""
    segment.settle()
    start = start_before(segment, segment.offset_index.number_at(position - 1))
    next_offset = segment.base_offset
    if position - start <= _WALK_BYTES:
        # Another hole in between leaves it too low, which is harmless: batches in there are found
        # on the way.
        with suppress(StorageCorrupt):
            for header in segment.walk(start):
                if header.position >= position:
                    break
                next_offset = header.last_offset + 1
    return next_offset


def _refuse_lost(segment: "Segment", offset: int, position: int) -> None:
    """Raise RecordsDamaged if the hole in front of `position` covers `offset`."""
    for hole in segment.holes:
        if hole.end == position and hole.first_offset <= offset:
            raise RecordsDamaged(segment.file.path, hole, f"offset {offset} is one of them")
