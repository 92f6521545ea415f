"""Accesses the disk: the only file system calls that this package makes.

`Files` is the contract, `LocalFiles` the operating system; fakes in the tests fail the n-th call or
lose unsynced data. Errors leave as plain OSError, because only the caller knows their consequence.
Nothing here retries or caches.
"""

import ctypes
import errno
import os
import sys
from array import array
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol, TypeAlias

from brokers.disk_room import Room, room_at
from brokers.storage.errors import StorageCorrupt
from brokers.storage.names import TEMPORARY

# The types that may be written: any with contiguous bytes.
Buffer: TypeAlias = "bytes | bytearray | memoryview | array[int]"

# Broker data is for the broker's user and group of operators; secrets do not live in a log dir.
_FILE_MODE = 0o640
_FOLDER_MODE = 0o750

# FALLOC_FL_KEEP_SIZE of Linux: Python's own posix_fallocate lengthens the file.
_KEEP_SIZE: Final = 1

# Small files (checkpoints, snapshots) are read whole. The largest valid one is a snapshot of
# 1,000,000 producers; a larger file is damaged, and must not become an allocation.
MAX_SMALL_FILE_BYTES = 64 * 1024 * 1024


class Files(Protocol):
    """All disk access. Thread-safe calls; the caller owns the descriptors."""

    def open(self, path: str, flags: int) -> int:
        """Return a descriptor, not inherited by child processes."""

    def close(self, fd: int) -> None: ...

    def write(self, fd: int, data: Buffer) -> int:
        """Write at the descriptor's position; may take fewer bytes than given."""

    def pwrite(self, fd: int, data: Buffer, position: int) -> int:
        """Write at `position`; may take fewer bytes than given."""

    def pread(self, fd: int, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer at the end of the file."""

    def truncate(self, fd: int, length: int) -> None:
        """Set the length, and release the reserved room behind it."""

    def reserve(self, fd: int, position: int, length: int) -> None:
        """Reserve room on the disk from `position` on; the file's length stays the same.

        OSError if there is no room, or the file system does not support it.
        """

    def room(self, place: str | int) -> Room:
        """Return the room on the disk of a path or a descriptor."""

    def size(self, fd: int) -> int: ...

    def modified_ms(self, fd: int) -> int:
        """Return when the file was last written to, in milliseconds since 1970."""

    def seek(self, fd: int, position: int) -> None:
        """Move the position at which `write` continues."""

    def datasync(self, fd: int) -> None:
        """Sync the file's bytes and length to the disk."""

    def rename(self, source: str, target: str) -> None:
        """Rename atomically and replace `target`; durable only after `sync_folder`."""

    def unlink(self, path: str) -> None: ...

    def make_folder(self, path: str) -> None: ...

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""

    def list_folder(self, path: str) -> list[str]:
        """Return the names in a folder, unordered."""

    def exists(self, path: str) -> bool: ...

    def sync_folder(self, path: str) -> None:
        """Sync names created, renamed or removed in the folder to the disk."""


class LocalFiles:
    """The operating system's files. Stateless, so one instance serves a whole process.

    The calls of the hot path are the `os` functions themselves, without another stack frame.
    """

    write = staticmethod(os.write)
    pwrite = staticmethod(os.pwrite)
    pread = staticmethod(os.pread)
    close = staticmethod(os.close)
    truncate = staticmethod(os.ftruncate)
    # macOS has no fdatasync; there fsync is the nearest call that Python offers.
    datasync = staticmethod(os.fsync if sys.platform == "darwin" else os.fdatasync)
    rename = staticmethod(os.replace)
    room = staticmethod(room_at)
    unlink = staticmethod(os.unlink)
    remove_folder = staticmethod(os.rmdir)

    def open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, _FILE_MODE)

    def reserve(self, fd: int, position: int, length: int) -> None:
        fallocate = _fallocate()
        if fallocate is None:
            raise OSError(errno.ENOTSUP, "this system's C library has no fallocate")
        if fallocate(fd, _KEEP_SIZE, position, length) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def modified_ms(self, fd: int) -> int:
        return os.fstat(fd).st_mtime_ns // 1_000_000

    def seek(self, fd: int, position: int) -> None:
        os.lseek(fd, position, os.SEEK_SET)

    def make_folder(self, path: str) -> None:
        os.mkdir(path, _FOLDER_MODE)

    def list_folder(self, path: str) -> list[str]:
        return os.listdir(path)

    def exists(self, path: str) -> bool:
        # Not os.path.exists: it takes a disk error for "not there", and the log would be recreated.
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def sync_folder(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@cache
def _fallocate() -> Callable[..., Any] | None:
    function = getattr(ctypes.CDLL(None, use_errno=True), "fallocate64", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return function


def write_all(files: Files, fd: int, data: Buffer) -> None:
    """Write all bytes at the descriptor's position, over as many short writes as it takes."""
    view = memoryview(data).cast("B")
    written = 0
    while written < len(view):
        written += files.write(fd, view[written:])


def write_file(files: Files, path: str, data: Buffer) -> None:
    """Create or overwrite a small file and sync its bytes; its name still needs a folder sync.

    After a crash half of it may be there, so only for files that carry their own checksum.
    """
    fd = files.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(files, fd, data)
        files.datasync(fd)
    finally:
        files.close(fd)


def replace_file(files: Files, path: str, data: Buffer) -> None:
    """Replace a small file: after any crash, the old or the new one is there, whole."""
    temporary = path + TEMPORARY
    write_file(files, temporary, data)
    files.rename(temporary, path)
    files.sync_folder(os.path.dirname(path))


def read_file(files: Files, path: str, max_bytes: int = MAX_SMALL_FILE_BYTES) -> bytes:
    """Read a small file whole; StorageCorrupt past `max_bytes`, FileNotFoundError when absent."""
    fd = files.open(path, os.O_RDONLY)
    try:
        size = files.size(fd)
        if size > max_bytes:
            raise StorageCorrupt(
                path, max_bytes, f"{size} bytes long, at most {max_bytes} expected"
            )
        return files.pread(fd, size, 0)
    finally:
        files.close(fd)
