"""Files on a disk that fails on command: the n-th call, with any errno, once or from then on.

It counts every call that changes something, so a test runs its scenario once to learn how many
calls there are and then once more per call, failing each in turn. A failing `write` may first take
a part of the bytes, as a disk does that fills up. Reads fail only when asked for by kind.
"""

import os
from dataclasses import dataclass

from brokers.disk_room import Room
from brokers.storage.files import Buffer, Files, LocalFiles

READS = frozenset({"pread", "size", "list_folder", "exists"})
WRITES = frozenset({"write", "pwrite"})
SYNCS = frozenset({"datasync", "sync_folder"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as it was made: what it did, and to which path."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Fail the call number `at` (of `kinds`, of all changing ones if empty), and maybe all later.

    A fault with `torn` lets a write take half of its bytes and fails the next call instead, which
    is how a disk without space behaves.
    """

    at: int
    error: int
    kinds: frozenset[str] = frozenset()
    is_lasting: bool = False
    is_torn: bool = False

    def concerns(self, kind: str) -> bool:
        return kind in self.kinds if self.kinds else kind not in READS


class UnsyncedFiles(LocalFiles):
    """Local files that are never synced: a test that cuts no power need not wait for the disk."""

    def datasync(self, fd: int) -> None:  # type: ignore[override]
        os.fstat(fd)

    def sync_folder(self, path: str) -> None:
        os.stat(path)


class FaultyFiles:
    """Files with one planned fault. `calls` holds every call that could have failed so."""

    def __init__(self, fault: Fault | None = None, disk: Files | None = None) -> None:
        self._disk: Files = UnsyncedFiles() if disk is None else disk
        self._fault = fault
        self._paths: dict[int, str] = {}
        self._shorter: dict[str, int] = {}
        self._seen = 0
        self._failing = False
        # What the disk says of its room; the real one's if there is none.
        self.disk_room: Room | None = None
        self.calls: list[Call] = []
        self.failed: list[Call] = []

    def heal(self) -> None:
        """The disk works again, for good."""
        self._fault = None
        self._failing = False

    def plan(self, fault: Fault) -> None:
        """Counts from here on."""
        self._fault, self._seen, self._failing = fault, 0, False

    def shorten(self, kind: str, length: int) -> None:
        """Every `write` or `pwrite` takes at most `length` bytes, as it may at any time."""
        self._shorter[kind] = length

    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_CREAT | os.O_TRUNC):
            self._gate("open", path)
        fd = self._disk.open(path, flags)
        self._paths[fd] = path
        return fd

    def close(self, fd: int) -> None:
        del self._paths[fd]
        self._disk.close(fd)

    def close_all(self) -> None:
        """Gives back what was left open, as the end of a process does."""
        for fd in list(self._paths):
            self.close(fd)

    def write(self, fd: int, data: Buffer) -> int:
        return self._disk.write(fd, self._taken("write", fd, data))

    def pwrite(self, fd: int, data: Buffer, position: int) -> int:
        return self._disk.pwrite(fd, self._taken("pwrite", fd, data), position)

    def pread(self, fd: int, length: int, position: int) -> bytes:
        self._gate("pread", self._paths[fd])
        return self._disk.pread(fd, length, position)

    def truncate(self, fd: int, length: int) -> None:
        self._gate("truncate", self._paths[fd])
        self._disk.truncate(fd, length)

    def reserve(self, fd: int, position: int, length: int) -> None:
        self._gate("reserve", self._paths[fd])
        self._disk.reserve(fd, position, length)

    def room(self, place: str | int) -> Room:
        return self._disk.room(place) if self.disk_room is None else self.disk_room

    def size(self, fd: int) -> int:
        self._gate("size", self._paths[fd])
        return self._disk.size(fd)

    def modified_ms(self, fd: int) -> int:
        self._gate("size", self._paths[fd])
        return self._disk.modified_ms(fd)

    def seek(self, fd: int, position: int) -> None:
        self._disk.seek(fd, position)

    def datasync(self, fd: int) -> None:
        self._gate("datasync", self._paths[fd])
        self._disk.datasync(fd)

    def rename(self, source: str, target: str) -> None:
        self._gate("rename", source)
        self._disk.rename(source, target)

    def unlink(self, path: str) -> None:
        self._gate("unlink", path)
        self._disk.unlink(path)

    def make_folder(self, path: str) -> None:
        self._gate("make_folder", path)
        self._disk.make_folder(path)

    def remove_folder(self, path: str) -> None:
        self._gate("remove_folder", path)
        self._disk.remove_folder(path)

    def list_folder(self, path: str) -> list[str]:
        self._gate("list_folder", path)
        return self._disk.list_folder(path)

    def exists(self, path: str) -> bool:
        self._gate("exists", path)
        return self._disk.exists(path)

    def sync_folder(self, path: str) -> None:
        self._gate("sync_folder", path)
        self._disk.sync_folder(path)

    def _taken(self, kind: str, fd: int, data: Buffer) -> memoryview:
        view = memoryview(data).cast("B")
        tear = self._gate(kind, self._paths[fd])
        if tear:
            return view[: len(view) // 2]
        return view[: self._shorter.get(kind, len(view))]

    def _gate(self, kind: str, path: str) -> bool:
        """Raises when this call's turn has come; True when it is to be torn first."""
        fault = self._fault
        call = Call(kind=kind, path=path)
        if fault is None:
            if kind not in READS:
                self.calls.append(call)
            return False
        if not fault.concerns(kind):
            return False
        number, self._seen = self._seen, self._seen + 1
        self.calls.append(call)
        if number == fault.at and fault.is_torn and kind in WRITES:
            self._failing = True
            return True
        if number == fault.at or self._failing:
            self._failing = fault.is_lasting
            self.failed.append(call)
            raise OSError(fault.error, os.strerror(fault.error), path)
        return False
