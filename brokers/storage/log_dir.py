"""All partition folders of one disk: opened together, checkpointed together, closed together.

Knows folders, offsets and topic ids as bytes; which partitions should exist, and what their topics
are configured to do, is told by the caller. A folder that cannot be opened is reported and leaves
the others in peace. The mark of a clean shutdown goes away first of all and comes back last of all,
and only if everything between went well.
"""

import fcntl
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from brokers.protocol.errors import KafkaError
from brokers.storage import names
from brokers.storage.checkpoints import OffsetCheckpoint
from brokers.storage.clean_shutdown import take_clean_shutdown, write_clean_shutdown
from brokers.storage.errors import LogDirFailed, StorageCorrupt, StorageError, write_failed
from brokers.storage.files import Files
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.partition_metadata import read_partition_metadata, write_partition_metadata

Partition: TypeAlias = tuple[str, int]  # topic and index


class LogDirInUse(StorageError):
    """Another broker has this log dir open; two would overwrite each other."""

    def __init__(self, path: str) -> None:
        super().__init__(f"log dir {path} is in use by another broker")
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFailed:
    """A partition folder that is there but could not be opened."""

    folder: str
    error: Exception


class LogDir:
    """One log dir and its logs. Not thread-safe.

    Open it, then `load` each of `folders`, in one go or with pauses in between: recovery of a large
    log takes seconds. Nothing is marked as clean before all were loaded.
    """

    def __init__(
        self, path: str, *, files: Files, handles: Handles, config_for: Callable[[str], LogConfig]
    ) -> None:
        """Takes the lock and the clean-shutdown mark, and reads the checkpoints."""
        self.path = path
        self.handles = handles
        self.logs: dict[Partition, PartitionLog] = {}
        self.topic_ids: dict[Partition, bytes] = {}  # of those that have one noted
        self.failed: dict[Partition, FolderFailed] = {}
        self.set_aside: list[str] = []  # stray and future folders, which are left alone
        self._files = files
        self._config_for = config_for
        self._lock = _lock(files, path)
        # -1 when the mark did not say; None after any end that was not clean.
        self.clean_broker_epoch = take_clean_shutdown(files, path)
        self._recovery_points = self._checkpoint(names.RECOVERY_POINTS)
        self._log_starts = self._checkpoint(names.LOG_STARTS)
        self._high_watermarks = self._checkpoint(names.HIGH_WATERMARKS)
        # What was saved for folders not loaded or failed must not get lost when others are saved.
        self._saved_points = _read(self._recovery_points)
        self._saved_starts = _read(self._log_starts)
        self.high_watermarks: Mapping[Partition, int] = _read(self._high_watermarks)
        self._unloaded: list[str] = []
        self._doomed: list[str] = []
        self._sort_folders()

    @property
    def folders(self) -> list[str]:
        """The partition folders that still wait to be loaded."""
        return list(self._unloaded)

    def load_all(self) -> None:
        """Opens every folder that waits."""
        for folder in self.folders:
            self.load(folder)

    def load(self, folder: str) -> PartitionLog | None:
        """Opens one of `folders`, with recovery if it needs that; None when it failed."""
        parsed = names.parse_partition_folder(folder)
        assert parsed is not None, f"{folder} is no partition folder"
        partition = (parsed.topic, parsed.partition)
        self._unloaded.remove(folder)
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

    def create(self, topic: str, index: int, topic_id: bytes) -> PartitionLog:
        """Makes the folder of a new partition; it is on the disk when this returns."""
        partition = (topic, index)
        assert partition not in self.logs, f"{topic}-{index} exists"
        folder = os.path.join(self.path, names.partition_folder(topic, index))
        self._files.make_folder(folder)
        self._files.sync_folder(self.path)
        write_partition_metadata(self._files, folder, topic_id)
        # An older partition of this name may have left its offsets in the checkpoints.
        self._saved_points.pop(partition, None)
        self._saved_starts.pop(partition, None)
        self.logs[partition] = log = self._open(partition, is_clean=False)
        self.topic_ids[partition] = topic_id
        return log

    def remove(self, topic: str, index: int, marker: str = names.DELETE_FOLDER) -> str:
        """Takes a partition out of service by renaming its folder; returns the new name.

        With `-delete` its files go when `purge` is called, with `-stray` they stay for an operator.
        """
        partition = (topic, index)
        log = self.logs.pop(partition)
        self.topic_ids.pop(partition, None)
        self._saved_points.pop(partition, None)
        self._saved_starts.pop(partition, None)
        log.abandon()
        folder = names.set_aside_folder(topic, index, uuid.uuid4().hex, marker)
        self._files.rename(log.folder, os.path.join(self.path, folder))
        self._files.sync_folder(self.path)
        (self._doomed if marker == names.DELETE_FOLDER else self.set_aside).append(folder)
        return folder

    def purge(self) -> int:
        """Unlinks the files of one removed partition; returns how many folders wait on."""
        if self._doomed:
            folder = os.path.join(self.path, self._doomed[-1])
            for name in self._files.list_folder(folder):
                self._files.unlink(os.path.join(folder, name))
            self._files.remove_folder(folder)
            self._doomed.pop()
        return len(self._doomed)

    def truncate_to(self, offsets: Mapping[Partition, int]) -> None:
        """Truncates logs; the lowered recovery points are saved before the first one is touched.

        Otherwise a crash would let recovery believe that what is written over the cut was synced.
        """
        points = self._points()
        lowered = points | {
            partition: min(offset, points[partition]) for partition, offset in offsets.items()
        }
        if lowered != points:
            self._write(self._recovery_points, lowered)
        for partition, offset in offsets.items():
            self.logs[partition].truncate_to(offset)
        # A batch that reached across an offset went as a whole, so the log may end even lower.
        if self._points() != lowered:
            self._write(self._recovery_points, self._points())

    def delete_old_segments(self, now_ms: int, high_watermarks: Mapping[Partition, int]) -> int:
        """Applies retention to every log; returns how many segments went out of service.

        First all decide, then the new starts are saved, then files are renamed: a deletion that a
        crash cut in half is then finished by the next start, and never looks like a hole.
        """
        for partition, log in self.logs.items():
            if log.damage is None:
                log.expire(now_ms, high_watermark=high_watermarks.get(partition, 0))
        self.write_log_starts()
        return sum(log.delete_old_segments(now_ms) for log in self.logs.values())

    def delete_pending(self, now_ms: int) -> None:
        """Unlinks the deleted segments of every log that are due."""
        for log in self.logs.values():
            log.delete_pending(now_ms)

    def write_checkpoints(self) -> None:
        """Saves recovery points and log starts, and lets logs write what they hold back."""
        for log in self.logs.values():
            log.write_indexes()
        self._write(self._recovery_points, self._points())
        self.write_log_starts()

    def write_log_starts(self) -> None:
        """Saves the log starts if one has moved."""
        starts = {key: at for key, at in self._saved_starts.items() if key not in self.logs}
        for partition, log in self.logs.items():
            # Else the name of the first segment says it.
            if log.start_offset > log.segments[0].base_offset:
                starts[partition] = log.start_offset
        if starts != self._saved_starts:
            self._write(self._log_starts, starts)
            self._saved_starts = starts

    def write_high_watermarks(self, offsets: Mapping[Partition, int]) -> None:
        """Saves the high watermarks, which are the replicas' and not known here."""
        self._write(self._high_watermarks, offsets)

    def close(self, *, broker_epoch: int) -> bool:
        """Closes every log, saves the checkpoints, and marks the dir as clean if it is; True then.

        It is not clean if a log failed, is damaged or was never loaded: those must be recovered.
        """
        is_clean = not self._unloaded and not self.failed
        for log in self.logs.values():
            is_clean = is_clean and log.damage is None
            try:
                log.close()
            except (StorageError, KafkaError):
                is_clean = False
        try:
            if self.handles.failure is None:
                self._write(self._recovery_points, self._points())
                self.write_log_starts()
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
            recovery_point=self._saved_points.get(partition, 0),
            log_start_offset=self._saved_starts.get(partition, 0),
            is_clean=is_clean,
        )

    def _topic_id(self, folder: str) -> bytes | None:
        # A damaged one counts as none: whoever knows the topic notes it again.
        with suppress(StorageCorrupt):
            return read_partition_metadata(self._files, os.path.join(self.path, folder))
        return None

    def _sort_folders(self) -> None:
        for name in sorted(self._files.list_folder(self.path)):
            parsed = names.parse_partition_folder(name)
            if parsed is None:
                continue
            if not parsed.marker:
                self._unloaded.append(name)
            elif parsed.marker == names.DELETE_FOLDER:
                self._doomed.append(name)
            else:
                self.set_aside.append(name)

    def _points(self) -> dict[Partition, int]:
        points = {key: at for key, at in self._saved_points.items() if key not in self.logs}
        points.update((partition, log.recovery_point) for partition, log in self.logs.items())
        return points

    def _checkpoint(self, name: str) -> OffsetCheckpoint:
        return OffsetCheckpoint(self._files, os.path.join(self.path, name))

    def _write(self, checkpoint: OffsetCheckpoint, offsets: Mapping[Partition, int]) -> None:
        try:
            checkpoint.write(offsets)
        except OSError as error:
            failure = write_failed(checkpoint.path, "checkpoint", error)
            if isinstance(failure, LogDirFailed):
                raise self.handles.fail(failure) from error
            raise failure from error


def _lock(files: Files, path: str) -> int:
    """Takes the lock that keeps other brokers out, also a Kafka broker; held until it is closed."""
    fd = files.open(os.path.join(path, names.LOCK), os.O_RDWR | os.O_CREAT)
    try:
        # Kafka takes the one that belongs to the process, which another log dir object of our own
        # process would not notice; the second belongs to the descriptor.
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        files.close(fd)
        raise LogDirInUse(path) from error
    return fd


def _read(checkpoint: OffsetCheckpoint) -> dict[Partition, int]:
    """What was saved, or nothing: recovery is right without it, and only takes longer."""
    try:
        return checkpoint.read()
    except (FileNotFoundError, StorageCorrupt):
        return {}
