"""A source of lines of a file, which may grow, be truncated, or be replaced.

An offset is a position after a line, the file's inode, and a checksum of the file's beginning. A
file that is shorter than the position, or begins otherwise, was rewritten and is read from its
start. A renamed file is found in its folder by its inode, and read before its successor until that
has bytes: a program that writes a log may open the successor some time after the log was renamed.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

from connectors.sdk import home_files
from connectors.sdk.checks import in_range, non_empty, one_of
from connectors.sdk.configs import Definition, Files, Importance, Key, Kind
from connectors.sdk.connector import Parsed, SourceConnector, SourceContext, SourceTask
from connectors.sdk.errors import ConfigError, ConnectorError
from connectors.sdk.records import Place, SourceRecord
from connectors.sdk.schemas import BYTES, STRING

FILE: Final = "file"
TOPIC: Final = "topic"
# Kept between slices: that the task has logged its missing file.
MISSING: Final = "file.missing"
BATCH_SIZE: Final = "batch.size"
LINE_FORMAT: Final = "line.format"

# A longer line fits in no record of a broker with default settings.
MAX_LINE_BYTES: Final = 1 << 20
# Enough to distinguish two logs, and read by one call.
HEAD_BYTES: Final = 256
# With more files beside a log, its renamed predecessor is not searched.
MAX_NEIGHBOURS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The position in a file. `inode` is None in an offset that a user wrote."""

    bytes: int = 0
    inode: int | None = None
    # The checksum of the first bytes, and their number.
    head: int = 0
    head_bytes: int = 0

    @classmethod
    def of(cls, offset: Place | None) -> "Position":
        if offset is None:
            return cls()
        return cls(
            bytes=offset.get("position", 0),
            inode=offset.get("inode"),
            head=offset.get("head", 0),
            head_bytes=min(offset.get("head_bytes", 0), HEAD_BYTES),
        )

    def offset(self) -> Place:
        return {
            "position": self.bytes,
            "inode": self.inode,
            "head": self.head,
            "head_bytes": self.head_bytes,
        }


class FileSource(SourceConnector):
    name = "samsa.file.source"
    aliases = (
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "FileStreamSourceConnector",
        "FileStreamSource",
    )
    title = "Lines of a file"
    summary = "New lines of a file below HOME/files become records."

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
                    files=Files(is_written=False),
                ),
                Key(
                    name=TOPIC,
                    kind=Kind.STRING,
                    importance=Importance.HIGH,
                    doc="The topic to write to.",
                    check=non_empty,
                ),
                Key(
                    name=BATCH_SIZE,
                    kind=Kind.INT,
                    default=2000,
                    importance=Importance.LOW,
                    doc="The most lines that are read at a time.",
                    check=in_range(1, 100_000),
                ),
                Key(
                    name=LINE_FORMAT,
                    kind=Kind.STRING,
                    default="text",
                    importance=Importance.LOW,
                    doc="The type of a line: text, decoded as UTF-8 with a replacement character "
                    "for other bytes, or bytes.",
                    check=one_of("text", "bytes"),
                    recommend=lambda _values: ["text", "bytes"],
                ),
            )
        )

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        del parsed, max_tasks
        return [{}]

    def alter_offsets(self, parsed: Parsed, offsets: Mapping[str, Place | None]) -> None:
        del parsed
        for place, offset in offsets.items():
            # By an inode of a user's choice the task would read another file of the folder.
            if offset is not None and set(offset) - {"position"}:
                raise ConfigError(f'{place}: give {{"position": N}} alone, the file is at its path')
            position = 0 if offset is None else offset.get("position")
            if not isinstance(position, int) or position < 0:
                raise ConfigError(f'{place}: give {{"position": N}} with N from 0, not {offset}')

    def task(self) -> SourceTask:
        return FileSourceTask()


class FileSourceTask(SourceTask):
    def start(self, context: SourceContext, parsed: Parsed) -> None:
        self._parts = home_files.parts_of(parsed[FILE])
        self._topic: str = parsed[TOPIC]
        self._batch: int = parsed[BATCH_SIZE]
        self._is_text = parsed[LINE_FORMAT] == "text"
        self._place = {"filename": parsed[FILE]}
        self._at = Position.of(context.offset(self._place))
        self._log = context.log
        self._kept = context.kept
        self._opened: int | None = None
        self._has_successor = False

    def poll(self) -> list[SourceRecord]:
        if self._opened is None and not self._open():
            return []
        assert self._opened is not None, "a file was opened"
        records = self._read(self._opened)
        if not records and self._is_over():
            self.stop()
            if self._open():
                records = self._read(self._opened)
        return records

    def stop(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            os.close(opened)

    def _open(self) -> bool:
        """Open the file of the position, or the one at the path; False if there is neither."""
        try:
            with home_files.folder_of(self._parts) as folder:
                self._opened = self._find(folder)
        except FileNotFoundError:
            # It may be created later, for example while a log is rotated.
            self._opened = None
        if self._opened is None and not self._kept.get(MISSING):
            # Log it once, not in each slice.
            self._kept[MISSING] = True
            path = f"{home_files.root()}/{'/'.join(self._parts)}"
            self._log(f"file {path} does not exist: the task reads it once it exists")
        return self._opened is not None

    def _find(self, folder: int) -> int | None:
        opened = _open_to_read(self._parts[-1], folder)
        self._has_successor = False
        if opened is not None and self._goes_on(opened):
            self._at = _seen(opened, self._at.bytes)
            return opened
        is_known = self._at.inode is not None and self._at.bytes > 0
        if is_known and (renamed := self._find_renamed(folder)) is not None:
            self._has_successor = opened is not None and os.fstat(opened).st_size > 0
            if opened is not None:
                os.close(opened)
            return renamed
        if opened is not None:
            if is_known:
                self._log(f"{self._parts[-1]} was rewritten, and is read from its start")
            self._at = _seen(opened, 0)
        return opened

    def _goes_on(self, opened: int) -> bool:
        """Return whether an open file is the one that was read so far."""
        at, now = self._at, os.fstat(opened)
        if at.inode is None:
            return at.bytes <= now.st_size
        same = at.inode == now.st_ino and max(at.bytes, at.head_bytes) <= now.st_size
        return same and _head(opened, at.head_bytes) == at.head

    def _find_renamed(self, folder: int) -> int | None:
        """Find the renamed file that was read so far, if it still exists."""
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= MAX_NEIGHBOURS:
                    break
                if entry.inode() == self._at.inode and entry.is_file(follow_symlinks=False):
                    opened = _open_to_read(entry.name, folder)
                    if opened is not None and self._goes_on(opened):
                        return opened
                    if opened is not None:
                        os.close(opened)
        return None

    def _is_over(self) -> bool:
        """Return whether the open file was truncated, or has a successor at its path."""
        assert self._opened is not None, "a file was opened"
        if os.fstat(self._opened).st_size < self._at.bytes:
            return True
        try:
            with home_files.folder_of(self._parts) as folder:
                now = os.stat(self._parts[-1], dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if now.st_ino == self._at.inode:
            return False
        if not now.st_size:
            return False
        self._has_successor = True
        if os.fstat(self._opened).st_size > self._at.bytes:
            # The unterminated last line is still to be read.
            return False
        # The file was read completely, so begin the next one at its start.
        self._at = Position()
        return True

    def _read(self, opened: int) -> list[SourceRecord]:
        data = os.pread(opened, MAX_LINE_BYTES + 1, self._at.bytes)
        lines = data.split(b"\n", self._batch)
        rest = lines.pop()
        if not lines and rest:
            if len(rest) > MAX_LINE_BYTES:
                raise ConnectorError(
                    f"{self._parts[-1]}: the line at byte {self._at.bytes} is longer than "
                    f"{MAX_LINE_BYTES} bytes; alter the offset to a position behind it"
                )
            if self._has_successor:
                # The last line of a replaced file stays unterminated.
                return [self._record(opened, rest, len(rest))]
        return [self._record(opened, line, len(line) + 1) for line in lines]

    def _record(self, opened: int, line: bytes, count: int) -> SourceRecord:
        before, after = self._at.bytes, self._at.bytes + count
        at = self._at
        self._at = replace(at, bytes=after) if before >= HEAD_BYTES else _seen(opened, after)
        line = line.removesuffix(b"\r")
        return SourceRecord(
            topic=self._topic,
            value=line.decode(errors="replace") if self._is_text else line,
            value_schema=STRING if self._is_text else BYTES,
            source_partition=self._place,
            source_offset=self._at.offset(),
        )


def _open_to_read(name: str, folder: int) -> int | None:
    try:
        return home_files.open_file(name, folder, os.O_RDONLY)
    except FileNotFoundError:
        return None


def _seen(opened: int, position: int) -> Position:
    count = min(HEAD_BYTES, position)
    return Position(
        bytes=position,
        inode=os.fstat(opened).st_ino,
        head=_head(opened, count),
        head_bytes=count,
    )


def _head(opened: int, count: int) -> int:
    return crc32(os.pread(opened, count, 0))
