"""One log's folder in service: its segments, epochs and snapshots, and which of them are synced.

Handles files and their order, not appends or reads, and keeps no offset of its own: the log passes
its end. A full disk leaves everything as it was, and the client gets an error; any other error
fails the log dir.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Final

from brokers.protocol.errors import KafkaError
from brokers.storage import room_ahead
from brokers.storage.deletions import Deletions
from brokers.storage.errors import (
    DiskNearlyFull,
    LogBusy,
    LogDirFailed,
    OutOfSpace,
    StorageCorrupt,
    TooManyOpenFiles,
    is_refusal,
    write_failed,
)
from brokers.storage.fsync import Flushes, FlushTicket, Snapshot, encode_epochs, write_epochs
from brokers.storage.handles import Handles, LogFile
from brokers.storage.log_config import MAX_SEGMENT_BYTES, LogConfig
from brokers.storage.names import LEADER_EPOCHS, TEMPORARY
from brokers.storage.recovery import Recovered
from brokers.storage.segment import Segment
from brokers.storage.set_aside import set_damage_aside
from brokers.storage.swaps import Swaps

_AT_ONCE: Final = 0
# Up to this size, rebuilding indexes and producer state at a start takes a few milliseconds.
_QUICKLY_READ_BYTES: Final = 1024 * 1024
# The possible holders of a file.
_FLUSH: Final = "a flush is running"
_READER: Final = "a reader has not released its slice"
_SWAP: Final = "a cleaned segment is being put in place"


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
        "set_aside",
        "swaps",
    )

    def __init__(self, path: str, config: LogConfig, handles: Handles, found: Recovered) -> None:
        self.path = path
        self.config = config
        self.handles = handles
        self.segments = found.segments
        self.epochs = found.epochs
        self.notes = found.producers
        self.notes.indexed.clear()  # Recovery has synced these indexes.
        self.damage = found.damage
        self.set_aside = found.set_aside
        self.flushes = Flushes(found.end_offset, is_new=found.is_new)
        self._deletions = Deletions(handles)
        self.swaps = Swaps(path, self.segments, self._deletions, self.flushes, self.notes)

    def open(self, file: LogFile) -> int:
        """Return the descriptor of a log file; open it if it is closed."""
        try:
            return self.handles.open(file)
        except OSError as error:
            raise self.refused("open", error) from error

    def roll(self, end_offset: int) -> Segment:
        """Close the active segment and begin the next one; a failure changes nothing.

        An empty one is removed: the next begins far behind it, and there is nothing between.
        """
        self.refuse_broken()
        old, notes = self.segments.active, self.notes
        try:
            old.seal()
            # An existing one may be on the disk already, where another write could tear it.
            if notes.snapshot_offset != end_offset:
                self._write_snapshot(end_offset)
            segment = self._create_segment(end_offset)
            if old.size == 0:
                self._replace(old, segment)
                return segment
        except OSError as error:
            raise self.refused("roll", error) from error
        self._give_room_back(old)
        self.flushes.rolled(old)
        self.segments.append(segment)
        return segment

    def require_room(self) -> None:
        """Raise DiskNearlyFull while the rest of the disk is kept for more important writes."""
        free, least = self._free_bytes()
        if free < least:
            raise DiskNearlyFull(free, least)

    def take_room(self, segment: Segment, end: int) -> None:
        """Reserve room for the active segment, which now grows to `end`."""
        if end > room_ahead.bound(segment.file):
            handles = self.handles
            handles.open(segment.file)
            # A log may grow faster than the disk is measured otherwise.
            handles.measure(segment.file.fd)
            self.require_room()
            free, least = self._free_bytes()
            limit = min(self.config.segment_bytes, end + free - least)
            handles.ahead.take(segment.file, segment.size, end, limit)

    def write_indexes(self, segment: Segment) -> None:
        """Write index entries. Their batches are in the log, so a full disk raises nothing."""
        try:
            segment.write_indexes()
        except OSError as error:
            # On a full disk the next turn retries; other failures are raised by the next append.
            self.refused("append", error)

    def index_aborts(self) -> None:
        """Write aborted transactions to their index; a full disk raises nothing."""
        try:
            self._index_aborts()
        except OSError as error:
            # They hold readers back until the next flush or abort retries (KAFKA-7866).
            self.refused("append", error)

    def cut_back(
        self, segment: Segment, error: OSError
    ) -> OutOfSpace | TooManyOpenFiles | LogDirFailed:
        """Remove what a failed append left behind the end, and return the error to raise."""
        try:
            self.handles.files.truncate(segment.file.fd, segment.size)
        except OSError as cut_error:
            return self.failed("truncate", cut_error)
        self.handles.ahead.forget(segment.file)
        return self.refused("append", error)

    def begin_flush(self, end_offset: int, *, rolled_only: bool) -> FlushTicket | None:
        """Return a ticket for all unsynced data; without the active segment if `rolled_only`."""
        self.refuse_failed()
        if self.notes.has_aborts:
            self.index_aborts()
        active = self.segments.active
        segments, end_offset = ([], active.base_offset) if rolled_only else ([active], end_offset)
        if self.notes.first_abort is not None:
            # Recovery must read this marker again, since no index has it.
            end_offset = min(end_offset, self.notes.first_abort)
        indexed = self.notes.indexed - {active} if rolled_only else set(self.notes.indexed)
        ticket = self.flushes.begin(
            self.handles.files, self.path, segments, end_offset, self.epochs, indexed
        )
        if ticket is not None:
            self.notes.indexed -= indexed
        return ticket

    def finish_flush(self, ticket: FlushTicket) -> int:
        """Take the ticket back; return the flushed offset, or raise LogDirFailed if it had failed.

        A ticket that was refused is undone: OutOfSpace or TooManyOpenFiles, and the next one works.
        """
        self.flushes.finish(ticket)
        for file in ticket.pinned:
            self.handles.let_go(file)
        if ticket.failure is not None:
            raise self.handles.fail(ticket.failure)
        if ticket.refusal is not None:
            if ticket.rest is not None:
                self.notes.indexed |= ticket.rest.indexed.intersection(self.segments)
                self.epochs.is_dirty = self.epochs.is_dirty or ticket.rest.epochs is not None
            raise ticket.refusal
        return self.flushes.flushed_offset

    def take_oldest(self, count: int, due_ms: int) -> None:
        """Take the oldest segments out of service; their files are unlinked from `due_ms` on."""
        oldest = list(islice(self.segments, count))
        self._deletions.add(oldest, due_ms)
        self.segments.take_oldest(count)
        self._went_out(oldest)

    def finish_deletions(self, now_ms: int) -> int:
        """Unlink deleted files that are due; return how many segments still wait."""
        self._deletions.finish(now_ms)
        return len(self._deletions)

    def cut_to(self, offset: int) -> int:
        """End the log at or below `offset`, durably, the newest segments first; return the end.

        Calls that may be refused come first, and then nothing is cut. Later failures are final.
        """
        self.swaps.give_way()
        keep = self.segments.index_of(offset) + 1
        active, removed = self.segments[keep - 1], list(self.segments)[keep:][::-1]
        fd = self.open(active.file)
        header = active.find(offset, self.config)
        position = active.size if header is None else header.position
        if position < active.size:
            self.refuse_pinned([active])
        if self.notes.has_aborts:
            self._index_aborts()
        with self._taken_out(removed):
            if removed:
                # A later segment that reappeared after a crash would follow the wrong records.
                self.handles.sync_folder(self.path)
            self.handles.files.truncate(fd, position)
        self.handles.ahead.forget(active.file)
        with self._no_way_back():
            self.segments.take_newest(keep)
            self.flushes.truncated(offset)
            self._went_out(removed)
            active.cut(position, offset)
            end_offset = active.carry_on(self.config, is_strict=False)
            self.handles.sync(self.handles.open(active.file), active.file.path)
            self.flushes.truncated(end_offset)
            self._rewind(end_offset)
        return end_offset

    def start_afresh(self, offset: int) -> None:
        """End the log and begin an empty one at `offset`, durably; if refused, nothing changes.

        Files in use are neither cut nor closed here; they are removed when they are released.
        """
        self.swaps.give_way()
        segment, files = Segment(self.handles, self.path, offset), self.handles.files
        # Find the room for it first, under a name that the next start would remove.
        prepared = segment.file.path + TEMPORARY
        files.close(files.open(prepared, os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        removed = list(self.segments)[::-1]
        with self._taken_out(removed):
            self.handles.sync_folder(self.path)
            files.rename(prepared, segment.file.path)
        with self._no_way_back():
            segment.forget_indexes()
            self.segments.take_newest(0)
            self.segments.append(segment)
            self.flushes.truncated(offset)
            self._went_out(removed)
            # Earlier state is void, even open transactions.
            self.epochs.clear()
            self.notes.snapshots.remove_above(-1)
            self._rewind(offset)
            self.flushes.flushed_offset = offset

    def drop_damage(self, end_offset: int) -> None:
        """Set aside the bytes behind `end_offset`, and forget what was derived from them."""
        self.set_aside += set_damage_aside(self.handles, self.segments.active, self.path)
        self._rewind(end_offset)
        self.damage = None

    def prepare_close(self, end_offset: int) -> None:
        """Write the missing files that speed up the next start; a flush makes them durable.

        Not if they can be rebuilt as quickly after a power failure: thousands of small logs must
        not wait for the disk one by one. Waiting aborts come first, since a snapshot does not
        contain them.
        """
        if self.notes.has_aborts:
            self._index_aborts()
        active, notes = self.segments.active, self.notes
        # The snapshot may be the only record of producers.
        is_synced = len(notes.states) > 0 or active.size > _QUICKLY_READ_BYTES
        holds_any = end_offset > self.segments[0].base_offset
        if holds_any and notes.snapshot_offset != end_offset:
            if is_synced:
                self._write_snapshot(end_offset)
            else:
                self.handles.files.close(notes.snapshots.write(end_offset, notes.states))
                notes.snapshot_offset = end_offset
        self._give_room_back(active)
        # A log without a batch has nothing to index; sealing thousands would cost seconds.
        if active.size > 0 and active.sealed_size != active.size:
            active.seal()
            active.sealed_size = active.size
            if is_synced:
                self.flushes.rolled(active)

    def release(self) -> None:
        """Close every file, or doom it while a reader holds it, and give up memory."""
        self._deletions.release()
        self.flushes.release(self.handles.files)
        for segment in self.segments:
            segment.release()

    def delete(self) -> None:
        """Remove the folder and all that is in it."""
        self.release()
        files = self.handles.files
        for name in files.list_folder(self.path):
            files.unlink(os.path.join(self.path, name))
        files.remove_folder(self.path)

    @contextmanager
    def on_disk(self, operation: str) -> Iterator[None]:
        """Convert disk errors within the block to the log's errors."""
        try:
            yield
        except OSError as error:
            raise self.refused(operation, error) from error

    def refuse_in_use(self) -> None:
        """Raise LogBusy while a running ticket names files of this folder.

        Readers do not count: they need only their descriptor, which stays open.
        """
        if self.flushes.ticket is not None:
            raise LogBusy(self.path, _FLUSH)
        if self.swaps.ticket is not None:
            raise LogBusy(self.path, _SWAP)

    def refuse_pinned(self, segments: Iterable[Segment]) -> None:
        """Raise LogBusy while a reader or a flush needs the file of one of these segments."""
        ticket = self.flushes.ticket
        for segment in segments:
            if segment.file.pins > 0:
                is_flushed = ticket is not None and segment.file in ticket.pinned
                raise LogBusy(self.path, _FLUSH if is_flushed else _READER)

    def refuse_failed(self) -> None:
        """Raise LogDirFailed if the disk has failed before, here or in another log."""
        if self.handles.failure is not None:
            raise self.handles.failure

    def refuse_broken(self) -> None:
        """Raise the reason why this log cannot be changed: a failed disk, or damage."""
        self.refuse_failed()
        if self.damage is not None:
            raise StorageCorrupt(self.damage.path, self.damage.position, self.damage.reason)

    def refused(
        self, operation: str, error: OSError
    ) -> OutOfSpace | TooManyOpenFiles | LogDirFailed:
        """Return the error for a failed call; all but lack of space or files fails the dir."""
        failure = write_failed(self.segments.active.file.path, operation, error)
        return self.handles.fail(failure) if isinstance(failure, LogDirFailed) else failure

    def failed(self, operation: str, error: OSError) -> LogDirFailed:
        """Fail the log dir, and return the error to raise."""
        return self.handles.fail(LogDirFailed(self.segments.active.file.path, operation, error))

    def _free_bytes(self) -> tuple[int, int]:
        """Return the free bytes of the disk, and the least with which this log may grow."""
        room = self.handles.room
        if room is None:
            return MAX_SEGMENT_BYTES, 0
        least = room.internal_floor if self.config.is_internal else room.records_floor
        return room.free_bytes, least

    def _write_snapshot(self, offset: int) -> None:
        """Write the producers' states at `offset`, the log's end, for a flush to sync."""
        snapshots = self.notes.snapshots
        fd = snapshots.write(offset, self.notes.states)
        self.flushes.wrote(Snapshot(offset, snapshots.path(offset), fd))
        self.notes.snapshot_offset = offset

    def _give_room_back(self, segment: Segment) -> None:
        if segment.file.room_taken:
            # No other operation should fail because of this.
            with suppress(OSError, TooManyOpenFiles):
                self.handles.open(segment.file)
                self.handles.ahead.give_back(segment.file, segment.size)

    def _create_segment(self, base_offset: int) -> Segment:
        segment = Segment(self.handles, self.path, base_offset)
        self.handles.open(segment.file, create=True)
        segment.forget_indexes()
        return segment

    def _replace(self, empty: Segment, segment: Segment) -> None:
        """Replace the active segment, which is empty, by a new one."""
        try:
            self._deletions.add([empty], _AT_ONCE)
        except OSError:
            segment.remove()
            raise
        self.segments.take_newest(len(self.segments) - 1)
        self.segments.append(segment)
        self._went_out([empty])

    def _index_aborts(self) -> None:
        self.flushes.folder_changed = True  # The index may be a new file.
        self.notes.index_aborts()

    @contextmanager
    def _taken_out(self, segments: Sequence[Segment]) -> Iterator[None]:
        """Rename the files of segments; undo that if the block is refused."""
        renamed = self._deletions.add(segments, _AT_ONCE)
        try:
            yield
        except TooManyOpenFiles:
            self._deletions.take_back(segments, renamed)
            raise
        except OSError as error:
            if is_refusal(error):
                self._deletions.take_back(segments, renamed)
            raise

    @contextmanager
    def _no_way_back(self) -> Iterator[None]:
        """Fail the log dir on any error within the block: files and memory disagree then."""
        try:
            yield
        except OSError as error:
            raise self.failed("truncate", error) from error
        except KafkaError as error:
            raise self.failed("truncate", OSError(str(error))) from error

    def _went_out(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            with suppress(FileNotFoundError):
                self.handles.files.unlink(self.notes.snapshots.path(segment.base_offset))
        self.notes.indexed.difference_update(segments)
        if segments:
            self.flushes.removed(segments)

    def _rewind(self, end_offset: int) -> None:
        """Adapt all that is derived from the log to its new end, durably."""
        self.epochs.truncate_from_end(end_offset)
        self.notes.snapshots.remove_above(end_offset)
        self.notes.rewind(self.segments, end_offset, self.config)
        # A running ticket may be writing this file; then the next one will.
        if self.epochs.is_dirty and self.flushes.ticket is None:
            path = os.path.join(self.path, LEADER_EPOCHS)
            # On a full disk the next flush does this, and is refused until it works.
            with suppress(KafkaError):
                write_epochs(self.handles.files, path, encode_epochs(self.epochs))
                self.epochs.is_dirty = False
        self.handles.sync_folder(self.path)
