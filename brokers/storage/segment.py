"""One segment: a log file from its base offset on, with the indexes that find offsets in it.

Has no other segments and no rules of appending. The file is authoritative: a batch header confirms
every index entry before it is used, and a wrong index is rebuilt from the headers, beside the old
one.

Where the file itself is damaged, the segment remembers the hole and serves the records on both
sides: `headers` and what builds on it pass over holes. A walk finds a hole only on its way from
batch to batch; that an entry of an index names no batch proves nothing.
"""

import os
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from struct import Struct
from typing import Final, NoReturn

from brokers.storage import names, offset_index, time_index
from brokers.storage.detours import (
    Walked,
    find_around,
    hole_at,
    is_explained,
    reach,
    start_before,
)
from brokers.storage.errors import StorageCorrupt, is_refusal
from brokers.storage.handles import Handles, LogFile
from brokers.storage.headers import NO_BOUND, NO_OFFSET, Header, NoBatch, header_at, seek, walk
from brokers.storage.holes import Hole, RecordsDamaged, confirmed
from brokers.storage.index_file import IndexFile
from brokers.storage.index_rebuild import MAX_REBUILDS, IndexRebuild, IndexUnfinished
from brokers.storage.log_config import LogConfig
from brokers.storage.offset_index import IndexEntry, OffsetIndex
from brokers.storage.time_index import NO_TIMESTAMP, TimeEntry, TimeIndex
from brokers.storage.txn_index import TxnIndex

# Offsets in an index are int32, relative to the base offset.
MAX_RELATIVE_OFFSET: Final = 2**31 - 1
# A waiting index entry: last offset and position of a batch, the greatest timestamp up to there and
# the last offset of the batch that has it. One for both indexes, which grow together.
ENTRY: Final = Struct("qqqq")
# At most 64 KiB of memory per log, and one write to each index per eight megabytes of log or more.
MAX_WAITING: Final = 2048
# A time index that lost its end would make a segment look older than it is, and retention would
# delete it. It is compared with this many batches behind its last entry; mostly there are none.
_TIME_SAMPLES: Final = 32
# A smaller segment is walked instead, which takes less than a tenth of a millisecond.
_SMALL_BYTES: Final = 16 * 1024
# A wrong header invalidates the entry of its batch, and a later one that is looked up from there.
_TIME_TRIES: Final = 4
# Of a segment from an earlier run: its time index is read when the timestamp is needed.
NOT_READ: Final = -2
UNSEALED: Final = -1


class IndexLies(StorageCorrupt):
    """An index contradicts the log, and no damage explains it; internal to this package."""


class Segment:
    """Not thread-safe; belongs to its log, which appends to the newest one and updates it."""

    __slots__ = (
        "base_offset",
        "bytes_since_index",
        "end_offset",
        "file",
        "first_timestamp",
        "handles",
        "has_new_indexes",
        "holes",
        "inspected_bytes",
        "max_timestamp",
        "max_timestamp_offset",
        "newest_record",
        "offset_index",
        "rebuild",
        "sealed_size",
        "size",
        "start",
        "time_index",
        "txn_index",
        "waiting",
    )

    def __init__(
        self, handles: Handles, folder: str, base_offset: int, *, marker: str = ""
    ) -> None:
        """A marker, `.cleaned` or `.swap`, is for a segment that is not in its place yet."""
        path = os.path.join(folder, names.offset_file(base_offset, names.LOG) + marker)
        self.handles = handles
        self.base_offset = base_offset
        self.end_offset = NO_BOUND  # where the next segment begins, once there is one
        self.file = LogFile(path)
        self.offset_index = OffsetIndex(handles.files, handles.indexes, path, base_offset)
        self.time_index = TimeIndex(handles.files, handles.indexes, path, base_offset)
        self.txn_index: TxnIndex | None = None  # comes with the first aborted transaction
        # Index entries not yet unpacked, packed by `ENTRY`: half of the appends make one.
        self.waiting = bytearray()
        self.size = 0
        # The file's start if all files of the log were one; only differences are meaningful.
        self.start = 0
        # The file's length when its indexes were last completed on the disk.
        self.sealed_size = UNSEALED
        self.bytes_since_index = 0
        self.first_timestamp: int | None = None  # of the first batch, once it was needed
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset  # the last offset of the batch that has it
        # The greatest timestamp among the records themselves, and how far they were read for it.
        self.newest_record = NO_TIMESTAMP
        self.inspected_bytes = 0
        self.holes: Sequence[Hole] = ()  # known damage, in the order of positions
        self.rebuild: IndexRebuild | None = None  # the running one
        # Rebuilt from the headers since the file was opened: another rebuild would give the same.
        self.has_new_indexes = False

    @property
    def index_files(self) -> tuple[IndexFile, IndexFile]:
        return self.offset_index.file, self.time_index.file

    def headers(self, position: int = 0) -> Iterator[Header]:
        """Yield the sound batches of the file from `position` on, which must be a batch's start."""
        while position < self.size:
            try:
                yield from self.walk(position)
            except StorageCorrupt as flaw:
                position = hole_at(self, flaw).end
            else:
                return

    def pass_over(self, position: int, reason: str) -> int:
        """Return where sound batches go on behind a flaw that a scan has met."""
        return hole_at(self, StorageCorrupt(self.file.path, position, reason)).end

    def walk(self, position: int, last_offset: int | None = None) -> Iterator[Header]:
        """Yield all batches from a batch's beginning on; StorageCorrupt at the first flaw.

        `last_offset` is that of the batch in front, where it is known.
        """
        if last_offset is None:
            last_offset = self.base_offset - 1 if position == 0 else NO_OFFSET
        fd = self.handles.open(self.file)
        return walk(
            self.handles.files,
            fd,
            self.file.path,
            position,
            self.size,
            last_offset=last_offset,
            bound=self.end_offset,
        )

    def find(self, offset: int, config: LogConfig) -> Header | None:
        """Find the first batch that does not end below `offset`; None if this segment has none.

        RecordsDamaged if the batch is in a hole, IndexUnfinished if it cannot be found yet.
        """
        try:
            return self._find(offset, config)
        except StorageCorrupt:
            # Either an index is wrong, or the log is damaged.
            return find_around(self, offset, config)

    def refuse(self, header: Header, end_offset: int) -> NoReturn:
        """Note as damage, and raise, that offsets of a batch reach the end of the log."""
        reason = f"offsets {header.base_offset} to {header.last_offset} in a log of {end_offset}"
        hole = hole_at(self, NoBatch(self.file.path, header.position, reason, None))
        raise RecordsDamaged(self.file.path, hole, reason)

    def find_sound(self, offset: int, config: LogConfig) -> Header | None:
        """Like `find`, but return the first batch behind the hole if the batch is in one."""
        try:
            return self.find(offset, config)
        except RecordsDamaged as lost:
            return next(self.headers(lost.hole.end), None)

    def headers_from_time(
        self, timestamp: int, start_offset: int, config: LogConfig
    ) -> Iterator[Header]:
        """Yield the batches among which those at or behind `timestamp` and `start_offset` are."""
        self.settle()
        entry = self._confirmed_time(timestamp, config)
        first = self.find_sound(max(entry.offset, start_offset), config)
        return iter(()) if first is None else self.headers(first.position)

    def end_of_read(
        self, first: Header, limit: int, max_offset: int | None, config: LogConfig
    ) -> int:
        """Return the last batch boundary up to `limit` and `max_offset`, behind `first`.

        It may be somewhat short of both, at an index entry, since that needs no walk; and in front
        of the next hole, so that a reader gets an error and not bad bytes.
        """
        for hole in self.holes:
            if hole.start > first.position:
                limit = min(limit, hole.start)
                break
        self.settle()
        entry = None
        if limit < self.size:
            entry = self.offset_index.lookup_position(limit)
        if max_offset is not None:
            # A batch that ends at max_offset - 1 may be read, and so may all in front of it.
            bound = self.offset_index.lookup(max_offset - 1)
            if entry is None or bound.position < entry.position:
                entry = bound
        if entry is None:
            return self.size
        if entry.position > first.position:
            fd = self.handles.open(self.file)
            if confirmed(self.handles.files, fd, self.size, entry) is not None:
                return entry.position
        return self._end_by_walk(first, min(limit, first.end + reach(config)), max_offset)

    def largest_timestamp(self, config: LogConfig) -> int:
        """Return the greatest timestamp in the segment, -1 without any; read once if old."""
        if self.max_timestamp == NOT_READ:
            try:
                self._carry_on(config, is_strict=False)
            except IndexLies:
                self.rebuild_in_steps(config)
            else:
                self._write_entries()
        return self.max_timestamp

    def modified_ms(self) -> int:
        """Return when the file was last written to."""
        return self.handles.files.modified_ms(self.handles.open(self.file))

    def read_first_timestamp(self) -> int:
        """Return the first batch's timestamp, from which the roll time counts; -1 without any."""
        if self.first_timestamp is None:
            first = next(self.headers(), None)
            if first is None:
                return NO_TIMESTAMP
            self.first_timestamp = first.max_timestamp
        return self.first_timestamp

    def note(
        self, position: int, size: int, last_offset: int, max_timestamp: int, interval: int
    ) -> None:
        """Add a batch at the end of the file to timestamps and indexes, by Kafka's rules."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_index > interval:
            self.waiting += ENTRY.pack(
                last_offset, position, self.max_timestamp, self.max_timestamp_offset
            )
            self.bytes_since_index = 0
        self.bytes_since_index += size

    def settle(self) -> None:
        """Move waiting entries into the indexes, still in memory, before a search."""
        if self.waiting:
            columns = array("q", bytes(self.waiting))
            self.offset_index.extend(columns[0::4], columns[1::4])
            self.time_index.extend(columns[2::4], columns[3::4])
            self.waiting = bytearray()

    def index_room(self, config: LogConfig) -> int:
        """Return how many entries fit into both indexes; the roll needs one of the time index."""
        # An upper bound of the waiting entries is often enough to know; then they keep waiting.
        room = self._index_room(config) - len(self.waiting) // ENTRY.size
        if room > 0:
            return room
        self.settle()
        return self._index_room(config)

    def _index_room(self, config: LogConfig) -> int:
        room = config.segment_index_bytes
        return min(
            room // offset_index.LAYOUT.entry_size - self.offset_index.file.entries,
            room // time_index.LAYOUT.entry_size - 1 - self.time_index.file.entries,
        )

    def write_indexes(self) -> None:
        """Write waiting entries to the index files; after an OSError they still wait."""
        self.settle()
        for file in self.index_files:
            file.write_pending()

    def seal(self) -> None:
        """Complete both index files: no more batches come."""
        self.settle()
        self.time_index.extend((self.max_timestamp,), (self.max_timestamp_offset,))
        self.write_indexes()

    def carry_on(self, config: LogConfig, *, is_strict: bool = True) -> int:
        """Continue a file where its indexes end; return the next offset.

        StorageCorrupt at damage, unless it is not `is_strict` and passes over it.
        """
        try:
            next_offset = self._carry_on(config, is_strict=is_strict)
        except StorageCorrupt:
            return self.rebuild_indexes(config, is_strict=is_strict)
        self._write_entries()
        return next_offset

    def rebuild_indexes(self, config: LogConfig, *, is_strict: bool = True) -> int:
        """Rebuild both indexes from all batch headers; return the offset behind the last batch.

        For callers that may wait. StorageCorrupt at damage, as above, and then all is as it was.
        """
        self.drop_rebuild()
        rebuild = IndexRebuild(self, self._fresh(), config)
        self.max_timestamp = NOT_READ
        rebuild.run(self.walk if is_strict else self.headers)
        return rebuild.next_offset

    def rebuild_in_steps(self, config: LogConfig) -> None:
        """Take the first step of rebuilding the indexes; IndexUnfinished if more are to come.

        Housekeeping takes those through the log dir. IndexLies if they are new: then a header is
        wrong, since neither a base offset nor the CRC is checked on the way.
        """
        if self.has_new_indexes:
            raise IndexLies(self.file.path, 0, "new indexes contradict the batches as well")
        if self.rebuild is None and len(self.handles.rebuilds) < MAX_REBUILDS:
            self.rebuild = IndexRebuild(self, self._fresh(), config)
            self.handles.rebuilds[self.rebuild] = None
            if self.rebuild.step():
                return
        raise IndexUnfinished(self.file.path)

    def adopt_indexes(self, fresh: "Segment") -> None:
        """Replace both indexes by those of `fresh`, which has noted all batches of this file.

        After an OSError this may be called again.
        """
        known = self.time_index.last
        is_lost = any(hole.first_offset <= known.offset < hole.next_offset for hole in self.holes)
        if is_lost and known.timestamp > fresh.max_timestamp:
            # The batch is lost; without its time the segment would look older than it is.
            fresh.max_timestamp, fresh.max_timestamp_offset = known
        fresh.seal()
        fresh.rename_indexes(self.file.path)
        for file in self.index_files:
            file.release()
        self.offset_index, self.time_index = fresh.offset_index, fresh.time_index
        self.waiting = bytearray()
        self.bytes_since_index = fresh.bytes_since_index
        self.sealed_size = UNSEALED
        self.has_new_indexes = True
        if fresh.max_timestamp > self.max_timestamp:
            self.max_timestamp = fresh.max_timestamp
            self.max_timestamp_offset = fresh.max_timestamp_offset
        if self.rebuild is not None:
            self.handles.rebuilds.pop(self.rebuild, None)
            self.rebuild = None

    def drop_rebuild(self) -> None:
        """Drop new indexes that are not in place yet."""
        if self.rebuild is not None:
            self.handles.rebuilds.pop(self.rebuild, None)
            self.rebuild.drop()
            self.rebuild = None

    def forget_indexes(self) -> None:
        """Empty indexes and timestamps, before all batches are added again."""
        self.sealed_size = UNSEALED
        self.waiting = bytearray()
        for file in self.index_files:
            file.clear()
        self.bytes_since_index = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset

    def cut(self, position: int, offset: int) -> None:
        """Adapt all indexes to a file that was cut at `position`, where `offset` begins."""
        self.drop_rebuild()
        self.has_new_indexes = False
        self.holes = tuple(hole for hole in self.holes if hole.end <= position)
        self.size = position
        self.sealed_size = UNSEALED
        self.settle()
        self.offset_index.cut(offset, position)
        self.time_index.cut(offset)
        self._write_or_wait()
        if self.txn_index is not None:
            self.txn_index.truncate_to(offset)
        if position < self.inspected_bytes:
            self.inspected_bytes, self.newest_record = 0, NO_TIMESTAMP
        if position == 0:
            self.first_timestamp = None

    def open_txn_index(self) -> TxnIndex:
        """Return the index of aborted transactions; its file is created with the first of them."""
        if self.txn_index is None:
            path = names.beside(self.file.path, names.TXN_INDEX)
            self.txn_index = TxnIndex(self.handles.files, path)
        return self.txn_index

    def release(self) -> None:
        """Close the files and free memory; a reader keeps the descriptor that it holds."""
        self.drop_rebuild()
        for file in self.index_files:
            file.release()
        self.handles.close(self.file)
        if self.txn_index is not None:
            self.txn_index.close()

    def paths(self) -> list[str]:
        """Return the paths of all files that the segment may have, the log first."""
        return [names.beside(self.file.path, suffix) for suffix in names.SEGMENT_SUFFIXES]

    def rename(self, marker: str) -> None:
        """Rename the files to another marker, or with "" to their own names; the log last.

        After an OSError some are renamed, and the call may be repeated.
        """
        log_path = names.beside(self.file.path, names.LOG, marker)
        self.rename_indexes(log_path)
        if self.file.path != log_path:
            self.handles.files.rename(self.file.path, log_path)
            self.file.path = log_path

    def rename_indexes(self, log_path: str) -> None:
        """Rename the index files to match a log's name; can be repeated after an OSError."""
        for file in self.index_files:
            file.rename(log_path)

    def take_header(self, header: Header, config: LogConfig) -> int:
        """Note a batch that is in the file already; return the offset behind it."""
        position, size, _, last_offset, max_timestamp, _ = header
        # No CRC covers a base offset, which may be one that no index can hold.
        if 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET:
            self.note(position, size, last_offset, max_timestamp, config.index_interval_bytes)
        if len(self.waiting) >= MAX_WAITING * ENTRY.size:
            self._write_or_wait()
        return last_offset + 1

    def remove(self) -> None:
        """Unlink the files; only for segments that were never served."""
        self.release()
        for path in self.paths():
            with suppress(FileNotFoundError):
                self.handles.files.unlink(path)

    def _find(self, offset: int, config: LogConfig) -> Header | None:
        self.settle()
        entry, size = self.offset_index.lookup(offset), self.size
        if entry.position >= size > 0:
            raise IndexLies(self.offset_index.file.path, 0, f"{entry} is behind the end, {size}")
        fd = self.handles.open(self.file)
        limit = min(size, entry.position + reach(config))
        found = seek(self.handles.files, fd, self.file.path, entry, size, offset, limit)
        if found is not None and found.last_offset >= self.end_offset:
            reason = f"{found.last_offset} in front of a segment that begins with {self.end_offset}"
            raise StorageCorrupt(self.file.path, found.position, reason)
        if found is None and limit < size:
            raise IndexLies(self.offset_index.file.path, 0, f"{offset} is far behind {entry}")
        return found

    def _end_by_walk(self, first: Header, limit: int, max_offset: int | None) -> int:
        end = first.end
        try:
            for header in self.walk(end, first.last_offset):
                if header.end > limit or (
                    max_offset is not None and header.last_offset >= max_offset
                ):
                    break
                end = header.end
        except StorageCorrupt as flaw:
            hole_at(self, flaw)
        return end

    def _carry_on(self, config: LogConfig, *, is_strict: bool) -> int:
        self.settle()
        entry, latest = self.offset_index.last, self.time_index.last
        start = start_before(self, self.offset_index.file.entries - 1)
        is_known = start == entry.position if is_strict else is_explained(self, entry, config)
        if not is_known:
            raise IndexLies(self.offset_index.file.path, 0, f"{entry} is not confirmed")
        self._confirm_time(latest, config, is_strict=is_strict)
        self._confirm_latest(latest, is_strict=is_strict)
        try:
            return self._note_rest(start, entry, latest, config, is_strict=is_strict)
        except BaseException:  # re-raised; an incomplete walk must not count as the greatest time
            self.max_timestamp = NOT_READ
            raise

    def _note_rest(
        self,
        start: int,
        entry: IndexEntry,
        latest: TimeEntry,
        config: LogConfig,
        *,
        is_strict: bool,
    ) -> int:
        """Note the batches behind the last entries; return the offset behind the last batch."""
        self.max_timestamp, self.max_timestamp_offset = latest
        self.bytes_since_index = 0
        next_offset, walked = self.base_offset, Walked(config)
        for header in self.walk(start) if is_strict else self.headers(start):
            if entry.position > 0 and header.last_offset <= entry.offset:
                self.bytes_since_index = header.size
                next_offset = header.last_offset + 1
            else:
                next_offset = self.take_header(header, config)
            if walked.is_too_far(header) and not is_strict:
                raise IndexLies(self.offset_index.file.path, 0, f"{entry} is far from the end")
        return next_offset

    def _fresh(self) -> "Segment":
        """Return a segment for new indexes, beside the ones that are in use."""
        folder = os.path.dirname(self.file.path)
        return Segment(self.handles, folder, self.base_offset, marker=names.TEMPORARY)

    def _write_entries(self) -> None:
        if self.waiting:
            self.sealed_size = UNSEALED
            self._write_or_wait()

    def _write_or_wait(self) -> None:
        """Write index entries; on a full disk they wait in memory for the next write."""
        try:
            self.write_indexes()
        except OSError as error:
            if not is_refusal(error):
                raise

    def _confirmed_time(self, timestamp: int, config: LogConfig) -> TimeEntry:
        """Return the greatest entry at or before a time, or an earlier one, that is confirmed."""
        entry = self.time_index.lookup(timestamp)
        for _ in range(_TIME_TRIES):
            try:
                self._confirm_time(entry, config, is_strict=False)
            except IndexLies:
                if self.has_new_indexes:
                    entry = self.time_index.lookup(entry.timestamp - 1)
                else:
                    self.rebuild_in_steps(config)
                    entry = self.time_index.lookup(timestamp)
            else:
                return entry
        return TimeEntry(NO_TIMESTAMP, self.base_offset)

    def _confirm_time(self, entry: TimeEntry, config: LogConfig, *, is_strict: bool) -> None:
        """Raise IndexLies if no batch matches an entry; one in a hole cannot be checked."""
        if entry.timestamp == NO_TIMESTAMP:
            return
        try:
            find = self._find if is_strict else self.find
            header = find(entry.offset, config)
        except RecordsDamaged:
            return
        if header is None or (header.max_timestamp, header.last_offset) != entry:
            raise IndexLies(self.time_index.file.path, 0, f"{entry} against {header}")

    def _confirm_latest(self, latest: TimeEntry, *, is_strict: bool) -> None:
        later: list[Header | None]
        if self.size <= _SMALL_BYTES:
            later = list(self.walk(0) if is_strict else self.headers())
        else:
            files, fd = self.handles.files, self.handles.open(self.file)
            samples = self.offset_index.sample_after(latest.offset, _TIME_SAMPLES)
            later = [header_at(files, fd, sample.position, self.size) for sample in samples]
        # Behind the offset index the headers are read anyway.
        indexed = self.offset_index.last.offset
        for header in later:
            if header is None:
                continue
            if header.max_timestamp > latest.timestamp and header.last_offset <= indexed:
                raise IndexLies(self.time_index.file.path, 0, f"{header} is later than {latest}")
