"""Manages the folders of sessions, which do not outlive the processes that create them.

A process holds a lock on its folder, which the kernel releases however the process ends; the
next session removes unlocked folders.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "session-"
LOCK: Final = "lock"


class SessionFolder:
    """A folder below `spark/` of a home, locked as long as this object is open."""

    def __init__(self, home: Path) -> None:
        parent = home / "spark"
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Processes that remove leftovers hold this lock, so they never see an unlocked new folder.
        with locked(parent / LOCK, fcntl.LOCK_EX):
            remove_leftovers(parent)
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            self._lock = open_locked(self.path / LOCK, fcntl.LOCK_SH)
        self.temporary = self.path / "tmp"
        self.warehouse = self.path / "warehouse"
        for folder in (self.temporary, self.warehouse):
            folder.mkdir()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def open_locked(path: Path, kind: int) -> int:
    """Open and lock a file; it is not inherited, so no JVM keeps the lock."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, kind)
    except OSError:
        os.close(number)
        raise
    return number


@contextmanager
def locked(path: Path, kind: int) -> Iterator[None]:
    number = open_locked(path, kind)
    try:
        yield
    finally:
        os.close(number)


def remove_leftovers(parent: Path) -> None:
    """Remove the folders of sessions whose process has ended."""
    for folder in parent.glob(f"{PREFIX}*"):
        # A living process holds it, or it is already gone.
        with suppress(OSError), locked(folder / LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(folder, ignore_errors=True)
