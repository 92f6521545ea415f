"""Watches the disks of a home, and makes a reserve on each for when it is full.

On a full disk nothing could be deleted: the deletion of a topic writes to the database first. So
the home, and each log dir on a disk of its own, has a file of allocated blocks, which is made again
when there is room. It is given up by what needs its room: a write to a database, a broker's chore,
a start, and a stop. Brokers refuse records long before that (`brokers.disk_room`), so that only
other data on the disk comes this far.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from brokers.disk_room import MIB, RESERVE_FILE, Room, give_up_reserve, room_at

# Other data may fill the reserve's disk at any rate; asking the kernel costs microseconds.
LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """One disk as last measured; `folder` is where its reserve belongs."""

    folder: Path
    room: Room
    has_reserve: bool

    @property
    def trouble(self) -> str:
        """Say that the disk is full, and what to do; empty if it is not."""
        room = self.room
        if room.free_bytes >= room.records_floor:
            return ""
        needed = room.records_floor + (0 if self.has_reserve else room.reserve_bytes)
        return (
            f"disk full: {_mib(room.free_bytes)} of {_mib(room.size_bytes)} are free on the disk of"
            f" {self.folder}, and brokers refuse records until {_mib(needed)} are; delete topics,"
            f" shorten their retention, or remove other data from this disk"
        )

    def told(self) -> dict[str, Any]:
        """Return the row of `status`."""
        return {
            "path": str(self.folder),
            "state": "full" if self.trouble else "healthy",
            "size_bytes": self.room.size_bytes,
            "free_bytes": self.room.free_bytes,
            "has_reserve": self.has_reserve,
            "reason": self.trouble,
        }


class Disks:
    """The disks of a home's folders, the home first. `look` may wait for a disk."""

    def __init__(self, folders: Sequence[Path], note: Callable[[str, Disk], None]) -> None:
        self._folders = folders
        self._note = note
        self.known: tuple[Disk, ...] = ()

    async def watch(self) -> None:
        """Look once a second; a disk that hangs delays only this."""
        while True:
            self.take(await asyncio.to_thread(self.look))
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> tuple[Disk, ...]:
        """Measure every disk once, and make its reserve if there is room."""
        disks: dict[int, Disk] = {}
        for folder in self._folders:
            # A log dir is made by its broker; a broken one is that broker's to report.
            with suppress(OSError):
                device = folder.stat().st_dev
                if device not in disks:
                    disks[device] = _kept(folder)
        return tuple(disks.values())

    def make_way(self) -> None:
        """Give up the reserves of full disks: something is about to start or stop there."""
        for folder in self._folders:
            give_up_reserve(folder)

    def take(self, found: tuple[Disk, ...]) -> None:
        """Keep the result of a look for `status`, and note what has changed."""
        before = {disk.room.device: disk for disk in self.known}
        self.known = found
        for disk in found:
            self._note_change(before.get(disk.room.device), disk)

    def _note_change(self, before: Disk | None, disk: Disk) -> None:
        was_full, had_reserve = (
            bool(before and before.trouble),
            before is None or before.has_reserve,
        )
        if bool(disk.trouble) is not was_full:
            self._note("disk.full" if disk.trouble else "disk.has_room", disk)
        if disk.has_reserve is not had_reserve:
            self._note("reserve.made" if disk.has_reserve else "reserve.given_up", disk)


def _kept(folder: Path) -> Disk:
    """Return a folder's disk; make its reserve if it has none and there is room."""
    file, room = folder / RESERVE_FILE, room_at(folder)
    has_reserve = _size(file) >= room.reserve_bytes
    if not has_reserve and room.free_bytes >= room.reserve_bytes + room.internal_floor:
        _make(file, room.reserve_bytes)
        room, has_reserve = room_at(folder), _size(file) >= room.reserve_bytes
    return Disk(folder=folder, room=room, has_reserve=has_reserve)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return -1


def _make(file: Path, size: int) -> None:
    """Allocate the reserve; where that is refused there is none, and the next look tries again."""
    with suppress(OSError):
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError:
            file.unlink()
        finally:
            os.close(handle)


def _mib(size: int) -> str:
    return f"{size / MIB:,.0f} MiB"
