"""Finds damaged ranges inside of a log file, and the batches behind them.

Uses one file and its offset index. A hole begins where a batch ends and the next one is missing, so
the caller must have come there from batch to batch. It ends at the next confirmed batch: the index
names it and its header agrees, or its CRC is right and an unbroken chain of batches begins with it.
"""

from typing import Final, NamedTuple

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files
from brokers.storage.headers import Header, header_at, walk
from brokers.storage.offset_index import IndexEntry, OffsetIndex
from brokers.storage.resync import sound_batches

# The range that is searched byte by byte for sound batches: sixteen times the distance of entries
# at Kafka's interval, and at most 50 ms of work for a payload made to look like headers. A longer
# hole extends to the next entry.
_SEARCHED_BYTES: Final = 64 * 1024
# Stands for the next offset if no sound batch follows in the file.
UNKNOWN_OFFSET: Final = 2**63 - 1


class Hole(NamedTuple):
    """Bytes from `start` up to `end` without a sound batch; the offsets up to the next are lost."""

    start: int
    end: int
    first_offset: int
    next_offset: int

    def covers(self, position: int) -> bool:
        return self.start <= position < self.end

    @property
    def offsets(self) -> str:
        """Return the lost offsets, as words for a message."""
        if self.next_offset == UNKNOWN_OFFSET:
            return f"from offset {self.first_offset} to the end of the file"
        return f"from offset {self.first_offset} to {self.next_offset - 1}"


class RecordsDamaged(StorageCorrupt):
    """The requested offset is lost in `hole`; the records around it are served."""

    def __init__(self, path: str, hole: Hole, reason: str) -> None:
        super().__init__(path, hole.start, f"the records {hole.offsets} are damaged ({reason})")
        self.hole = hole


def confirmed(files: Files, fd: int, size: int, entry: IndexEntry) -> Header | None:
    """Return the header of the batch that an entry names; None unless both agree."""
    header = header_at(files, fd, entry.position, size)
    return header if header is not None and header.last_offset == entry.offset else None


def confirmed_before(
    files: Files, fd: int, size: int, index: OffsetIndex, number: int
) -> Header | None:
    """Return a batch that this entry names, or one of the entries before it.

    The steps back double, so that few headers are read however many entries are wrong.
    """
    step = 1
    while number >= 0:
        header = confirmed(files, fd, size, index.entry(number))
        if header is not None:
            return header
        number -= step
        step *= 2
    return None


def find_hole(
    files: Files,
    fd: int,
    path: str,
    *,
    index: OffsetIndex,
    position: int,
    size: int,
    first_offset: int,
    doubted_until: int = 0,
) -> Hole:
    """Find the hole that begins at `position`, in a file of `size` bytes.

    It ends at or behind `doubted_until`, unless an entry of the index confirms a batch in front.
    """
    following = _confirmed_behind(files, fd, size, index, position)
    stop = size if following is None else following.position
    bound = min(stop, position + _SEARCHED_BYTES)
    for start in sound_batches(files, fd, max(position, doubted_until - 1), bound, first_offset):
        first = _chained(files, fd, path, position=start, bound=bound, stop=stop)
        if first is not None:
            return Hole(position, start, first_offset, first.base_offset)
    if following is None:
        return Hole(position, size, first_offset, UNKNOWN_OFFSET)
    return Hole(position, following.position, first_offset, following.base_offset)


def _confirmed_behind(
    files: Files, fd: int, size: int, index: OffsetIndex, position: int
) -> Header | None:
    """Return the next batch behind `position` that an entry names and its header confirms.

    Damage is mostly local, so the steps begin small; they double, and the last one is halved until
    it is exact, so that damage of any length costs a few dozen reads.
    """
    count, failed, step = index.file.entries, index.number_at(position), 1
    found: Header | None = None
    reached = count
    while found is None and failed + 1 < count:
        reached = min(failed + step, count - 1)
        found = confirmed(files, fd, size, index.entry(reached))
        if found is None:
            failed = reached
        step *= 2
    while found is not None and reached - failed > 1:
        middle = (failed + reached) // 2
        header = confirmed(files, fd, size, index.entry(middle))
        if header is None:
            failed = middle
        else:
            found, reached = header, middle
    return found


def _chained(
    files: Files, fd: int, path: str, *, position: int, bound: int, stop: int
) -> Header | None:
    """Return the batch at `position` if others follow without a gap past `bound` or to `stop`."""
    first: Header | None = None
    try:
        for header in walk(files, fd, path, position, stop, is_trusted=False):
            first = first or header
            if header.end >= bound:
                break
    except StorageCorrupt:
        return None
    return first
