"""Encodes Kafka's text checkpoints: a version line, a count line, then one entry per line.

Checks the form only; each reader decides how to go on without a checkpoint. Reading is strict,
because a checkpoint that is half right is worse than none; a file with a missing, extra or
malformed line is StorageCorrupt, and its owner rebuilds it from the logs.
"""

import re
from collections.abc import Iterable, Mapping

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, read_file, replace_file

VERSION = "0"

# A topic name, so that a damaged line cannot become the name of a folder.
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)
MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1


def encode_lines(lines: Iterable[str]) -> bytes:
    """Return the bytes of a checkpoint with these entries."""
    entries = list(lines)
    return "\n".join((VERSION, str(len(entries)), *entries, "")).encode("ascii")


def decode_lines(data: bytes, path: str) -> list[str]:
    """Return the entry lines of a checkpoint; StorageCorrupt if the lines around them are wrong."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise StorageCorrupt(path, error.start, "a byte that no checkpoint holds") from error
    if not text.endswith("\n"):
        raise StorageCorrupt(path, len(data), "the last line has no end")
    version, *rest = text[:-1].split("\n")
    if version != VERSION:
        raise StorageCorrupt(path, 0, f"version is {version[:20]!r}, only {VERSION!r} is known")
    if not rest:
        raise StorageCorrupt(path, len(data), "the number of entries is missing")
    expected, entries = rest[0], rest[1:]
    if expected != str(len(entries)):
        position = len(version) + 1
        reason = f"{len(entries)} entries follow, but {expected[:20]!r} are announced"
        raise StorageCorrupt(path, position, reason)
    return entries


def decode_number(text: str, limit: int) -> int | None:
    """Parse a plain decimal from 0 to `limit`; None for other forms that Python's `int` accepts."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number <= limit else None


class OffsetCheckpoint:
    """One offset per partition of a log dir: recovery points, high watermarks or log starts.

    Replaced atomically: after a crash, the old or the new file is there.
    """

    __slots__ = ("_files", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def write(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Replace the checkpoint; durable on return."""
        lines = (f"{topic} {index} {offset}" for (topic, index), offset in offsets.items())
        replace_file(self._files, self.path, encode_lines(lines))

    def read(self) -> dict[tuple[str, int], int]:
        """Return the offsets by (topic, partition); FileNotFoundError without a checkpoint."""
        data = read_file(self._files, self.path)
        offsets = {}
        for number, line in enumerate(decode_lines(data, self.path)):
            entry = _decode_offset(line)
            if entry is None:
                raise StorageCorrupt(self.path, 0, f"entry {number} is {line[:80]!r}")
            partition, offset = entry
            if partition in offsets:
                raise StorageCorrupt(self.path, 0, f"entry {number} repeats {line[:80]!r}")
            offsets[partition] = offset
        return offsets


def _decode_offset(line: str) -> tuple[tuple[str, int], int] | None:
    parts = line.split(" ")
    if len(parts) != 3 or _TOPIC.fullmatch(parts[0]) is None:
        return None
    index, offset = decode_number(parts[1], MAX_INT32), decode_number(parts[2], MAX_INT64)
    if index is None or offset is None:
        return None
    return (parts[0], index), offset
