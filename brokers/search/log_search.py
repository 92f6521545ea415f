"""Searches the log files of one partition for records that match, in the order of offsets.

Uses the files of a folder and a job; no log object, no lock, and no broker, which appends, cleans
and deletes meanwhile. A file is opened by its name and read to its end, also when it has been
deleted since. The current offset decides which file comes next: a cleaned file that has replaced
several is read from there on. Offsets whose file was gone before it was read are reported as
removed, and unreadable ones as damaged; none is skipped silently.
"""

import base64
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import Batch
from brokers.protocol.records.compression import decompress
from brokers.protocol.records.reader import Record, records
from brokers.search.predicate import EVERY_RECORD, Condition, condition_of
from brokers.search.question import Job
from brokers.storage import names
from brokers.storage.errors import StorageError
from brokers.storage.files import Files
from brokers.storage.holes import Hole, confirmed, find_hole
from brokers.storage.memory_budget import MemoryBudget
from brokers.storage.offset_index import OffsetIndex
from brokers.storage.scan import Scan

# The interval of progress reports.
PROGRESS_SECONDS: Final = 0.25
# Records of a large batch between two looks at the clock: some milliseconds.
PACE: Final = 1_000
# How far ahead of its pace the search may be before it rests, and the longest rest: a resting
# search still reports progress, and ends when its broker does.
AHEAD_SECONDS: Final = 0.02
REST_SECONDS: Final = 0.1
# Places of damage, and of removal, that are reported one by one; a search gives up at one more.
MAX_GAPS: Final = 64
# Files in a row that may disappear between the listing of the folder and the opening. A retention
# deletes many at once, and the next listing omits all of them.
MAX_RETRIES: Final = 100

# Of one index in memory: the largest that a log may have.
INDEX_BYTES: Final = 16 * 1024 * 1024

COMPLETE: Final = "complete"
LIMIT: Final = "limit"  # as many hits as requested
BUDGET: Final = "budget"  # as many bytes as allowed
STOPPED: Final = "stopped"  # its time was over
DAMAGED: Final = "damaged"  # at its end, but some records cannot be read
REMOVED: Final = "removed"  # at its end, but some records were deleted before they were read

Line: TypeAlias = dict[str, Any]
Tell: TypeAlias = Callable[[Line], None]


class Pace(Protocol):
    """The clock of a search."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


class PartitionGone(StorageError):
    """The partition's folder is gone: its topic was deleted."""


class _File(NamedTuple):
    """A log file of a listing of the folder."""

    base: int
    is_in_place: bool  # else it is about to replace others
    path: str


class _Listing:
    """The log files of a folder, oldest first, as they were at the last `refresh`."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._listed: list[_File] = []

    def refresh(self) -> None:
        # A file that is about to replace others counts only if the one of its name is gone.
        self._listed = sorted({file.base: file for file in sorted(self._found())}.values())

    def choose(self, offset: int, last: tuple[int, int] | None) -> tuple[_File | None, bool]:
        """Choose the file of an offset; tell whether no records were ever lost in front of it."""
        listed, is_gap = self._listed, False
        number = bisect_right(listed, offset, key=_base)
        if number:
            file = listed[number - 1]
            if last is None or (file.base, _inode(file)) != last:
                return file, False
            # It was read to its end: offsets up to the next file were never written, or were
            # cleaned, unless damage has hidden them.
            is_gap = True
        return (listed[number] if number < len(listed) else None), is_gap

    def _found(self) -> Iterator[_File]:
        try:
            listed = self._files.list_folder(self._folder)
        except FileNotFoundError as error:
            raise PartitionGone(f"{self._folder} is gone: the topic was deleted") from error
        for name in listed:
            parsed = names.parse_offset_file(name)
            is_log = parsed is not None and parsed.suffix == names.LOG
            if is_log and parsed is not None and parsed.marker in ("", names.SWAP):
                yield _File(parsed.offset, not parsed.marker, f"{self._folder}/{name}")


class LogSearch:
    """One search; call `run` once. `pulse` is called often, and may raise."""

    def __init__(
        self, files: Files, job: Job, *, pace: Pace, tell: Tell, pulse: Callable[[], None]
    ) -> None:
        self._files = files
        self._job = job
        self._pace = pace
        self._tell = tell
        self._pulse = pulse
        self._condition = condition_of(job.where)
        self._cursor = job.start  # the next offset to look at
        self._listing = _Listing(files, job.folder)
        self._verdict: str | None = None
        self._began = self._told = pace.monotonic()
        self._hits = self._records = self._bytes = 0
        self._damaged: list[tuple[int, int]] = []
        self._removed: list[tuple[int, int]] = []
        # The start of damage whose end is not known yet.
        self._hole: int | None = None

    def run(self) -> None:
        """Report hits and progress, and at last the verdict."""
        end, failures = self._job.end, 0
        last: tuple[int, int] | None = None  # base and inode of the file that was read last
        while not self._is_over():
            file = self._next_file(last)
            if file is None:
                self._lose(end)
                break
            try:
                fd = self._files.open(file.path, os.O_RDONLY)
            except FileNotFoundError:
                failures += 1
                if failures > MAX_RETRIES:
                    raise
                self._listing.refresh()
                continue
            failures = 0
            try:
                inode = os.fstat(fd).st_ino
                if (file.base, inode) != last and file.base < end:
                    self._lose(file.base)
                    self._read(fd, file)
                elif file.base >= end:
                    self._lose(end)
                last = (file.base, inode)
            finally:
                self._files.close(fd)
        self._end_hole(end)
        self._tell(self._done())

    def _is_over(self) -> bool:
        """Tell whether there is a verdict, or the end of the range is reached."""
        return self._verdict is not None or self._cursor >= self._job.end

    # -- files -----------------------------------------------------------------------------------

    def _next_file(self, last: tuple[int, int] | None) -> _File | None:
        """Return the file that holds the cursor, or the first one behind it.

        A listing is used until one of its files cannot be opened.
        """
        file, is_gap = self._listing.choose(self._cursor, last)
        if file is None or file.base > self._cursor:
            # A listing that is made while files are renamed may miss one.
            self._listing.refresh()
            file, is_gap = self._listing.choose(self._cursor, last)
        if file is not None and is_gap and self._hole is None:
            self._cursor = min(file.base, self._job.end)
        return file

    def _lose(self, base: int) -> None:
        """Skip to the next file at `base`; report offsets in front of it, which have no file."""
        if base <= self._cursor:
            return
        if self._hole is None:
            self._gap(self._removed, self._cursor, base)
        self._cursor = base

    # -- batches ---------------------------------------------------------------------------------

    def _read(self, fd: int, file: _File) -> None:
        """Search a file, from the cursor to its end, or to the end of the search."""
        size = self._files.size(fd)
        position, next_offset = self._begin(fd, file, size)
        while not self._is_over():
            scan = Scan(self._files, fd, position=position, stop=size, next_offset=next_offset)
            for at, length, first, last, *_rest in scan:
                self._end_hole(min(first, self._job.end))
                if first >= self._job.end:
                    self._cursor = self._job.end
                    return
                self._bytes += length
                if last >= self._cursor:
                    self._look_at(scan.batch(at, length), last + 1)
                self._step()
                if self._is_over():
                    return
            if scan.flaw is None:
                return
            if self._hole is None:
                self._hole = max(self._cursor, scan.next_offset)
            hole = self._hole_at(fd, file, size, scan)
            if hole is None or hole.end >= size:
                return
            position, next_offset = hole.end, hole.next_offset

    def _hole_at(self, fd: int, file: _File, size: int, scan: Scan) -> Hole | None:
        """Return the hole that begins at a flaw; None if that cannot be determined."""
        with suppress(StorageError, OSError):
            return find_hole(
                self._files,
                fd,
                file.path,
                index=self._index(file),
                position=scan.position,
                size=size,
                first_offset=scan.next_offset,
            )
        return None

    def _index(self, file: _File) -> OffsetIndex:
        return OffsetIndex(self._files, MemoryBudget(INDEX_BYTES), file.path, file.base)

    def _begin(self, fd: int, file: _File, size: int) -> tuple[int, int]:
        """Return the start in a file: a batch in front of the cursor that the index names."""
        if self._cursor <= file.base or not file.is_in_place:
            return 0, file.base
        try:
            entry = self._index(file).lookup(self._cursor - 1)
            header = confirmed(self._files, fd, size, entry)
        except (StorageError, OSError):
            return 0, file.base  # an index is a hint
        if header is None or header.last_offset >= self._cursor:
            return 0, file.base
        return header.position, header.base_offset

    def _look_at(self, batch: Batch, next_offset: int) -> None:
        """Search a batch; moves the cursor behind it, or behind the last hit."""
        start = self._cursor
        self._look_into(batch, start)
        if self._verdict is None:
            self._cursor = min(max(start, next_offset), self._job.end)

    def _look_into(self, batch: Batch, start: int) -> None:
        job = self._job
        # Of a batch that begins before the range, or ends behind it, not all records are in it.
        inside = min(batch.next_offset, job.end) - max(batch.base_offset, start)
        self._records += min(batch.record_count, inside)
        if batch.is_control or batch.record_count == 0 or _is_aborted(batch, job):
            return
        try:
            if not _may_hold(self._condition, batch, job.max_decompressed_bytes):
                return
            found = records(batch, max_bytes=job.max_decompressed_bytes)
            for number, record in enumerate(found, 1):
                if number % PACE == 0:
                    self._step()
                if record.offset < start or record.offset >= job.end:
                    continue
                if self._condition.matches(record):
                    self._hit(record, is_append_time=batch.uses_log_append_time)
                if self._verdict is not None:
                    # This record is done, so the next search begins behind it.
                    self._cursor = record.offset + 1
                    return
        except KafkaError:
            first, next_offset = max(start, batch.base_offset), min(job.end, batch.next_offset)
            self._gap(self._damaged, first, next_offset)

    # -- output ----------------------------------------------------------------------------------

    def _hit(self, record: Record, *, is_append_time: bool) -> None:
        self._hits += 1
        cut = _Cut(self._job.max_shown_bytes)
        self._tell(
            {
                "kind": "hit",
                "offset": record.offset,
                "timestamp": record.timestamp,
                "is_append_time": is_append_time,
                "key": cut.shown(record.key),
                "value": cut.shown(record.value),
                "headers": cut.headers(record),
                "header_count": len(record.headers),
                "key_bytes": _size(record.key),
                "value_bytes": _size(record.value),
                "is_cut": cut.is_cut,
            }
        )
        if self._hits >= self._job.max_hits:
            self._verdict = LIMIT

    def _step(self) -> None:
        """Keep to the pace, report progress, and check whether to end."""
        job, pace = self._job, self._pace
        while True:
            self._pulse()
            now = pace.monotonic()
            if now - self._told >= PROGRESS_SECONDS:
                self._told = now
                self._tell({"kind": "progress", **self._counts()})
            if self._verdict is None and now - self._began >= job.seconds:
                self._verdict = STOPPED
            if self._verdict is None and self._bytes >= job.max_bytes:
                self._verdict = BUDGET
            ahead = self._bytes / job.bytes_per_second - (now - self._began)
            if self._verdict is not None or ahead <= AHEAD_SECONDS:
                return
            pace.sleep(min(ahead, REST_SECONDS))

    def _end_hole(self, offset: int) -> None:
        """End the open damage, if any, at this offset."""
        hole, self._hole = self._hole, None
        if hole is not None:
            self._gap(self._damaged, hole, offset)
            self._cursor = max(self._cursor, offset)

    def _gap(self, gaps: list[tuple[int, int]], first: int, next_offset: int) -> None:
        if first >= next_offset:
            return
        gaps.append((first, next_offset))
        if len(gaps) > MAX_GAPS:
            self._verdict = DAMAGED if gaps is self._damaged else REMOVED

    def _counts(self) -> Line:
        return {
            "next_offset": self._cursor,
            "hits": self._hits,
            "records": self._records,
            "bytes": self._bytes,
        }

    def _done(self) -> Line:
        at_end = DAMAGED if self._damaged else REMOVED if self._removed else COMPLETE
        return {
            "kind": "done",
            "verdict": self._verdict or at_end,
            **self._counts(),
            "damaged": self._damaged,
            "removed": self._removed,
        }


def _may_hold(condition: Condition, batch: Batch, max_bytes: int) -> bool:
    if condition is EVERY_RECORD:
        return True
    if not batch.is_compressed:
        return condition.may_hold(bytes(batch.body))
    return condition.may_hold(decompress(batch.compression, batch.body, max_bytes=max_bytes))


def _is_aborted(batch: Batch, job: Job) -> bool:
    return batch.is_transactional and any(
        producer == batch.producer_id and first <= batch.base_offset <= last
        for producer, first, last in job.aborted
    )


def _inode(file: _File) -> int:
    try:
        return Path(file.path).stat().st_ino
    except FileNotFoundError:
        return -1


class _Cut:
    """Bytes as text, each up to a number of bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.is_cut = False

    def shown(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        if len(data) > self._most:
            self.is_cut = True
            data = data[: self._most]
        return base64.b64encode(data).decode("ascii")

    def headers(self, record: Record) -> list[tuple[str, str | None]]:
        """Return as many headers as fit together into the limit of one."""
        told: list[tuple[str, str | None]] = []
        left = self._most
        for name, value in record.headers:
            left -= len(name) + _size(value)
            if left < 0:
                self.is_cut = True
                break
            told.append((name.decode("utf-8", "backslashreplace"), self.shown(value)))
        return told


def _base(file: _File) -> int:
    return file.base


def _size(data: bytes | None) -> int:
    return 0 if data is None else len(data)
