"""Measures the memory of this process, and the disk space of its log dir.

Asks the kernel, which answers from memory: nothing here reads a disk or waits for one.
"""

import os
from contextlib import suppress
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# Linux's file of a process's sizes in pages; the second one is what is resident.
_STATM: Final = "/proc/self/statm"
_STATM_BYTES: Final = 256


def memory_bytes() -> int | None:
    """Return the resident memory of this process; None where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        fd = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, _STATM_BYTES).split()[1]) * _PAGE_BYTES
        finally:
            os.close(fd)
    return None


def disk_bytes(path: str) -> tuple[int, int] | None:
    """Return size and free room of a path's file system; None where it cannot be asked.

    Free is what a process without special rights may still take.
    """
    with suppress(OSError):
        told = os.statvfs(path)
        return told.f_frsize * told.f_blocks, told.f_frsize * told.f_bavail
    return None
