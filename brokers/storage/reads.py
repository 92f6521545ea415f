"""Plans reads by offset: finds the file and the position of the batches.

Reads headers, and records only to find their time; sends nothing. A plan ends at a batch boundary
and pins its file, so that the bytes can be sent later, straight from the file, however long that
takes.
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER_SIZE, Batch
from brokers.protocol.records.reader import stamp_from
from brokers.storage.dense_tail import DenseTail
from brokers.storage.files import Files
from brokers.storage.handles import LogFile
from brokers.storage.headers import Header
from brokers.storage.log_config import LogConfig
from brokers.storage.segment import Segment
from brokers.storage.segments import Segments
from brokers.storage.txn_index import AbortedTxn


class LogSlice:
    """Whole batches in one file: `length` bytes at `position`, the first batch from `base_offset`.

    The file stays open and uncut until `release`, which must be called exactly once. The file may
    be renamed or unlinked meanwhile.
    """

    __slots__ = ("base_offset", "file", "length", "position")

    def __init__(self, file: LogFile, position: int, length: int, base_offset: int) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.base_offset = base_offset
        file.pins += 1

    @property
    def fd(self) -> int:
        return self.file.fd

    def release(self) -> None:
        """Allow the file to be closed or cut."""
        file = self.file
        file.pins -= 1
        # `LogFile.unpin` inlined, to save every fetch the call.
        if file.doomed_by is not None and file.pins == 0:
            file.doomed_by.close(file)

    def read(self, files: Files) -> bytes:
        """Return the batches, for readers inside of the broker."""
        return read_fully(files, self.file.fd, self.length, self.position) if self.length else b""


# The file of empty slices; it is never opened, and counting its pins does no harm.
_NOWHERE: Final = LogFile("")

# The limits of decoding for the time of one record: less than 10 ms of work.
MAX_TIMED_RECORDS: Final = 10_000
MAX_TIMED_BYTES: Final = 2 * 1024 * 1024
# Batches emptied by compaction that one search passes before it gives up.
MAX_TIMED_BATCHES: Final = 64
# Batches without records that a read skips to begin with one that has some. So many take a few
# milliseconds if each is in a file of its own; past them a read begins with the first.
MAX_EMPTY: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecord:
    """A record found by its time."""

    offset: int
    timestamp: int
    leader_epoch: int


def nothing(offset: int) -> LogSlice:
    """Return the slice for a reader that has reached its limit."""
    return LogSlice(_NOWHERE, 0, 0, offset)


def read_fully(files: Files, fd: int, length: int, position: int) -> bytes:
    """Read `length` bytes that are known to be in the file."""
    data = files.pread(fd, length, position)
    while len(data) < length:
        more = files.pread(fd, length - len(data), position + len(data))
        assert more, f"the file ends at {position + len(data)}, {position + length} was expected"
        data += more
    return data


def read_dense(
    segments: Segments,
    tail: DenseTail,
    offset: int,
    max_bytes: int,
    max_offset: int | None,
    min_one_batch: bool,
) -> LogSlice:
    """Plan a read from the tail of recent batches, for an offset in it, without touching files."""
    bases, positions = tail.bases, tail.positions
    segment = segments.active
    if offset < segment.base_offset:
        segment = segments.holding(offset)
    index = bisect_right(bases, offset) - 1
    start = positions[index]
    stop = segment.start + segment.size
    if start + max_bytes < stop:
        fitting = bisect_right(positions, start + max_bytes) - 1
        if fitting > index:
            stop = positions[fitting]
        elif not min_one_batch:
            return nothing(offset)
        elif index + 1 < len(positions):
            stop = min(stop, positions[index + 1])
    if max_offset is not None:
        # The start of the batch that holds it: all batches in front of that one are below it.
        stop = min(stop, positions[bisect_right(bases, max_offset) - 1])
        if stop <= start:
            return nothing(offset)
    file = segment.file
    if file.fd < 0:
        segment.handles.open(file)
    file.was_used = True
    return LogSlice(file, start - segment.start, stop - start, bases[index])


def read_sparse(
    segments: Segments,
    offset: int,
    *,
    max_bytes: int,
    max_offset: int,
    end_offset: int,
    min_one_batch: bool,
    skips_empty: bool,
    config: LogConfig,
) -> LogSlice:
    """Plan a read by the sparse index, for an offset older than the tail of recent batches."""
    found = _first(
        segments,
        offset,
        max_offset=max_offset,
        end_offset=end_offset,
        config=config,
        max_empty=MAX_EMPTY if skips_empty else 0,
    )
    if found is None:
        return nothing(offset)
    index, first = found
    segment = segments[index]
    if first.size > max_bytes:
        if not min_one_batch:
            return nothing(offset)
        return LogSlice(segment.file, first.position, first.size, first.base_offset)
    bound = None if segments.end_of(index, end_offset) <= max_offset else max_offset
    end = segment.end_of_read(first, first.position + max_bytes, bound, config)
    return LogSlice(segment.file, first.position, end - first.position, first.base_offset)


def _first(
    segments: Segments,
    offset: int,
    *,
    max_offset: int,
    end_offset: int,
    config: LogConfig,
    max_empty: int,
) -> tuple[int, Header] | None:
    """Return the first batch to read, and its segment's index; skip up to `max_empty` empty ones.

    If all are empty, return the first. RecordsDamaged if its offsets are not in the log.
    """
    empty: tuple[int, Header] | None = None
    passed = 0
    for index in range(segments.index_of(offset), len(segments)):
        first = segments[index].find(offset, config)
        if first is None:
            # Compaction removed the end of this segment; continue with the next one.
            continue
        if first.last_offset >= max_offset:
            if first.last_offset >= end_offset:
                # An empty response would be repeated without end: no append makes it readable.
                segments[index].refuse(first, end_offset)
            return empty
        if first.size > HEADER_SIZE or max_empty == 0:
            return index, first
        reached = first.position
        for header in segments[index].headers(first.position):
            is_behind_damage = header.position > reached  # to be reported to the reader
            if header.last_offset >= max_offset or passed == max_empty or is_behind_damage:
                return empty
            reached = header.end
            if header.size > HEADER_SIZE:
                return index, header
            empty = empty or (index, header)
            passed += 1
    return empty


def first_from(
    segments: Segments, offset: int, max_offset: int, config: LogConfig
) -> FoundRecord | None:
    """Find the first record at or behind `offset` and below `max_offset`; None without one.

    For a batch that is too large to be opened, and for the last of many empty ones, return the
    earliest time that its header has.
    """
    left = MAX_TIMED_BATCHES
    for index in range(segments.index_of(offset), len(segments)):
        segment = segments[index]
        first = segment.find(offset, config)
        for header in () if first is None else segment.headers(first.position):
            if header.base_offset >= max_offset:
                return None
            left -= 1
            found = _first_timed(segment, header, offset, is_last=left == 0)
            if found is not None:
                return found if found.offset < max_offset else None
    return None


def aborted_between(segments: Segments, first: int, upper: int) -> list[AbortedTxn]:
    """Return the aborted transactions that overlap with `first` up to below `upper`."""
    aborted: list[AbortedTxn] = []
    for segment in segments.from_offset(first):
        if segment.txn_index is None:
            continue
        known = segment.txn_index.aborted_between(first, upper)
        aborted += known.found
        if known.is_complete:
            break
    return aborted


def read_batch(segment: Segment, header: Header, size: int | None = None) -> Batch:
    """Read a whole batch, or `size` bytes of its beginning."""
    fd, length = segment.handles.open(segment.file), size or header.size
    return Batch(memoryview(read_fully(segment.handles.files, fd, length, header.position)))


def found_in(batch: Batch, offset: int, timestamp: int | None) -> FoundRecord:
    """Return a record of a batch; without its own time it gets the earliest known one."""
    if timestamp is None:
        is_first_known = not batch.uses_log_append_time and batch.delete_horizon is None
        timestamp = batch.base_timestamp if is_first_known else batch.max_timestamp
    return FoundRecord(offset=offset, timestamp=timestamp, leader_epoch=batch.leader_epoch)


def _first_timed(
    segment: Segment, header: Header, offset: int, *, is_last: bool
) -> FoundRecord | None:
    """Return the first record of a batch from an offset on, approximate if it may not be opened."""
    near = max(header.base_offset, offset)
    if is_last or header.size > MAX_TIMED_BYTES:
        return found_in(read_batch(segment, header, HEADER_SIZE), near, None)
    batch = read_batch(segment, header)
    try:
        stamp = stamp_from(batch, offset, max_bytes=MAX_TIMED_BYTES, max_records=MAX_TIMED_RECORDS)
    except KafkaError as error:
        if error.code is not ErrorCode.MESSAGE_TOO_LARGE:
            raise
        return found_in(batch, near, None)
    return None if stamp is None else found_in(batch, *stamp)
