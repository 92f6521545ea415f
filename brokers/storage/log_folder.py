"""One log's folder in service: its segments, epochs and snapshots, and what of them is synced.

Knows files and their order, not who appends or reads, and keeps no offset of its own: the log says
where it ends. What fails here fails in one of two ways: a full disk leaves everything as it was and
is told to the client; any other error ends the log dir.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from brokers.storage.deletions import Deletions
from brokers.storage.errors import LogDirFailed, OutOfSpace, StorageCorrupt, write_failed
from brokers.storage.fsync import Flushes, FlushTicket, Snapshot, sync_path
from brokers.storage.handles import Handles, LogFile
from brokers.storage.log_config import LogConfig
from brokers.storage.names import LEADER_EPOCHS
from brokers.storage.recovery import Recovered
from brokers.storage.segment import Segment

_AT_ONCE: Final = 0


class LogFolder:
    """Not thread-safe; belongs to its log."""

    __slots__ = (
        "_deletions",
        "config",
        "damage",
        "epochs",
        "flushes",
        "handles",
        "notes",
        "path",
        "segments",
    )

    def __init__(self, path: str, config: LogConfig, handles: Handles, found: Recovered) -> None:
        self.path = path
        self.config = config
        self.handles = handles
        self.segments = found.segments
        self.epochs = found.epochs
        self.notes = found.producers
        self.damage = found.damage
        self.flushes = Flushes(found.end_offset)
        self.flushes.folder_changed = found.is_new
        self._deletions = Deletions(handles)

    def open(self, file: LogFile) -> int:
        """The descriptor of a log file, opened if it was closed."""
        try:
            return self.handles.open(file)
        except OSError as error:
            raise self.refused("open", error) from error

    def roll(self, end_offset: int) -> Segment:
        """Closes the active segment and begins the next one; if it fails, all is as it was."""
        self.refuse_broken()
        old, notes = self.segments.active, self.notes
        try:
            old.seal()
            # One that is there may be on the disk already, where writing it again could tear it.
            if notes.snapshot_offset != end_offset:
                fd = notes.snapshots.write(end_offset, notes.states)
                path = notes.snapshots.path(end_offset)
                self.flushes.wrote(Snapshot(end_offset, path, fd))
                notes.snapshot_offset = end_offset
            segment = self._create_segment(end_offset)
        except OSError as error:
            raise self.refused("roll", error) from error
        self.flushes.rolled(old)
        self.segments.append(segment)
        return segment

    def write_indexes(self, segment: Segment) -> None:
        """Writes index entries. Their batches are in the log, so nothing is refused any more."""
        try:
            segment.write_indexes()
        except OSError as error:
            # On a full disk they wait for the next turn; other failures show at the next append.
            self.refused("append", error)

    def index_aborts(self) -> None:
        """Writes aborted transactions into their index, without refusing what is in the log."""
        self.flushes.folder_changed = True  # Their index may be a new file.
        try:
            self.notes.index_aborts()
        except OSError as error:
            # They hold readers back until the next flush or abort tries again (KAFKA-7866).
            self.refused("append", error)

    def cut_back(self, segment: Segment, error: OSError) -> OutOfSpace | LogDirFailed:
        """Removes what a failed append left behind the end, and returns what to raise."""
        try:
            self.handles.files.truncate(segment.file.fd, segment.size)
        except OSError as cut_error:
            return self.failed("truncate", cut_error)
        return self.refused("append", error)

    def begin_flush(self, end_offset: int, *, rolled_only: bool) -> FlushTicket | None:
        """A ticket for all that is not synced; without the active segment if `rolled_only`."""
        self.refuse_failed()
        if self.notes.has_aborts:
            self.index_aborts()
        active = self.segments.active
        segments, end_offset = ([], active.base_offset) if rolled_only else ([active], end_offset)
        return self.flushes.begin(self.handles.files, self.path, segments, end_offset, self.epochs)

    def finish_flush(self, ticket: FlushTicket) -> int:
        """Takes the ticket back; LogDirFailed if it had failed, else the flushed offset."""
        self.flushes.finish(ticket)
        if ticket.failure is not None:
            raise self.handles.fail(ticket.failure)
        return self.flushes.flushed_offset

    def take_oldest(self, count: int, due_ms: int) -> None:
        """Takes the oldest segments out of service; their files go once it is `due_ms`."""
        self._take_out(self.segments.take_oldest(count), due_ms)

    def finish_deletions(self, now_ms: int) -> int:
        """Unlinks what was taken out and is due; returns how many segments wait on."""
        self._deletions.finish(now_ms)
        return len(self._deletions)

    def cut_to(self, offset: int) -> int:
        """Ends the log at or below `offset`, durably, the newest segments first; returns where."""
        removed = self.segments.take_newest(self.segments.index_of(offset) + 1)
        self.flushes.truncated(offset)
        self._take_out(removed, _AT_ONCE)
        if removed:
            # A later segment that came back after a crash would follow on the wrong records.
            self.handles.files.sync_folder(self.path)
        active = self.segments.active
        header = active.find(offset, self.config)
        active.cut(active.size if header is None else header.position, offset)
        end_offset = active.carry_on(self.config)
        self.handles.files.datasync(self.handles.open(active.file))
        self.flushes.truncated(end_offset)
        self._rewind(end_offset)
        return end_offset

    def start_afresh(self, offset: int) -> None:
        """Ends the log and begins an empty one at `offset`, durably."""
        removed = self.segments.take_newest(0)
        self.flushes.truncated(offset)
        self._take_out(removed, _AT_ONCE)
        self.handles.files.sync_folder(self.path)
        self.segments.append(self._create_segment(offset))
        # Nothing of the past counts here, not even a transaction that is open.
        self.epochs.clear()
        self.notes.snapshots.remove_above(-1)
        self._rewind(offset)
        self.flushes.flushed_offset = offset

    def prepare_close(self, end_offset: int) -> None:
        """Writes what makes the next start quick; a flush makes it durable."""
        if self.notes.snapshot_offset != end_offset:
            self.notes.snapshots.save(end_offset, self.notes.states)
            self.notes.snapshot_offset = end_offset
            self.flushes.folder_changed = True
        active, files = self.segments.active, self.handles.files
        active.seal()
        sync_path(files, active.offset_index.path)
        sync_path(files, active.time_index.path)

    def release(self) -> None:
        """Closes every file and gives up memory."""
        self._deletions.release()
        for segment in self.segments:
            segment.release()

    def delete(self) -> None:
        """Removes the folder and all that is in it."""
        self.release()
        files = self.handles.files
        for name in files.list_folder(self.path):
            files.unlink(os.path.join(self.path, name))
        files.remove_folder(self.path)

    @contextmanager
    def on_disk(self, operation: str) -> Iterator[None]:
        """Turns what the disk refuses within into what the log raises."""
        try:
            yield
        except OSError as error:
            raise self.refused(operation, error) from error

    def refuse_failed(self) -> None:
        """Raises LogDirFailed if the disk has failed before, here or in another log."""
        if self.handles.failure is not None:
            raise self.handles.failure

    def refuse_broken(self) -> None:
        """Raises what keeps this log from being changed: a failed disk, or damage."""
        self.refuse_failed()
        if self.damage is not None:
            raise StorageCorrupt(self.damage.path, self.damage.position, self.damage.reason)

    def refused(self, operation: str, error: OSError) -> OutOfSpace | LogDirFailed:
        """What to raise for a failed write; anything but a full disk ends the log dir."""
        failure = write_failed(self.segments.active.file.path, operation, error)
        return self.handles.fail(failure) if isinstance(failure, LogDirFailed) else failure

    def failed(self, operation: str, error: OSError) -> LogDirFailed:
        """What to raise where nothing but the end of the log dir is safe."""
        return self.handles.fail(LogDirFailed(self.segments.active.file.path, operation, error))

    def _create_segment(self, base_offset: int) -> Segment:
        segment = Segment(self.handles, self.path, base_offset)
        self.handles.open(segment.file, create=True)
        segment.forget_indexes()
        return segment

    def _take_out(self, segments: list[Segment], due_ms: int) -> None:
        for segment in segments:
            self._deletions.add(segment, due_ms)
            with suppress(FileNotFoundError):
                self.handles.files.unlink(self.notes.snapshots.path(segment.base_offset))
        if segments:
            self.flushes.removed(segments)

    def _rewind(self, end_offset: int) -> None:
        """Brings all that is derived from the log in line with its new end, durably."""
        self.epochs.truncate_from_end(end_offset)
        self.notes.snapshots.remove_above(end_offset)
        self.notes.rewind(self.segments, end_offset, self.config)
        # A ticket that is out may be writing this file; then the next one will.
        if self.epochs.is_dirty and self.flushes.ticket is None:
            self.epochs.save(self.handles.files, os.path.join(self.path, LEADER_EPOCHS))
        self.handles.files.sync_folder(self.path)
