"""Reads the newest lines of a component's log, or the lines after a cursor.

A cursor names a file by its inode and a position in it, so that a reader can continue across
rotations. If lines do not fit into one answer, the oldest are left out, and the answer says so.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from brokers.supervisor.output import OLD_LOGS

# A page or a screen shows no more; reading this much at once delays nothing.
MAX_TAIL_BYTES: Final = 48 * 2**10
MAX_TAIL_LINES: Final = 500
DEFAULT_LINES: Final = 200
# A longer line is cut; the file has all of it.
MAX_LINE_CHARACTERS: Final = 2_000
MAX_CURSOR: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """Whole lines, the oldest first. `has_gap`: some between the cursor and these are left out."""

    lines: tuple[str, ...]
    cursor: str
    has_gap: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of the log, and the range of it that is new."""

    path: Path
    inode: int
    start: int
    end: int


def read_tail(log: Path, *, lines: int = DEFAULT_LINES, cursor: str = "") -> LogTail:
    """Return the lines after a cursor, or the newest lines without one."""
    count = max(1, min(lines, MAX_TAIL_LINES))
    there = list(_parts(log))
    parts, is_known = _after(there, cursor)
    kept, is_cut = _newest(parts)
    block = b"".join(_read(part) for part in kept)
    if is_cut and b"\n" in block:
        block = block[block.index(b"\n") + 1 :]
    whole, _, rest = block.rpartition(b"\n")
    if not whole and len(rest) >= MAX_TAIL_BYTES:
        # A line without an end must not block a reader.
        whole, rest = rest, b""
    found = [_shown(line) for line in whole.split(b"\n")] if whole else []
    is_short = len(found) > count
    return LogTail(
        lines=tuple(found[-count:]),
        cursor=_cursor(there, left=len(rest)),
        has_gap=bool(cursor) and (not is_known or is_cut or is_short),
    )


def _parts(log: Path) -> Iterator[_Part]:
    """Return the files of a log, the oldest first."""
    older = [log.with_name(f"{log.name}.{number}") for number in range(OLD_LOGS, 0, -1)]
    for path in (*older, log):
        with suppress(FileNotFoundError):
            found = path.stat()
            yield _Part(path, found.st_ino, 0, found.st_size)


def _after(parts: list[_Part], cursor: str) -> tuple[list[_Part], bool]:
    inode, _, offset = cursor[:MAX_CURSOR].partition(":")
    if inode.isdecimal() and offset.isdecimal():
        for number, part in enumerate(parts):
            if part.inode == int(inode) and int(offset) <= part.end:
                first = _Part(part.path, part.inode, int(offset), part.end)
                return [first, *parts[number + 1 :]], True
    return parts, False


def _newest(parts: list[_Part]) -> tuple[list[_Part], bool]:
    """Return as much of the end as one answer holds, and whether that leaves something out."""
    room = MAX_TAIL_BYTES
    kept: list[_Part] = []
    for part in reversed(parts):
        start = max(part.start, part.end - room)
        kept.insert(0, _Part(part.path, part.inode, start, part.end))
        room -= part.end - start
        if start > part.start:
            return kept, True
    return kept, False


def _read(part: _Part) -> bytes:
    with suppress(OSError), part.path.open("rb") as file:
        # It may have been rotated since the check; the next answer has what follows.
        if os.fstat(file.fileno()).st_ino == part.inode:
            file.seek(part.start)
            return file.read(part.end - part.start)
    return b""


def _cursor(parts: list[_Part], *, left: int) -> str:
    """Return the position after the last whole line; `left` bytes after it are not yet a line."""
    if not parts:
        return ""
    return f"{parts[-1].inode}:{max(0, parts[-1].end - left)}"


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")[:MAX_LINE_CHARACTERS]
    return "".join(sign if sign.isprintable() else " " for sign in text)
