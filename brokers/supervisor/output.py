"""Copies the output of processes into files of bounded size, and notable lines to the terminal.

Nothing here may stop a process: a full disk loses log lines, and nothing else.
"""

import asyncio
import json
import os
import re
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from brokers.clock import iso_time

# Four files of this size for each component: as much as an operator can search, and far more than
# a quiet month writes.
MAX_LOG_BYTES: Final = 8 * 2**20
OLD_LOGS: Final = 3
READ_BYTES: Final = 65_536
# Lines that are shown of a process that cannot start.
LAST_LINES: Final = 10
# A line longer than this is cut for people; the file has all of it.
SHOWN_CHARACTERS: Final = 500

QUIET_LEVELS: Final = frozenset({"debug", "info"})
# Keys of an entry that have their own place in the shown line.
PLACED: Final = frozenset({"event", "level", "timestamp", "timestamp_ms"})
# With or without the time before it.
TEXT_LEVEL: Final = re.compile(r"(\d{4}-\d\d-\d\dT\S+ )?(DEBUG|INFO)\b")


# The beginnings of lines that have their time: our own entries, in JSON, as text or as Valkey's.
TIMED: Final = re.compile(rb"\{|\d{4}-\d\d-\d\d[ T]|\d+:[A-Z] \d\d ")


class LogFile:
    """A log file that rotates older text to `<name>.1` and so on; for one thread only."""

    def __init__(
        self, path: Path, *, max_bytes: int = MAX_LOG_BYTES, old_files: int = OLD_LOGS
    ) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._old_files = old_files
        self._file = -1
        self._size = 0

    def write(self, block: bytes) -> None:
        # A full disk or a missing folder: the processes continue, their output is lost.
        with suppress(OSError):
            if self._file < 0:
                self._open()
            elif self._size and self._size + len(block) > self._max_bytes:
                self._rotate()
            self._size += len(block)
            while block:
                block = block[os.write(self._file, block) :]

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self.path, flags, 0o640)
        self._size = os.fstat(self._file).st_size

    def _rotate(self) -> None:
        self.close()
        for number in range(self._old_files, 0, -1):
            newer = self._numbered(number - 1)
            if newer.exists():
                newer.replace(self._numbered(number))
        self._open()

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path


class Pump:
    """Moves one process's output into its log file, and passes lines to a listener.

    Lines without a time, such as those of a traceback, get the time at which they arrive.
    """

    def __init__(
        self, pipe: int, log: LogFile, show: Callable[[str], None], *, now_ms: Callable[[], int]
    ) -> None:
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._log = log
        self._show = show
        self._now_ms = now_ms
        self._rest = b""
        self._is_within_line = False
        # Resolved when every holder of the pipe's other end has closed it.
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(pipe, False)
        self._loop.add_reader(pipe, self._read)

    def close(self) -> None:
        """Stop, even if another process still holds the other end."""
        if self._pipe < 0:
            return
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        self._pipe = -1
        if self._rest:
            self._line(self._rest)
        if not self.ended.done():
            self.ended.set_result(None)

    def _read(self) -> None:
        try:
            block = os.read(self._pipe, READ_BYTES)
        except BlockingIOError:
            return
        if not block:
            self.close()
            return
        self._log.write(self._timed(block))
        *lines, self._rest = (self._rest + block).split(b"\n")
        # An endless line is not kept here; the file has it.
        self._rest = self._rest[: 8 * SHOWN_CHARACTERS]
        for line in lines:
            self._line(line)

    def _timed(self, block: bytes) -> bytes:
        """Return a block with a time before each line that begins in it without one."""
        first = 1 if self._is_within_line else 0
        self._is_within_line = not block.endswith(b"\n")
        time = f"{iso_time(self._now_ms())} ".encode()
        lines = block.split(b"\n")
        for number, line in enumerate(lines):
            if number >= first and line and not TIMED.match(line):
                lines[number] = time + line
        return b"\n".join(lines)

    def _line(self, line: bytes) -> None:
        text = printable(line.decode("utf-8", "replace"))
        if text:
            self.last_lines.append(text)
            self._show(text)


def printable(text: str) -> str:
    """Cut a text to the limit, without bytes that would control a terminal."""
    clean = "".join(sign if sign.isprintable() else " " for sign in text[:SHOWN_CHARACTERS])
    return clean.rstrip()


def structured(line: str) -> Mapping[str, Any] | None:
    """Parse a line of a structured log; None for any other line."""
    if line.startswith("{"):
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and "event" in entry:
                return entry
    return None


def is_telling(line: str) -> bool:
    """Tell whether a line is shown to the user: all but information and debugging."""
    entry = structured(line)
    if entry is not None:
        return str(entry.get("level", "")).lower() not in QUIET_LEVELS
    return TEXT_LEVEL.match(line) is None


def readable(entry: Mapping[str, Any]) -> str:
    """Format an entry for people: level, event, and its other keys."""
    keys = " ".join(
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in entry.items()
        if key not in PLACED
    )
    return f"{entry.get('level', 'info'):<7} {entry['event']} {keys}".rstrip()
