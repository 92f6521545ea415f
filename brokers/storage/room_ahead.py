"""Reserves room on the disk for the growing file of a log, ahead of its batches.

At each write behind a file's end the file system has to allocate blocks, a third of the call's
cost; reserving large pieces makes that rare, and leaves the file in few fragments. Readers see none
of it: a file is as long as what was written to it. It is optional: where there is no room, or no
support by the file system, a log grows without.
"""

from contextlib import suppress
from typing import Final, Protocol

from brokers.storage.files import Files

# Most logs are small, and a file this short has cost little so far.
FIRST_BYTES: Final = 1024 * 1024
# A file reserves its own length again, up to this; more at once would gain nothing.
STEP_BYTES: Final = 8 * 1024 * 1024
# The limit of all logs: reservations alone must not fill the disk.
MAX_AHEAD_BYTES: Final = 1024 * 1024 * 1024
# Releasing is a call of its own; a complete file may keep less than this.
KEPT_BYTES: Final = 1024 * 1024


class Growing(Protocol):
    """A file that is appended to. `RoomAhead` owns both numbers, which begin with 0."""

    fd: int
    room_end: int  # the end of the reserved room
    room_taken: int  # the size of the last reservation, less what was released


class RoomAhead:
    """The reservations of the files of one log dir. Not thread-safe."""

    __slots__ = ("_files", "_max_bytes", "taken_bytes")

    def __init__(self, files: Files, max_bytes: int = MAX_AHEAD_BYTES) -> None:
        self._files = files
        self._max_bytes = max_bytes
        self.taken_bytes = 0

    def take(self, file: Growing, size: int, end: int, limit: int) -> None:
        """Reserve room for an open file of `size` bytes that grows to `end` now, and then further.

        Nothing above `limit`, where the file will be complete.
        """
        if end <= bound(file):
            return
        self.forget(file)
        step = max(0, min(STEP_BYTES, end, limit - end))
        file.room_end = end + step
        if step == 0 or self.taken_bytes + step > self._max_bytes:
            return
        try:
            self._files.reserve(file.fd, size, end + step - size)
        except OSError:
            self._cut(file.fd, size)  # some file systems keep a partial reservation
            return
        file.room_taken = step
        self.taken_bytes += step

    def give_back(self, file: Growing, size: int) -> None:
        """Release the unused room of an open, complete file of `size` bytes."""
        unused = file.room_end - size if file.room_taken else 0
        self.forget(file)
        if unused > KEPT_BYTES:
            self._cut(file.fd, size)

    def give_back_forgotten(self, fd: int, size: int) -> None:
        """Release the room of a file after a crash of the broker that had reserved it."""
        if size > FIRST_BYTES:
            self._cut(fd, size)

    def forget(self, file: Growing) -> None:
        """Drop the reservation of a file that was cut, or is gone."""
        self.taken_bytes -= file.room_taken
        file.room_taken = file.room_end = 0

    def _cut(self, fd: int, size: int) -> None:
        with suppress(OSError):
            self._files.truncate(fd, size)


def bound(file: Growing) -> int:
    """Return how long a file may become before the next call of `take`."""
    return max(file.room_end, FIRST_BYTES)
