"""Reads and writes files of keys: an agent writes them, every other process of the home reads.

A file has one key per line, and at most two. The first is used to authenticate and to sign; the
second is accepted as well. A reader checks the file again when it uses a key, so a rotation needs
no restart.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

# The shortest time between two checks of a file: a check costs a system call, and a rotation waits
# longer than this before it uses a new key.
LOOK_SECONDS: Final = 1.0
MAX_KEYS: Final = 2
# Samsa's keys have 67 characters; an unrelated large file is not read whole.
MAX_KEY_BYTES: Final = 512
MAX_FILE_BYTES: Final = 2 * (MAX_KEY_BYTES + 1)
OWNER_ONLY: Final = 0o600


class KeyFile:
    """The current keys of one file. Keeps the last ones while the file cannot be read.

    An empty path stands for a missing file.
    """

    def __init__(self, path: Path, *, monotonic: Callable[[], float]) -> None:
        self.path = path
        self._monotonic = monotonic
        self._keys: tuple[str, ...] = ()
        # Identifies the file: its number changes when another file replaces it.
        self._stamp: tuple[int, int, int] | None = None
        self._look_at: float | None = None

    def __repr__(self) -> str:
        return f"KeyFile({str(self.path)!r})"

    def keys(self) -> tuple[str, ...]:
        """Return the keys, the preferred one first; empty if there has been no such file yet."""
        now = self._monotonic()
        if self._look_at is None or now >= self._look_at:
            self._look_at = now + LOOK_SECONDS if self._keys else None
            with suppress(OSError, ValueError):
                self._look(now)
        return self._keys

    def _look(self, now: float) -> None:
        found = self.path.stat()
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        if stamp == self._stamp:
            return
        keys = read_keys(self.path)
        if keys:
            self._keys, self._stamp, self._look_at = keys, stamp, now + LOOK_SECONDS


def read_keys(path: Path) -> tuple[str, ...]:
    """Return the keys of a file; OSError if it is missing, ValueError if it is invalid.

    Neither message contains any of the file's content.
    """
    with path.open("rb") as file:
        text = file.read(MAX_FILE_BYTES + 1)
    keys = text.split()
    if len(keys) > MAX_KEYS or len(text) > MAX_FILE_BYTES or not text.isascii():
        raise ValueError(f"{path} is not a file of at most {MAX_KEYS} keys")
    return tuple(key.decode("ascii") for key in keys)


def write_keys(path: Path, keys: tuple[str, ...]) -> None:
    """Replace a file of keys atomically, readable for the owner of the home only."""
    assert 1 <= len(keys) <= MAX_KEYS, f"a file has one key or {MAX_KEYS}, not {len(keys)}"
    assert all(len(key) <= MAX_KEY_BYTES and not key.split()[1:] for key in keys), "a key is a word"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write("".join(f"{key}\n" for key in keys))
        file.flush()
        # Sync before the rename: a power failure must not leave an empty file of keys.
        os.fsync(file.fileno())
    draft.replace(path)
