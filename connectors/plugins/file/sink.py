"""A sink that writes values of records as whole lines of a file, exactly once.

Beside the file `x`, the file `.x.offsets` has the flushed length of the file, and the offsets after
its records. A slice begins by truncating the file to that length, since records that were not
flushed are put again. So the file belongs to its connector while that runs; a lock keeps other
connectors out, and former owners of the task.
"""

import errno
import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar, Final

from connectors.plugins.file.lines import line_of
from connectors.sdk import home_files
from connectors.sdk.configs import Definition, Files, Importance, Key, Kind
from connectors.sdk.connector import Parsed, SinkConnector, SinkContext, SinkTask
from connectors.sdk.errors import ConnectorError, DataError, RecordError, RetriableError
from connectors.sdk.records import SinkRecord, TopicPartition

FILE: Final = "file"
APPEND: Final = "file.append"

# Enough for the offsets of 100,000 partitions; we write no longer file.
MAX_NOTES_BYTES: Final = 16 << 20
WRITE: Final = os.O_RDWR | os.O_CREAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The state of the file at the last flush: length and offsets, and who wrote them."""

    connector: str
    epoch: int
    length: int
    offsets: Mapping[TopicPartition, int]
    # Ids of the topics of these offsets, if known.
    topics: Mapping[str, str]

    def to_json(self) -> bytes:
        offsets = [[at.topic, at.partition, offset] for at, offset in sorted(self.offsets.items())]
        told = {
            "connector": self.connector,
            "epoch": self.epoch,
            "length": self.length,
            "offsets": offsets,
            "topics": dict(self.topics),
        }
        return json.dumps(told).encode()

    @classmethod
    def from_json(cls, told: bytes) -> "Notes":
        read = json.loads(told)
        offsets = {
            TopicPartition(topic=topic, partition=partition): int(offset)
            for topic, partition, offset in read["offsets"]
        }
        return cls(
            connector=read["connector"],
            epoch=int(read["epoch"]),
            length=int(read["length"]),
            offsets=offsets,
            topics={str(name): str(one) for name, one in read.get("topics", {}).items()},
        )


class FileSink(SinkConnector):
    name = "samsa.file.sink"
    aliases = (
        "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "FileStreamSinkConnector",
        "FileStreamSink",
    )
    title = "Lines into a file"
    summary = "Values of records become lines of a file below HOME/files."
    is_exactly_once: ClassVar[bool] = True
    keeps_offsets: ClassVar[bool] = True

    @classmethod
    def definition(cls) -> Definition:
        return Definition(
            (
                Key(
                    name=FILE,
                    kind=Kind.STRING,
                    importance=Importance.HIGH,
                    doc="The file, by its path from the folder files of the worker's home.",
                    check=home_files.problem,
                    files=Files(is_written=True),
                ),
                Key(
                    name=APPEND,
                    kind=Kind.BOOLEAN,
                    default=False,
                    importance=Importance.LOW,
                    doc="Whether lines may be added to a file that this connector did not create.",
                ),
            )
        )

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        # Several tasks would mix their lines in one file, and truncate each other's.
        del parsed, max_tasks
        return [{}]

    def task(self) -> SinkTask:
        return FileSinkTask()


class FileSinkTask(SinkTask):
    def start(self, context: SinkContext, parsed: Parsed) -> None:
        self._parts = home_files.parts_of(parsed[FILE])
        self._may_append: bool = parsed[APPEND]
        self._connector, self._epoch, self._log = context.connector, context.epoch, context.log
        self._topic_id = context.topic_id
        self._opened: int | None = None
        with home_files.folder_of(self._parts, is_made=True) as folder:
            opened = home_files.open_file(self._parts[-1], folder, WRITE)
            with ExitStack() as failing:
                # Release the lock after any failure.
                failing.callback(os.close, opened)
                self._lock(opened)
                self._notes = self._begin(opened, folder)
                failing.pop_all()
        self._opened = opened
        self._put = dict(self._notes.offsets)
        self._topics = dict(self._notes.topics)
        self._length = self._notes.length

    def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        kept = self._notes.offsets
        for topic in sorted({partition.topic for partition in partitions}):
            self._require_same_topic(topic)
        return {partition: kept[partition] for partition in partitions if partition in kept}

    def _require_same_topic(self, topic: str) -> None:
        """Fail if the stored offsets belong to a deleted topic of the same name.

        A new topic that has grown past them would lose its records up to there.
        """
        now, name = self._topic_id(topic), self._parts[-1]
        if now and self._topics.get(topic, now) != now:
            raise ConnectorError(
                f"topic {topic} was deleted and recreated since {name} was written (its id was"
                f" {self._topics[topic]} and is now {now}). To append the records of the new"
                f" topic to the file, remove {_notes_name(name)} and set {APPEND} to true"
            )
        if now:
            self._topics[topic] = now

    def put(self, records: list[SinkRecord]) -> None:
        assert self._opened is not None, "the task was started"
        lines = []
        for index, record in enumerate(records):
            try:
                lines.append(line_of(record.value))
            except DataError as error:
                raise RecordError(str(error), index=index) from error
        data = b"".join(lines)
        self._write(self._opened, data)
        self._length += len(data)
        for record in records:
            self._put[record.origin] = record.origin_offset + 1

    def flush(self) -> None:
        assert self._opened is not None, "the task was started"
        if self._put == self._notes.offsets:
            return
        os.fsync(self._opened)
        notes = self._note(self._length, self._put, self._topics)
        with home_files.folder_of(self._parts) as folder:
            self._write_notes(notes, folder)

    def stop(self) -> None:
        # Closing the file releases the lock.
        opened, self._opened = self._opened, None
        if opened is not None:
            os.close(opened)

    def _lock(self, opened: int) -> None:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            name = self._parts[-1]
            raise RetriableError(f"{name} is being written by another task on this host") from error

    def _begin(self, opened: int, folder: int) -> Notes:
        """Restore the flushed state of the file; return its notes, or new ones."""
        notes, length = self._read_notes(folder), os.fstat(opened).st_size
        if notes is None:
            if length and not self._may_append:
                raise ConnectorError(
                    f"{self._parts[-1]} has {length} bytes that this connector did not write: name"
                    f" another file, or set {APPEND} to true to add lines to it"
                )
            length = self._end_line(opened, length)
            notes = self._note(length, {}, {})
        elif length < notes.length:
            self._log(f"{self._parts[-1]} was cut or replaced; lines are added to what is there")
            length = self._end_line(opened, length)
            notes = self._note(length, notes.offsets, notes.topics)
        else:
            os.ftruncate(opened, notes.length)
            notes = self._note(notes.length, notes.offsets, notes.topics)
        os.fsync(opened)
        self._write_notes(notes, folder)
        os.lseek(opened, notes.length, os.SEEK_SET)
        return notes

    def _end_line(self, opened: int, length: int) -> int:
        """End an unterminated last line; return the new length."""
        if length and os.pread(opened, 1, length - 1) != b"\n":
            os.pwrite(opened, b"\n", length)
            return length + 1
        return length

    def _note(
        self, length: int, offsets: Mapping[TopicPartition, int], topics: Mapping[str, str]
    ) -> Notes:
        return Notes(
            connector=self._connector,
            epoch=self._epoch,
            length=length,
            offsets=dict(offsets),
            topics=dict(topics),
        )

    def _read_notes(self, folder: int) -> Notes | None:
        name = _notes_name(self._parts[-1])
        try:
            opened = home_files.open_file(name, folder, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with os.fdopen(opened, "rb") as file:
            told = file.read(MAX_NOTES_BYTES + 1)
        try:
            notes = Notes.from_json(told)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConnectorError(
                f"{name} cannot be read, so it is not known what the file holds: {error!r}; remove "
                "both files, or have the connector write another file"
            ) from error
        if notes.connector != self._connector:
            raise ConnectorError(
                f"{self._parts[-1]} is written by the connector {notes.connector}; name another "
                f"file, or, if that connector is gone, remove {name} and set {APPEND} to true"
            )
        if notes.epoch > self._epoch:
            raise RetriableError(f"{name} was written by a later owner of this task")
        return notes

    def _write_notes(self, notes: Notes, folder: int) -> None:
        name = _notes_name(self._parts[-1])
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(home_files.open_file(f"{name}.new", folder, flags), "wb") as file:
            file.write(notes.to_json())
            file.flush()
            os.fsync(file.fileno())
        os.rename(f"{name}.new", name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
        self._notes = notes

    def _write(self, opened: int, data: bytes) -> None:
        """Write all data, or restore the length of the file."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(opened, rest) :]
        except OSError as error:
            os.ftruncate(opened, self._length)
            os.lseek(opened, self._length, os.SEEK_SET)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise RetriableError(f"no room for {len(data)} bytes: {error.strerror}") from error
            raise ConnectorError(f"{self._parts[-1]} cannot be written: {error}") from error


def _notes_name(name: str) -> str:
    return f".{name}.offsets"
