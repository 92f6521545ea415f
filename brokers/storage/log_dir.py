"""All partition folders of one disk: opened, checkpointed and closed together.

Uses folders, offsets and topic ids as bytes; the caller decides which partitions exist, and with
which configuration. A folder that cannot be opened is reported and does not affect the others. The
clean-shutdown mark is removed first and written last, and only if everything in between succeeded.
"""

import fcntl
import os
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from brokers.protocol.errors import KafkaError
from brokers.storage import names
from brokers.storage.checkpoints import OffsetCheckpoint
from brokers.storage.clean_shutdown import take_clean_shutdown, write_clean_shutdown
from brokers.storage.errors import (
    LogDirFailed,
    OutOfSpace,
    StorageCorrupt,
    StorageError,
    write_failed,
)
from brokers.storage.files import Files
from brokers.storage.fsync import FlushTicket, Rest
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.new_folders import NewFolder
from brokers.storage.partition_metadata import encode_partition_metadata, read_partition_metadata
from brokers.storage.producer_ids import read_highest, write_highest

Partition: TypeAlias = tuple[str, int]  # topic and index

# A time by which every deleted file is due, if its room or its folder is needed now.
_ALL_DUE: Final = 2**63 - 1


class LogDirInUse(StorageError):
    """The log dir is open in another broker; two would overwrite each other's files."""

    def __init__(self, path: str) -> None:
        super().__init__(f"log dir {path} is in use by another broker")
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFailed:
    """A partition folder that exists but could not be opened."""

    folder: str
    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartition:
    """A partition to create."""

    topic: str
    index: int
    topic_id: bytes


class LogDir:
    """One log dir and its logs. Not thread-safe.

    Open it, then `load` each of `folders`, at once or with pauses in between: recovery of a large
    log takes seconds. The dir is not marked as clean before all were loaded.
    """

    def __init__(
        self, path: str, *, files: Files, handles: Handles, config_for: Callable[[str], LogConfig]
    ) -> None:
        """Take the lock and the clean-shutdown mark, and read the checkpoints."""
        self.path = path
        self.handles = handles
        self.logs: dict[Partition, PartitionLog] = {}
        self.topic_ids: dict[Partition, bytes] = {}  # of those with a stored one
        self.failed: dict[Partition, FolderFailed] = {}
        self.set_aside: list[str] = []  # stray and future folders, left untouched
        # Why the highest producer id could not be read; then it is derived from the logs alone.
        self.lost_producer_ids: StorageCorrupt | None = None
        self._files = files
        self._config_for = config_for
        self._unloaded: dict[str, None] = {}
        self._doomed: list[str] = []
        with self._on_disk("start"):
            self._lock = _lock(files, path)
            # -1 if the mark has none; None after any end that was not clean.
            self.clean_broker_epoch = take_clean_shutdown(files, path)
            self._points = self._saved(names.RECOVERY_POINTS)
            self._starts = self._saved(names.LOG_STARTS)
            self._high_watermarks = self._saved(names.HIGH_WATERMARKS)
            self._cleaned = self._saved(names.CLEANER_OFFSETS)
            self._first_dirty = dict(self._cleaned.offsets)
            self._noted_producer_id = self._read_producer_ids()
            self._sort_folders()

    @property
    def folders(self) -> list[str]:
        """The partition folders that are still to be loaded."""
        return list(self._unloaded)

    @property
    def high_watermarks(self) -> Mapping[Partition, int]:
        """The last saved ones, maybe of an earlier run, of partitions that are here."""
        return self._saved_of(self._high_watermarks)

    def load_all(self) -> None:
        """Open all remaining folders."""
        for folder in self.folders:
            self.load(folder)

    def load(self, folder: str) -> PartitionLog | None:
        """Open one of `folders`, with recovery if needed; None if it failed."""
        parsed = names.parse_partition_folder(folder)
        assert parsed is not None, f"{folder} is not a partition folder"
        partition = (parsed.topic, parsed.partition)
        del self._unloaded[folder]
        try:
            log = self._open(partition, is_clean=self.clean_broker_epoch is not None)
            topic_id = self._topic_id(folder)
        except (StorageError, KafkaError, OSError) as error:
            self.failed[partition] = FolderFailed(folder=folder, error=error)
            return None
        self.logs[partition] = log
        if topic_id is not None:
            self.topic_ids[partition] = topic_id
        return log

    @property
    def refused(self) -> list[Partition]:
        """The failed partitions that only lacked room or descriptors; oldest try first."""
        return [key for key, failed in self.failed.items() if isinstance(failed.error, KafkaError)]

    def load_again(self, partition: Partition) -> PartitionLog | None:
        """Retry one of `refused`, with recovery; None if it failed again."""
        folder = self.failed.pop(partition).folder
        self._unloaded[folder] = None
        return self.load(folder)

    def create(self, topic: str, index: int, topic_id: bytes) -> PartitionLog:
        """Create the folder of a new partition; durable on return."""
        new = NewPartition(topic=topic, index=index, topic_id=topic_id)
        ticket = self.begin_create([new])
        try:
            ticket.run()
        finally:
            self.finish_create(ticket)
        return self.open_created(new)

    def begin_create(self, new: Collection[NewPartition]) -> FlushTicket:
        """Start the first of three steps that create the folders of many partitions.

        The ticket creates them, in any thread. `finish_create` takes it back, then `open_created`
        opens each of them.
        """
        folders = []
        for one in new:
            partition, name = (one.topic, one.index), names.partition_folder(one.topic, one.index)
            assert partition not in self.logs, f"{name} exists"
            assert partition not in self.failed, f"{name} exists, though it could not be opened"
            assert name not in self._unloaded, f"{name} exists and waits to be loaded"
            metadata = encode_partition_metadata(one.topic_id)
            folders.append(NewFolder(os.path.join(self.path, name), metadata))
        # Recovery would compare a new log with the offsets of an older one of this name.
        self._forget((one.topic, one.index) for one in new)
        return FlushTicket(self._files, self.path, 0, Rest(new_folders=folders))

    def finish_create(self, ticket: FlushTicket) -> None:
        """Raise the ticket's error; a KafkaError leaves the folders for another try."""
        if ticket.failure is not None:
            raise self.handles.fail(ticket.failure)
        if ticket.refusal is not None:
            raise ticket.refusal

    def open_created(self, new: NewPartition) -> PartitionLog:
        """Open the log of a partition whose folder was created."""
        partition = (new.topic, new.index)
        self.logs[partition] = log = self._open(partition, is_clean=False)
        self.topic_ids[partition] = new.topic_id
        return log

    def remove(self, topic: str, index: int, marker: str = names.DELETE_FOLDER) -> str:
        """Take a partition out of service by renaming its folder; return the new name.

        With `-delete`, `purge` removes its files; with `-stray` they stay for an operator. LogBusy,
        with nothing changed, while a flush is running. Readers keep what they hold, and the
        partition's name is free on return.
        """
        partition = (topic, index)
        log = self.logs[partition]
        log.refuse_in_use()
        folder = names.set_aside_folder(topic, index, uuid.uuid4().hex, marker)
        # A full disk must not prevent the removal of a folder that fills it.
        with suppress(OutOfSpace):
            self.save_producer_ids()
        with self._on_disk("remove"):
            self._files.rename(log.folder, os.path.join(self.path, folder))
        del self.logs[partition]
        self.topic_ids.pop(partition, None)
        self._first_dirty.pop(partition, None)
        (self._doomed if marker == names.DELETE_FOLDER else self.set_aside).append(folder)
        log.abandon()
        self.handles.sync_folder(self.path)
        return folder

    def purge(self) -> int:
        """Unlink the files of one removed partition; return how many folders remain."""
        if self._doomed:
            folder = os.path.join(self.path, self._doomed[-1])
            # An operator in need of the room may have been faster, which is no failure of the disk.
            with self._on_disk("remove"), suppress(FileNotFoundError):
                for name in self._files.list_folder(folder):
                    with suppress(FileNotFoundError):
                        self._files.unlink(os.path.join(folder, name))
                self._files.remove_folder(folder)
            self._doomed.pop()
        return len(self._doomed)

    def truncate_to(self, offsets: Mapping[Partition, int]) -> None:
        """Truncate logs; lower their saved offsets before the first one is changed.

        Otherwise a crash would let recovery assume that records written over the cut were synced,
        or were deleted.
        """
        points, starts = {}, {}
        for partition, offset in offsets.items():
            log = self.logs[partition]
            _refuse_damaged(log)
            with self._on_disk("truncate"):
                starts[partition] = cut = _cut(log, offset)
            # A log that is emptied has no segment at all for a moment.
            points[partition] = 0 if cut < log.segments[0].base_offset else cut
        self._save_lower(points, starts)
        for partition, offset in offsets.items():
            self.logs[partition].truncate_to(offset)

    def start_afresh(self, partition: Partition, offset: int) -> None:
        """Empty a log and restart it at `offset`, safe against a crash at any point."""
        log = self.logs[partition]
        _refuse_damaged(log)
        self._save_lower({partition: 0}, {partition: offset})
        log.truncate_fully_and_start_at(offset)
        self.write_checkpoints()

    def delete_old_segments(self, now_ms: int, high_watermarks: Mapping[Partition, int]) -> int:
        """Apply retention to every log; return how many segments went out of service.

        First all logs decide, then the new starts are saved, then files are renamed: the next start
        then finishes a deletion that a crash interrupted, and never takes it for a hole. The error
        of one log, like a full disk, is raised when the others are done.
        """
        first_error: KafkaError | StorageCorrupt | None = None
        for partition, log in self.logs.items():
            try:
                if log.damage is None:
                    for _step in log.inspect_ages(now_ms):
                        pass
                    log.expire(now_ms, high_watermark=high_watermarks.get(partition, 0))
            except (KafkaError, StorageCorrupt) as error:
                first_error = first_error or error
        self._save_starts_for_deletion()
        deleted = 0
        for log in self.logs.values():
            try:
                deleted += log.delete_old_segments(now_ms)
            except (KafkaError, StorageCorrupt) as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        return deleted

    def expire_producers(self, now_ms: int) -> int:
        """Forget silent producers of every log; also to be called once all logs are loaded."""
        self.save_producer_ids()
        return sum(log.expire_producers(now_ms) for log in self.logs.values())

    def save_producer_ids(self) -> None:
        """Save the highest producer id if it has grown, before any log forgets it."""
        highest = self.handles.producer_ids.highest
        if highest > self._noted_producer_id:
            with self._on_disk("checkpoint"):
                write_highest(self._files, os.path.join(self.path, names.PRODUCER_IDS), highest)
            self._noted_producer_id = highest

    def measure(self) -> None:
        """Measure the room on the disk, on which appends depend."""
        self.handles.measure(self.path)

    @property
    def is_full(self) -> bool:
        """Tell whether clients' records are refused for want of room, as last measured."""
        room = self.handles.room
        return room is not None and room.free_bytes < room.records_floor

    def delete_pending(self, now_ms: int) -> None:
        """Unlink the deleted segments of every log that are due."""
        for log in self.logs.values():
            log.delete_pending(now_ms)

    def rebuild_indexes(self) -> bool:
        """Take one step of rebuilding wrong indexes; False once there are none.

        A refusal, as of a full disk, changes nothing, and the step can be repeated.
        """
        rebuilds = self.handles.rebuilds
        for rebuild in rebuilds:
            with self._on_disk("index"):
                rebuild.step()
            break
        return bool(rebuilds)

    def first_dirty(self, partition: Partition) -> int:
        """Return the start of a log's next cleaning, maybe saved by an earlier run.

        It may be outside of the log, which then was never cleaned.
        """
        return self._first_dirty.get(partition, 0)

    def note_cleaned(self, partition: Partition, first_dirty: int) -> None:
        """Record a completed cleaning; the next checkpoint saves it."""
        self._first_dirty[partition] = first_dirty

    def write_checkpoints(self) -> None:
        """Save recovery points, log starts and cleanings; let logs write waiting entries."""
        for log in self.logs.values():
            log.write_indexes()
        self._points.write(self._current_points())
        self.write_log_starts()
        self.write_cleaned()
        self.save_producer_ids()

    def write_log_starts(self) -> None:
        """Save the log starts if one has moved."""
        starts = self._saved_of(self._starts)
        starts = {key: at for key, at in starts.items() if key not in self.logs}
        for partition, log in self.logs.items():
            # Otherwise the name of the first segment gives it.
            if log.start_offset > log.segments[0].base_offset:
                starts[partition] = log.start_offset
        if starts != self._starts.offsets or not self._starts.is_sure:
            self._starts.write(starts)

    def write_cleaned(self) -> None:
        """Save the starts of the next cleanings if one has moved; if lost, work is repeated."""
        first_dirty = {key: at for key, at in self._first_dirty.items() if self._is_here(key)}
        if first_dirty != self._cleaned.offsets or not self._cleaned.is_sure:
            self._cleaned.write(first_dirty)

    def write_high_watermarks(self, offsets: Mapping[Partition, int]) -> None:
        """Save the high watermarks, which the replicas own."""
        self._high_watermarks.write(offsets)

    def close(self, *, broker_epoch: int) -> bool:
        """Close every log, save the checkpoints, and mark the dir as clean if it is; True then.

        It is not clean if a log failed, is damaged or waits to be recovered; one that waits to be
        loaded, and was closed cleanly before, is as clean as it was. Nor is it if a log is still
        flushed; that one stays open, and only the others close.
        """
        was_clean = self.clean_broker_epoch is not None
        is_clean = (was_clean or not self._unloaded) and not self.failed
        for log in self.logs.values():
            is_clean = is_clean and log.damage is None
            try:
                log.close()
            except (StorageError, KafkaError):
                is_clean = False
        try:
            if self.handles.failure is None:
                self._points.write(self._current_points())
                self.write_log_starts()
                self.write_cleaned()
                self.save_producer_ids()
                if is_clean:
                    write_clean_shutdown(self._files, self.path, broker_epoch)
        except (StorageError, KafkaError, OSError):
            is_clean = False
        finally:
            self._files.close(self._lock)
        return is_clean and self.handles.failure is None

    def _open(self, partition: Partition, *, is_clean: bool) -> PartitionLog:
        return PartitionLog.open(
            os.path.join(self.path, names.partition_folder(*partition)),
            self._config_for(partition[0]),
            handles=self.handles,
            recovery_point=self._points.offsets.get(partition, 0),
            log_start_offset=self._starts.offsets.get(partition, 0),
            is_clean=is_clean,
        )

    def _read_producer_ids(self) -> int:
        """Return the id in the file, which counts as used; -1 if there is none."""
        try:
            highest = read_highest(self._files, os.path.join(self.path, names.PRODUCER_IDS))
        except StorageCorrupt as error:
            self.lost_producer_ids = error
            return -1
        self.handles.producer_ids.reserve(highest)
        return highest

    def _topic_id(self, folder: str) -> bytes | None:
        # A damaged one counts as missing: it is written again once the topic is known.
        with suppress(StorageCorrupt):
            return read_partition_metadata(self._files, os.path.join(self.path, folder))
        return None

    def _sort_folders(self) -> None:
        for name in sorted(self._files.list_folder(self.path)):
            parsed = names.parse_partition_folder(name)
            if parsed is None:
                continue
            if not parsed.marker:
                self._unloaded[name] = None
            elif parsed.marker == names.DELETE_FOLDER:
                self._doomed.append(name)
            else:
                self.set_aside.append(name)

    def _current_points(self) -> dict[Partition, int]:
        """Return those of open logs, and the saved ones of folders that are not open."""
        return self._saved_of(self._points) | {
            partition: log.recovery_point for partition, log in self.logs.items()
        }

    def _saved_of(self, saved: "_SavedOffsets") -> dict[Partition, int]:
        """Return a checkpoint's offsets of the partitions that are here, open or not.

        Removed partitions disappear with the next write, and not sooner: thousands may be removed
        at once.
        """
        return {key: at for key, at in saved.offsets.items() if self._is_here(key)}

    def _is_here(self, partition: Partition) -> bool:
        is_known = partition in self.logs or partition in self.failed
        return is_known or names.partition_folder(*partition) in self._unloaded

    def _save_lower(self, points: Mapping[Partition, int], starts: Mapping[Partition, int]) -> None:
        """Lower the saved offsets of logs that are above these; never raise them."""
        self.save_producer_ids()
        for partition, at in points.items():
            if self.first_dirty(partition) > at:
                self._first_dirty[partition] = at
        if self._cleaned.is_above(points):
            # Records written over a cut have been in no cleaning.
            self.write_cleaned()
        if self._starts.is_above(starts):
            saved = self._starts.offsets
            self._starts.write({key: min(at, starts.get(key, at)) for key, at in saved.items()})
        if self._points.is_above(points):
            current = self._current_points()
            self._points.write(current | {key: min(at, current[key]) for key, at in points.items()})

    def _save_starts_for_deletion(self) -> None:
        """Save the log starts; on a full disk, unlink deleted files first."""
        try:
            self.write_log_starts()
        except OutOfSpace:
            self.delete_pending(_ALL_DUE)
            self.write_log_starts()

    def _forget(self, partitions: Iterable[Partition]) -> None:
        """Remove partitions that are not here from every checkpoint on the disk.

        All other removed ones go with them: thousands may be created again in batches, and each
        batch would wait for the disk again.
        """
        gone = set(partitions)
        for partition in gone:
            self._first_dirty.pop(partition, None)
        for saved in (self._points, self._starts, self._high_watermarks, self._cleaned):
            if not (saved.is_sure and gone.isdisjoint(saved.offsets)):
                saved.write(self._saved_of(saved))

    def _saved(self, name: str) -> "_SavedOffsets":
        return _SavedOffsets(self.handles, os.path.join(self.path, name))

    def _on_disk(self, operation: str) -> AbstractContextManager[None]:
        return _on_disk(self.handles, self.path, operation)


class _SavedOffsets:
    """A checkpoint and its current content on the disk, also of folders that are not open."""

    __slots__ = ("_checkpoint", "_handles", "is_sure", "offsets")

    def __init__(self, handles: Handles, path: str) -> None:
        self._handles = handles
        self._checkpoint = OffsetCheckpoint(handles.files, path)
        # A refused write may have replaced the file; then `offsets` are outdated.
        self.is_sure = True
        self.offsets: dict[Partition, int] = {}
        # Without it, or with a damaged one, recovery is right too, and only takes longer.
        with suppress(FileNotFoundError, StorageCorrupt):
            self.offsets = self._checkpoint.read()

    def is_above(self, offsets: Mapping[Partition, int]) -> bool:
        """Tell whether one of these partitions may have a greater offset on the disk."""
        if not self.is_sure:
            return True
        return any(self.offsets.get(partition, 0) > at for partition, at in offsets.items())

    def write(self, offsets: Mapping[Partition, int]) -> None:
        """Replace the checkpoint, durably; a refusal leaves the old one, or maybe the new."""
        self.is_sure = False
        with _on_disk(self._handles, self._checkpoint.path, "checkpoint"):
            self._checkpoint.write(offsets)
        self.offsets, self.is_sure = dict(offsets), True


def _lock(files: Files, path: str) -> int:
    """Take the lock that excludes other brokers, Kafka's included; held until it is closed."""
    fd = files.open(os.path.join(path, names.LOCK), os.O_RDWR | os.O_CREAT)
    try:
        # Kafka takes a lock of the process, which another log dir object of the same process would
        # not notice; the second lock belongs to the descriptor.
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        files.close(fd)
        raise LogDirInUse(path) from error
    return fd


@contextmanager
def _on_disk(handles: Handles, path: str, operation: str) -> Iterator[None]:
    """Convert disk errors within the block to OutOfSpace or a failure of the log dir."""
    try:
        yield
    except OSError as error:
        failure = write_failed(path, operation, error)
        if isinstance(failure, LogDirFailed):
            raise handles.fail(failure) from error
        raise failure from error


def _cut(log: PartitionLog, offset: int) -> int:
    """Return the end of the log after a truncation to `offset`, or an offset below it."""
    if offset >= log.end_offset:
        return log.end_offset
    if offset < log.segments[0].base_offset:
        return offset
    segment = log.segments.holding(offset)
    reaching = segment.find(offset, log.config)
    # A batch that spans the offset is removed whole.
    cut = offset if reaching is None else min(offset, reaching.base_offset)
    before = segment.find(cut - 1, log.config)
    # At a gap of compaction the log ends even before that; a lower value does no harm.
    is_dense = before is not None and before.last_offset == cut - 1
    return cut if is_dense else segment.base_offset


def _refuse_damaged(log: PartitionLog) -> None:
    """Raise for damage: a lower recovery point would make the next start cut it as a torn tail."""
    if log.damage is not None:
        raise StorageCorrupt(log.damage.path, log.damage.position, log.damage.reason)
