"""Recovers a partition folder in any state to a log that can be trusted, step by step.

Has no replication: the caller decides whether to refill a replica. A log that was closed cleanly is
opened as it is; any other is read from the segment of the recovery point on, batch by batch, and
everything derived is rebuilt on the way.

Unsound bytes are of two kinds. A *torn tail* is what a crash leaves of bytes never synced: pages
that were not written, files that end early. It is cut off, and sound batches behind it are set
aside. *Damage* is a change to bytes that had been synced: below the recovery point, or in front of
batches that are sound. It is never cut silently: the part in front of it is served, the rest stays
on the disk, and `Damage` reports it to the caller, who decides.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from brokers.protocol.records.batch import NO_LEADER_EPOCH
from brokers.storage import names
from brokers.storage.epochs import EpochCache
from brokers.storage.errors import StorageCorrupt
from brokers.storage.folder_files import FolderFiles, settle_folder
from brokers.storage.handles import Handles
from brokers.storage.log_config import LogConfig
from brokers.storage.producer_notes import ProducerNotes
from brokers.storage.resync import has_lost_page, has_sound_batch
from brokers.storage.scan import BLOCK_BYTES, Scan
from brokers.storage.segment import ENTRY, MAX_WAITING, NOT_READ, Segment
from brokers.storage.segments import Segments
from brokers.storage.set_aside import copy_rest, set_segment_aside
from brokers.storage.txn_index import TxnIndex

_ALL_SYNCED: Final = 2**63 - 1
_IN_FRONT: Final = -1  # in front of a file's first byte, for a search that begins behind a position


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Changed bytes that had been synced; offsets below are served."""

    path: str
    position: int
    offset: int  # the first lost one, and the log's end for now
    reason: str
    is_flushed: bool  # below the recovery point; else inferred, because no crash leaves this


@dataclass(slots=True, kw_only=True)
class Recovered:
    """The initial state of a log."""

    segments: Segments
    epochs: EpochCache
    producers: ProducerNotes
    start_offset: int = 0
    end_offset: int = 0
    damage: Damage | None = None
    scanned_bytes: int = 0
    cut_bytes: int = 0
    set_aside: list[str] = field(default_factory=list)  # files with sound batches not in the log
    is_new: bool = False


class _Recovery:
    """Runs one recovery of one folder; call `run` once."""

    def __init__(
        self, folder: str, config: LogConfig, handles: Handles, recovery_point: int
    ) -> None:
        self._folder = folder
        self._config = config
        self._handles = handles
        self._files = handles.files
        self._saved_point = recovery_point
        # Below it every flaw is damage.
        self._recovery_point = recovery_point

    def run(self, log_start_offset: int, *, is_clean: bool) -> Recovered:
        present = settle_folder(self._files, self._folder)
        segments = self._open_segments(present, log_start_offset, is_clean=is_clean)
        self._found = found = Recovered(
            segments=segments,
            epochs=EpochCache(),
            producers=ProducerNotes(self._files, self._folder, self._handles.producer_ids),
            is_new=not present.bases,
        )
        if found.is_new:
            found.start_offset = found.end_offset = log_start_offset
            self._miss_synced_end()
            # Entries left from older segments may cover offsets that are now assigned again.
            found.epochs.is_dirty = names.LEADER_EPOCHS in present.names
            if found.damage is None:
                found.producers.snapshots.remove_above(-1)
                self._save_epochs()
            return found
        if is_clean:
            self._recovery_point = _ALL_SYNCED
        unsynced = len(segments) if is_clean else segments.index_of(self._recovery_point)
        first = self._first_unsound(present, unsynced)
        found.start_offset = max(log_start_offset, segments[0].base_offset)
        self._load_epochs(first)
        if first < len(found.segments):
            self._scan_from(first)
        else:
            self._miss_synced_end()
            found.producers.rewind(found.segments, found.end_offset, self._config)
        if log_start_offset > found.end_offset and found.damage is None:
            self._start_at(log_start_offset)
        found.start_offset = min(found.start_offset, found.end_offset)
        found.epochs.truncate_from_end(found.end_offset)
        found.epochs.truncate_from_start(found.start_offset)
        if found.damage is None:
            snapshots = found.producers.snapshots
            if snapshots.remove_above(found.end_offset):
                self._handles.sync_folder(self._folder)
            self._drop_old_segments()
            snapshots.remove_strays([segment.base_offset for segment in found.segments])
        return found

    def _open_segments(
        self, present: FolderFiles, log_start_offset: int, *, is_clean: bool
    ) -> Segments:
        bases = present.bases or [log_start_offset]
        segments = []
        for base_offset in bases:
            segment = Segment(self._handles, self._folder, base_offset)
            fd = self._handles.open(segment.file, create=not present.bases)
            segment.size = self._files.size(fd)
            segment.max_timestamp = NOT_READ
            if present.has(base_offset, names.TXN_INDEX):
                segment.open_txn_index()
            segments.append(segment)
        if not present.bases:
            segments[0].forget_indexes()
        elif not is_clean:
            active = segments[-1]
            self._handles.ahead.give_back_forgotten(active.file.fd, active.size)
        return Segments(segments)

    def _first_unsound(self, present: FolderFiles, unsynced: int) -> int:
        """Return the first segment to read: the first `unsynced` one, or one with a bad index."""
        segments = self._found.segments
        for index, segment in enumerate(islice(segments, unsynced)):
            end_offset = segments.end_of(index, _ALL_SYNCED)
            is_active = segment is segments.active
            if is_active and self._recovery_point == _ALL_SYNCED:
                # A clean close has completed its indexes, if they are valid.
                segment.sealed_size = segment.size
            try:
                if segment.txn_index is not None:
                    segment.txn_index.check(segment.base_offset, end_offset)
                if not (
                    present.has(segment.base_offset, names.OFFSET_INDEX)
                    and present.has(segment.base_offset, names.TIME_INDEX)
                ):
                    # Without a batch there was nothing to index.
                    if segment.size > 0:
                        segment.rebuild_indexes(self._config)
                    else:
                        segment.forget_indexes()
                if is_active:
                    self._found.end_offset = segment.carry_on(self._config)
            except StorageCorrupt:
                return index
        return unsynced

    def _load_epochs(self, first: int) -> None:
        """Load the saved epochs, or derive them from the segments that are not read."""
        segments = self._found.segments
        path = os.path.join(self._folder, names.LEADER_EPOCHS)
        with suppress(StorageCorrupt):
            self._found.epochs = EpochCache.load(self._files, path)
        epochs = self._found.epochs
        # Their start may have been cut further than the log's, if that was not saved in the end.
        if epochs.earliest is None or epochs.earliest[1] > self._found.start_offset:
            epochs.clear()
            for header in chain.from_iterable(s.headers() for s in islice(segments, first)):
                if header.leader_epoch > epochs.latest:
                    epochs.assign(header.leader_epoch, header.base_offset)

    def _scan_from(self, first: int) -> None:
        found = self._found
        base_offset = found.segments[first].base_offset
        found.producers.rewind(found.segments, base_offset, self._config)
        found.end_offset = base_offset
        epoch = NO_LEADER_EPOCH
        for index in range(first, len(found.segments)):
            segment = found.segments[index]
            if index > 0:
                self._keep_snapshot(segment.base_offset)
            scan = self._scan(segment, epoch)
            epoch = scan.epoch
            found.end_offset = max(found.end_offset, scan.next_offset)
            following = found.segments.end_of(index, 0)
            if scan.flaw is None and following:
                scan.flaw = self._hole_behind(scan, following)
            is_unused = 0 < following <= found.start_offset
            if scan.flaw is not None and is_unused and scan.next_offset < self._recovery_point:
                # This damage is below the served offsets, or a deletion was interrupted.
                found.end_offset = following
                continue
            if scan.flaw is not None:
                self._end_at_flaw(index, scan, scan.flaw)
                break
        self._miss_synced_end()
        for segment in islice(found.segments, first, None):
            self._make_durable(segment)
        self._save_epochs()
        self._handles.sync_folder(self._folder)

    def _scan(self, segment: Segment, epoch_before: int) -> Scan:
        """Read a whole segment and rebuild all that is derived from it."""
        found, interval = self._found, self._config.index_interval_bytes
        segment.forget_indexes()
        # Built beside the old one: the next start would take half of it for all of it.
        segment.txn_index = TxnIndex(self._files, _txn_index_path(segment) + names.TEMPORARY)
        scan = Scan(
            self._files,
            self._handles.open(segment.file),
            position=0,
            stop=segment.size,
            next_offset=max(segment.base_offset, found.end_offset),
            epoch=epoch_before,
        )
        note, notes = segment.note, found.producers
        # Below this offset the epochs are known to agree with the batches.
        agreed_epoch, agreed_below = NO_LEADER_EPOCH, 0
        for position, size, base_offset, last_offset, epoch, timestamp, producer_id in scan:
            note(position, size, last_offset, timestamp, interval)
            if epoch != agreed_epoch or base_offset >= agreed_below:
                agreed_epoch, agreed_below = epoch, self._agree_on_epoch(epoch, base_offset)
            if producer_id >= 0:
                batch = scan.batch(position, size)
                if notes.note(segment, batch, base_offset, timestamp):
                    notes.index_aborts()
        found.scanned_bytes += scan.position
        return scan

    def _agree_on_epoch(self, epoch: int, offset: int) -> int:
        """Correct the epochs where a batch contradicts them; return up to where they agree.

        Saved entries stay otherwise: compaction removes an epoch's first batch, but not the epoch.
        """
        epochs = self._found.epochs
        if epoch >= 0 and epochs.epoch_for_offset(offset) != epoch:
            epochs.truncate_from_end(offset)
            if epoch > epochs.latest:
                epochs.assign(epoch, offset)
        later = (start for _, start in epochs.entries() if start > offset)
        return min(later, default=_ALL_SYNCED)

    def _save_epochs(self) -> None:
        epochs = self._found.epochs
        if epochs.is_dirty:
            epochs.save(self._files, os.path.join(self._folder, names.LEADER_EPOCHS))

    def _keep_snapshot(self, base_offset: int) -> None:
        """Ensure a snapshot at a segment's beginning before older segments are removed."""
        notes = self._found.producers
        if notes.snapshot_offset == base_offset:
            self._handles.sync_path(notes.snapshots.path(base_offset))
        else:
            notes.save(self._handles, base_offset)

    def _hole_behind(self, scan: Scan, following: int) -> str | None:
        """Return why the next segment cannot follow, taking into account what a crash leaves.

        Compaction leaves offsets out, also in a log that is no longer compacted, so a hole between
        segments that had been synced is no damage.
        """
        is_hole = scan.next_offset < following and self._recovery_point < following
        if self._config.is_compacted or not is_hole:
            return None
        return f"it ends at {scan.next_offset}, the next segment begins at {following}"

    def _end_at_flaw(self, index: int, scan: Scan, flaw: str) -> None:
        found = self._found
        segment = found.segments[index]
        is_synced = scan.next_offset < self._recovery_point
        if not is_synced and self._is_torn(index, scan):
            self._cut_tail(index, scan)
            return
        found.damage = Damage(
            path=segment.file.path,
            position=scan.position,
            offset=found.end_offset,
            reason=flaw,
            is_flushed=is_synced,
        )
        for later in found.segments.take_newest(index + 1):
            later.release()
        segment.size = scan.position

    def _is_torn(self, index: int, scan: Scan) -> bool:
        """Tell whether a crash explains a flaw in bytes that were not synced.

        It loses whole pages and ends of files, and may spare the bytes behind them. Any other flaw
        in front of sound batches is damage.
        """
        fd = self._handles.open(self._found.segments[index].file)
        if scan.is_whole:
            return False
        if has_lost_page(self._files, fd, scan.position, scan.stop):
            return True
        if has_sound_batch(self._files, fd, scan.position, scan.stop, scan.next_offset):
            return False
        if scan.is_cut_off or scan.position == scan.stop:
            return True
        later = islice(self._found.segments, index + 1, None)
        return not any(self._has_sound_batch(segment, scan.next_offset) for segment in later)

    def _has_sound_batch(self, segment: Segment, next_offset: int) -> bool:
        fd = self._handles.open(segment.file)
        scan = Scan(self._files, fd, position=0, stop=segment.size, next_offset=next_offset)
        # The search finds no batch of unusual size, but mostly there is one right here.
        return next(iter(scan), None) is not None or has_sound_batch(
            self._files, fd, _IN_FRONT, segment.size, next_offset
        )

    def _cut_tail(self, index: int, scan: Scan) -> None:
        """End the log at the flaw; move sound batches behind it to files that logs never read."""
        found = self._found
        segment = found.segments[index]
        # From the end on, so that a crash meanwhile leaves no hole but only a shorter tail.
        removed = found.segments.take_newest(index + 1)
        for later in removed:
            self._remove(later, scan.next_offset)
        if removed:
            self._handles.sync_folder(self._folder)
        found.cut_bytes = scan.stop - scan.position + sum(later.size for later in removed)
        fd = self._handles.open(segment.file)
        if has_sound_batch(self._files, fd, scan.position, scan.stop, scan.next_offset):
            found.set_aside.append(copy_rest(self._handles, segment, scan.position))
        self._files.truncate(fd, scan.position)
        segment.size = scan.position

    def _remove(self, segment: Segment, next_offset: int) -> None:
        """Remove a segment from the log: set it aside if it has sound batches, else unlink it."""
        if self._has_sound_batch(segment, next_offset):
            self._found.set_aside.append(set_segment_aside(self._handles, segment))
        else:
            segment.remove()

    def _miss_synced_end(self) -> None:
        """Record damage if the log ends, though soundly, in front of what had been synced."""
        found, segment = self._found, self._found.segments.active
        # Records below the log's start are not served anyway.
        is_missed = max(found.end_offset, found.start_offset) < self._saved_point
        if is_missed and found.damage is None:
            found.damage = Damage(
                path=segment.file.path,
                position=segment.size,
                offset=found.end_offset,
                reason=f"it ends at {found.end_offset}, but up to {self._saved_point} was synced",
                is_flushed=True,
            )

    def _make_durable(self, segment: Segment) -> None:
        """Sync a segment that was read: it may be only in the page cache, and is served next.

        After a failed flush the kernel has marked the lost pages as clean, and a sync would report
        success without them. So the part that was never synced is written once more.
        """
        self._write_again(segment)
        self._handles.sync(self._handles.open(segment.file), segment.file.path)
        if segment is not self._found.segments.active:
            segment.seal()
            for file in segment.index_files:
                self._handles.sync_path(file.path)
        elif len(segment.waiting) >= MAX_WAITING * ENTRY.size:
            # The next recovery would read this segment again, so its indexes need no sync.
            segment.write_indexes()
        self._put_txn_index(segment)

    def _write_again(self, segment: Segment) -> None:
        """Write the bytes above the recovery point over themselves."""
        if segment.base_offset < self._recovery_point:
            first = segment.find(self._recovery_point, self._config)
            position = segment.size if first is None else first.position
        else:
            position = 0
        fd = self._handles.open(segment.file)
        while position < segment.size:
            length = min(BLOCK_BYTES, segment.size - position)
            data = memoryview(self._files.pread(fd, length, position))
            while data:
                written = self._files.pwrite(fd, data, position)
                position += written
                data = data[written:]

    def _put_txn_index(self, segment: Segment) -> None:
        """Replace the old transaction index by the new one."""
        made, path = segment.txn_index, _txn_index_path(segment)
        assert made is not None, f"{segment.file.path} was scanned"
        unsynced = made.unsynced()
        if unsynced is None:
            segment.txn_index = None
            with suppress(FileNotFoundError):
                self._files.unlink(path)
            return
        fd, mark = unsynced
        self._handles.sync(fd, made.path)
        made.synced(mark)
        self._files.rename(made.path, path)
        made.path = path

    def _start_at(self, offset: int) -> None:
        """Empty the log and restart it at its start: all records from the start on were lost.

        Nothing below its start is served any more. But the start may be that of an older log with
        this name, so records that would be lost by that are only set aside.
        """
        found = self._found
        for segment in found.segments.take_newest(0):
            self._remove(segment, 0)
        segment = Segment(self._handles, self._folder, offset)
        self._handles.open(segment.file, create=True)
        segment.forget_indexes()
        found.segments.append(segment)
        found.end_offset = offset
        found.epochs.clear()
        found.producers.snapshots.remove_above(-1)
        found.producers.rewind(found.segments, offset, self._config)
        self._handles.sync_folder(self._folder)

    def _drop_old_segments(self) -> None:
        """Remove segments wholly below the log's start, which retention had not removed yet."""
        found = self._found
        count = found.segments.index_of(found.start_offset)
        if count == 0:
            return
        for segment in found.segments.take_oldest(count):
            segment.remove()
        self._handles.sync_folder(self._folder)


def _txn_index_path(segment: Segment) -> str:
    """Return the path of the segment's transaction index once it is complete."""
    return segment.file.path.removesuffix(names.LOG) + names.TXN_INDEX


def recover(
    folder: str,
    config: LogConfig,
    handles: Handles,
    *,
    recovery_point: int,
    log_start_offset: int,
    is_clean: bool,
) -> Recovered:
    """Open the folder, or begin an empty log in it; all its records are durable on return."""
    if not handles.files.exists(folder):
        handles.files.make_folder(folder)
        handles.sync_folder(os.path.dirname(folder))
        recovery_point = 0
    return _Recovery(folder, config, handles, recovery_point).run(
        log_start_offset, is_clean=is_clean
    )
