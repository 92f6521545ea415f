"""Measures the room on a disk, and says what may still be written when little of it is left.

On a full disk nothing can be deleted any more, since a deletion is a write as well: so records of
clients stop first, then those of coordinators, and what is left is for the metadata, checkpoints
and logs. The last of it is a reserve, a file that the supervisor makes and that whatever meets the
full disk gives up: not sooner, because other data that fills the disk would take that room as well.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MIB: Final = 1024 * 1024
# Clients' records stop below this. A second of appends fits in beside the floor of coordinators.
RECORDS_FLOOR_BYTES: Final = 64 * MIB
# Records of coordinators, such as committed offsets, stop below this. A deletion of some thousand
# topics writes a few megabytes to the databases.
INTERNAL_FLOOR_BYTES: Final = 16 * MIB
# The size of the reserve, and the free space below which it may be given up. It is made again
# where this leaves coordinators their floor; reserve and that floor are less than the floor of
# clients, so that no records are taken without a reserve.
RESERVE_BYTES: Final = 32 * MIB
GIVE_UP_BYTES: Final = 8 * MIB
# Of the reserve, in a home or a log dir; Kafka ignores names that it does not know.
RESERVE_FILE: Final = "samsa.reserve"
# On a smaller disk than this, all four are the same share of it: an eighth for clients.
FULL_SIZE_BYTES: Final = 512 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The room of one disk, as `df` shows it: `free` is what a process without rights may use."""

    device: int  # the kernel's number of it; another host may have the same
    size_bytes: int
    used_bytes: int
    free_bytes: int

    @property
    def used_share(self) -> float:
        """The share in use, of what is not reserved for the administrator."""
        usable = self.used_bytes + self.free_bytes
        return self.used_bytes / usable if usable else 1.0

    @property
    def records_floor(self) -> int:
        return self._scaled(RECORDS_FLOOR_BYTES)

    @property
    def internal_floor(self) -> int:
        return self._scaled(INTERNAL_FLOOR_BYTES)

    @property
    def reserve_bytes(self) -> int:
        return self._scaled(RESERVE_BYTES)

    @property
    def give_up_floor(self) -> int:
        return self._scaled(GIVE_UP_BYTES)

    def _scaled(self, limit: int) -> int:
        return min(limit, limit * self.size_bytes // FULL_SIZE_BYTES)


def room_at(place: str | int | os.PathLike[str]) -> Room:
    """Return the room of the disk that a path or a descriptor is on; OSError if it is unknown.

    The kernel answers from memory, except for file systems of a network.
    """
    found = os.statvfs(place)
    unit = found.f_frsize
    return Room(
        device=os.stat(place).st_dev,  # noqa: PTH116 - it may be a descriptor
        size_bytes=unit * found.f_blocks,
        used_bytes=unit * (found.f_blocks - found.f_bfree),
        free_bytes=unit * found.f_bavail,
    )


def give_up_reserve(folder: str | os.PathLike[str]) -> None:
    """Remove the reserve in a folder if the disk is full, for a write that needs the room."""
    with suppress(OSError):
        room = room_at(folder)
        if room.free_bytes < room.give_up_floor:
            Path(folder, RESERVE_FILE).unlink(missing_ok=True)


assert RESERVE_BYTES + INTERNAL_FLOOR_BYTES <= RECORDS_FLOOR_BYTES, "records without a reserve"
assert GIVE_UP_BYTES < INTERNAL_FLOOR_BYTES, "the reserve would be made and given up in turns"
