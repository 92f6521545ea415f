"""Marks a log dir whose disk refused a write or a sync, so that a dying disk is known as one.

One line for each failure, with its time. After the first ones a broker starts again: recovery
writes the unsynced part of each log once more. A disk that goes on failing is left to an operator,
who removes the mark.
"""

import os
from typing import Final

from brokers.storage.errors import LogDirFailed, StorageCorrupt
from brokers.storage.files import Files, read_file, write_all
from brokers.storage.names import DISK_FAILURES

# So many failures within so long mean a dying disk; a cable or a controller that was reset once
# does not reach it.
MAX_FAILURES: Final = 3
WITHIN_MS: Final = 24 * 3_600_000
# A line has a path of 4 KiB at most; older ones are dropped.
_MAX_BYTES: Final = 64 * 1024


def note_failure(files: Files, log_dir: str, failure: LogDirFailed, now_ms: int) -> None:
    """Add a failure of now; OSError if the disk refuses that, too."""
    lines = [*recent_failures(files, log_dir, now_ms), f"{now_ms} {failure}"]
    text = "".join(f"{line}\n" for line in lines[-MAX_FAILURES:])
    # Without a sync, which this disk refuses: the next start reads it from the page cache.
    fd = files.open(os.path.join(log_dir, DISK_FAILURES), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(files, fd, text.encode())
    finally:
        files.close(fd)


def recent_failures(files: Files, log_dir: str, now_ms: int) -> list[str]:
    """Return the lines of recent failures, oldest first."""
    try:
        data = read_file(files, os.path.join(log_dir, DISK_FAILURES), _MAX_BYTES)
    except (FileNotFoundError, StorageCorrupt):
        return []
    lines = data.decode(errors="replace").splitlines()
    return [line for line in lines if _is_recent(line.partition(" ")[0], now_ms)]


def _is_recent(at_ms: str, now_ms: int) -> bool:
    return at_ms.isascii() and at_ms.isdigit() and now_ms - int(at_ms) < WITHIN_MS
