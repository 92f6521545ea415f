"""Cleans segments of one folder: keeps only the last record of each key, at its offset.

Uses files and a `Job`; no log, no lock, no clock. It reads the named segments twice and writes new
files that end in `.cleaned`; existing files stay unchanged, so the caller may drop the result at
any time. The first pass notes where each key was written last and checks every batch, the second
copies what stays. Offsets never change, and batches that lost no record are copied byte for byte.

These stay although they were overwritten: the last batch of a producer, emptied, for its sequence;
the last batch of what becomes one file, emptied, since its end says which old files the new one
replaces; whole segments with transactions, whose aborted records must hide nothing; and batches
whose times could not be encoded without the removed records.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from brokers.protocol.errors import EncodeError, KafkaError
from brokers.protocol.records.batch import NO_TIMESTAMP, Batch
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.reader import Record, records
from brokers.storage import names, offset_index, time_index
from brokers.storage.errors import OUT_OF_SPACE_ERRNOS, OutOfSpace, StorageError
from brokers.storage.files import Files, write_all
from brokers.storage.handles import Handles
from brokers.storage.key_map import MAX_KEYS, KeyMap
from brokers.storage.log_config import MAX_SEGMENT_BYTES
from brokers.storage.scan import BLOCK_BYTES, Scan
from brokers.storage.segment import ENTRY, MAX_RELATIVE_OFFSET, MAX_WAITING, Segment

# Sources of one new file: the broker renames all of them in one turn of its event loop.
MAX_MERGED: Final = 32
# Producers whose last batch is known; for others, every batch counts as the last.
MAX_PRODUCERS: Final = 500_000
_OPEN_FILES: Final = 16
_ALL_OFFSETS: Final = 2**63


class CleaningFailed(StorageError):
    """A log that cannot be cleaned because of `reason`, in the file `path`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be cleaned: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A segment as it was when the job was made; one that stays `is_whole` is not rewritten."""

    base: int
    size: int
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to clean; times in milliseconds."""

    folder: str
    sources: Sequence[Source]  # oldest first
    first_dirty: int  # each key below occurs only once already
    end: int  # behind the last source
    now_ms: int
    segment_bytes: int
    index_interval_bytes: int
    segment_index_bytes: int
    delete_retention_ms: int
    producer_expiration_ms: int
    max_decompressed_bytes: int
    max_keys: int = MAX_KEYS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """One new `.cleaned` file, and the base offsets of the segments that it replaces."""

    bases: Sequence[int]
    size: int
    max_timestamp: int
    max_timestamp_offset: int
    dropped_bytes: int

    @property
    def base(self) -> int:
        return self.bases[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a job; files that stay as they were are left out."""

    end: int  # the first offset that is still dirty; that of the job if only a part had room
    groups: Sequence[Cleaned]  # oldest first
    next_horizon_ms: int | None = None  # when the first remaining tombstone may be removed


def clean(files: Files, job: Job, pulse: Callable[[], None] = lambda: None) -> Result:
    """Do a job; all output is on the disk on return. Calls `pulse` often.

    CleaningFailed if the files do not match the job; the output is removed then.
    """
    try:
        return _Cleaner(files, job, pulse).run()
    except (StorageError, KafkaError, OSError):
        # Not if the caller is gone: another broker may clean here already.
        drop_leftovers(files, job.folder)
        raise


def drop_leftovers(files: Files, folder: str, *, since: int = 0, below: int = _ALL_OFFSETS) -> None:
    """Unlink `.cleaned` files that begin between offsets: their cleaning ended or is void."""
    for name in files.list_folder(folder):
        if not name.endswith(names.CLEANED):
            continue  # Nearly all of them; parsing their names would cost milliseconds.
        parsed = names.parse_offset_file(name)
        if parsed is not None and since <= parsed.offset < below:
            with suppress(FileNotFoundError):
                files.unlink(os.path.join(folder, name))


class _Cleaner:
    """Runs one job; call `run` once."""

    def __init__(self, files: Files, job: Job, pulse: Callable[[], None]) -> None:
        self._files = files
        self._job = job
        self._pulse = pulse
        self._handles = Handles(files, max_open=_OPEN_FILES)
        self._keys = KeyMap(job.max_keys)
        self._survivors = self._keys.survivors()
        self._whole = {source.base for source in job.sources if source.is_whole}
        self._counts: dict[int, int] = {}  # batches by segment
        self._last: dict[int, int] = {}  # base offset of the last batch by segment
        self._producers: dict[int, int] = {}  # base offset of the last batch by producer
        self._end = job.end
        self._has_mapped = False
        self._may_forget = True  # no older value was left in a segment that stays whole
        self._horizon: int | None = None

    def run(self) -> Result:
        drop_leftovers(self._files, self._job.folder)
        for source, following in pairwise([*self._job.sources, None]):
            assert source is not None
            if not self._map(source, self._job.end if following is None else following.base):
                break
        self._survivors = self._keys.survivors()
        cleaned: list[Cleaned] = []
        for group in self._groups():
            if group[0].base in self._whole:
                # A later tombstone may be all that hides older values in it.
                self._may_forget = False
            elif not self._add(group, cleaned):
                # The others are still as dirty as before.
                self._end = self._job.first_dirty
                break
        self._files.sync_folder(self._job.folder)
        return Result(end=self._end, groups=cleaned, next_horizon_ms=self._horizon)

    def _add(self, group: Sequence[Source], cleaned: list[Cleaned]) -> bool:
        """Rewrite a group; False if there is room only for those before it, which make room."""
        try:
            made = self._rewrite(group)
        except (OSError, OutOfSpace) as error:
            is_full = isinstance(error, OutOfSpace) or error.errno in OUT_OF_SPACE_ERRNOS
            if not cleaned or not is_full:
                raise
            drop_leftovers(self._files, self._job.folder, since=group[0].base)
            return False
        if made is not None:
            cleaned.append(made)
        return True

    def _map(self, source: Source, end: int) -> bool:
        """Note keys and producers of a segment; False once there is no room for more keys."""
        job, count = self._job, 0
        for batch in self._batches(source):
            assert batch is not None, "the first pass looks at all"
            count += 1
            if batch.next_offset > end:
                raise CleaningFailed(self._path(source), f"{batch} reaches past {end}")
            if batch.is_transactional or batch.is_control:
                self._whole.add(source.base)
            elif batch.last_offset < job.first_dirty:
                pass
            elif self._note_keys(batch):
                self._has_mapped = True
            else:
                if not self._has_mapped:
                    reason = f"{batch} has more keys than {job.max_keys}"
                    raise CleaningFailed(self._path(source), reason)
                self._end = batch.base_offset
                self._counts[source.base] = source.size // max(1, job.index_interval_bytes) + count
                return False
            producer = batch.producer_id
            if producer >= 0 and (
                producer in self._producers or len(self._producers) < MAX_PRODUCERS
            ):
                self._producers[producer] = batch.base_offset
            self._last[source.base] = batch.base_offset
        self._counts[source.base] = count
        return True

    def _note_keys(self, batch: Batch) -> bool:
        note = self._keys.note
        for record in self._records(batch):
            if record.key is not None and not note(record.key, record.offset):
                return False
        return True

    def _groups(self) -> Iterator[list[Source]]:
        """Yield groups of neighbours that fit into one segment; whole segments are alone."""
        group: list[Source] = []
        for source in self._job.sources:
            if source.base >= self._end:
                break
            if group and not self._fits(group, source):
                yield group
                group = []
            group.append(source)
        if group:
            yield group

    def _fits(self, group: Sequence[Source], source: Source) -> bool:
        job, members = self._job, [*group, source]
        if source.base in self._whole or group[0].base in self._whole:
            return False
        # The largest possible number; the time index reserves one entry for the end.
        size = sum(member.size for member in members)
        entries = min(
            sum(self._counts[member.base] for member in members),
            size // max(1, job.index_interval_bytes) + 1,
        )
        room = min(
            job.segment_index_bytes // offset_index.LAYOUT.entry_size,
            job.segment_index_bytes // time_index.LAYOUT.entry_size - 1,
        )
        position = job.sources.index(source) + 1
        end = job.sources[position].base if position < len(job.sources) else job.end
        return (
            len(members) <= MAX_MERGED
            and size <= job.segment_bytes
            and entries <= room
            and end - 1 - group[0].base <= MAX_RELATIVE_OFFSET
        )

    def _rewrite(self, group: Sequence[Source]) -> Cleaned | None:
        """Write the remaining batches of a group; None, and no file, if all of them remain."""
        self._pulse()
        job = self._job
        last = max((self._last[s.base] for s in group if s.base in self._last), default=-1)
        output = _Output(self._handles, job, group)
        try:
            for source in group:
                for batch in self._batches(source, spared=last):
                    if batch is None:
                        output.drop()
                    else:
                        output.put(batch, self._after(batch, is_last=batch.base_offset == last))
            return output.finish()
        finally:
            output.segment.release()

    def _after(self, batch: Batch, *, is_last: bool) -> memoryview | bytearray | None:
        """Return the batch's own bytes, new ones, or None to drop it."""
        job = self._job
        if batch.base_offset >= self._end:
            return batch.buffer
        is_needed = is_last or self._is_needed(batch)
        if batch.record_count == 0:
            return batch.buffer if is_needed else None
        is_mapped = batch.last_offset >= job.first_dirty
        kept: list[Record] = []
        if not is_mapped or self._survivors.are_within(batch.base_offset, batch.last_offset):
            kept = [record for record in self._records(batch) if self._stays(record, batch)]
        if not kept:
            return _emptied(batch) if is_needed else None
        horizon = batch.delete_horizon
        has_tombstones = any(record.value is None for record in kept)
        if has_tombstones and horizon is None:
            horizon = job.now_ms + job.delete_retention_ms
        rest: memoryview | bytearray = batch.buffer
        if len(kept) != batch.record_count or horizon != batch.delete_horizon:
            try:
                rest = _rebuilt(batch, kept, horizon)
            except EncodeError:
                # The times are too far apart for a batch without the others, which only a malicious
                # producer sends: keep the batch, and keep everything that hides a value in it.
                self._may_forget = False
                return batch.buffer
        if has_tombstones and horizon is not None and self._may_forget:
            self._horizon = min(horizon, self._horizon or horizon)
        return rest

    def _stays(self, record: Record, batch: Batch) -> bool:
        if record.key is None or not self._keys.is_last(record.key, record.offset):
            return False
        if record.value is not None or not self._may_forget:
            return True
        return batch.delete_horizon is None or batch.delete_horizon > self._job.now_ms

    def _is_needed(self, batch: Batch) -> bool:
        """Tell whether only this batch records a producer's sequence."""
        if batch.producer_id < 0:
            return False
        if self._producers.get(batch.producer_id, batch.base_offset) != batch.base_offset:
            return False
        return batch.max_timestamp >= self._job.now_ms - self._job.producer_expiration_ms

    def _records(self, batch: Batch) -> Iterator[Record]:
        return records(batch, max_bytes=self._job.max_decompressed_bytes)

    def _batches(self, source: Source, spared: int | None = None) -> Iterator[Batch | None]:
        """Yield every batch of a segment with a right CRC; the segment must have its old length.

        In the second pass, None stands for a batch of which nothing stays according to its header:
        in a topic of few keys that is nearly every one. The one at `spared` is never None.
        """
        first_dirty, mapped_end = self._job.first_dirty, self._end
        are_within = self._survivors.are_within
        path = self._path(source)
        fd = self._files.open(path, os.O_RDONLY)
        try:
            size = self._files.size(fd)
            if size != source.size:
                raise CleaningFailed(path, f"it has {size} bytes, not {source.size}")
            scan = Scan(self._files, fd, position=0, stop=size, next_offset=source.base)
            for position, length, base, last, _epoch, _timestamp, producer in scan:
                self._pulse()
                is_dead = (
                    spared is not None
                    and base != spared
                    and producer < 0
                    and first_dirty <= last < mapped_end
                    and not are_within(base, last)
                )
                yield None if is_dead else scan.batch(position, length)
            if scan.flaw is not None:
                raise CleaningFailed(path, f"at byte {scan.position} {scan.flaw}")
        finally:
            self._files.close(fd)

    def _path(self, source: Source) -> str:
        return os.path.join(self._job.folder, names.offset_file(source.base, names.LOG))


class _Output:
    """One new segment. The file is created when the output first differs from the single source."""

    def __init__(self, handles: Handles, job: Job, group: Sequence[Source]) -> None:
        self._files = handles.files
        self._job = job
        self._group = group
        self.segment = Segment(handles, job.folder, group[0].base, marker=names.CLEANED)
        self.segment.forget_indexes()
        self._waiting = bytearray()
        self._size_before = sum(source.size for source in group)
        if len(group) > 1:
            self._begin()

    def drop(self) -> None:
        """Leave the next batch out."""
        if self.segment.file.fd < 0:
            self._begin()

    def put(self, batch: Batch, data: memoryview | bytearray | None) -> None:
        """Add the new bytes of the next batch."""
        segment = self.segment
        if data is not batch.buffer and segment.file.fd < 0:
            self._begin()
        if data is None:
            return
        kept = Batch(memoryview(data))
        size = kept.size
        if segment.size + size > MAX_SEGMENT_BYTES:
            raise CleaningFailed(segment.file.path, f"it would exceed {MAX_SEGMENT_BYTES} bytes")
        segment.note(
            segment.size, size, kept.last_offset, kept.max_timestamp, self._job.index_interval_bytes
        )
        segment.size += size
        if segment.file.fd < 0:
            return
        self._waiting += data
        if len(self._waiting) >= BLOCK_BYTES:
            self._write()
        if len(segment.waiting) >= MAX_WAITING * ENTRY.size:
            segment.write_indexes()

    def finish(self) -> Cleaned | None:
        """Complete all files, durable except their names; None if none was begun."""
        segment = self.segment
        if segment.file.fd < 0:
            return None
        self._write()
        segment.seal()
        segment.handles.sync(segment.file.fd, segment.file.path)
        for file in segment.index_files:
            segment.handles.sync_path(file.path)
        return Cleaned(
            bases=[source.base for source in self._group],
            size=segment.size,
            max_timestamp=segment.max_timestamp,
            max_timestamp_offset=segment.max_timestamp_offset,
            dropped_bytes=self._size_before - segment.size,
        )

    def _begin(self) -> None:
        """Create the file, with the unchanged beginning of the old one."""
        self._require_room(self._size_before)
        segment = self.segment
        target = segment.handles.open(segment.file, create=True)
        position, stop = 0, segment.size
        source = self._files.open(names.beside(segment.file.path, names.LOG, ""), os.O_RDONLY)
        try:
            while position < stop:
                block = self._files.pread(source, min(BLOCK_BYTES, stop - position), position)
                if not block:
                    raise CleaningFailed(segment.file.path, f"its source ends at {position}")
                write_all(self._files, target, block)
                position += len(block)
        finally:
            self._files.close(source)

    def _require_room(self, size: int) -> None:
        """Raise OutOfSpace if so many bytes more would take the room that clients need."""
        room = self._files.room(self._job.folder)
        free, least = room.free_bytes, room.records_floor
        if free - size < least:
            what = f"up to {size} bytes, with {free} free and {least} to keep,"
            raise OutOfSpace(self.segment.file.path, what)

    def _write(self) -> None:
        # Others may have taken the room meanwhile.
        self._require_room(len(self._waiting))
        write_all(self._files, self.segment.file.fd, self._waiting)
        self._waiting = bytearray()


def _rebuilt(batch: Batch, kept: Sequence[Record], horizon: int | None) -> bytearray:
    builder = BatchBuilder.for_rest_of(batch, horizon)
    for offset, timestamp, key, value, headers in kept:
        builder.append(key, value, headers, timestamp, offset=offset)
    return builder.build()


def _emptied(batch: Batch) -> bytearray:
    # Producers expire by this time. No other reader uses it, and a time that no record has would
    # mislead lookups of the latest one.
    timestamp = batch.max_timestamp if batch.has_producer else NO_TIMESTAMP
    return BatchBuilder.for_rest_of(batch).build_empty(timestamp)
