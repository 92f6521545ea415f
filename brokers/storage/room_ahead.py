"""Room on the disk that the growing file of a log takes before its batches come.

A write behind the end of a file has the file system look for blocks each time, which is a third of
what the call costs; room that is taken in one piece makes that the rare case, and leaves the file
in few pieces. Nobody sees any of it: a file is as long as what was written to it. It is a wish and
no more: where there is no room, or the file system knows no such thing, a log grows without.
"""

from contextlib import suppress
from typing import Final, Protocol

from brokers.storage.files import Files

# Most logs are small, and a file this short has cost little so far.
FIRST_BYTES: Final = 1024 * 1024
# A file takes as much again as it is long, up to this; more at once would gain nothing.
STEP_BYTES: Final = 8 * 1024 * 1024
# All logs together: a disk must not be full of what nobody has written.
MAX_AHEAD_BYTES: Final = 1024 * 1024 * 1024
# Giving back is a call of its own; a file that is complete may keep less than this.
KEPT_BYTES: Final = 1024 * 1024


class Growing(Protocol):
    """A file that is appended to. Both of its numbers are `RoomAhead`'s, and begin with 0."""

    fd: int
    room_end: int  # up to here nothing is to be asked
    room_taken: int  # what was taken the last time, less what was given back


class RoomAhead:
    """What the files of one log dir have taken. Not thread-safe."""

    __slots__ = ("_files", "_max_bytes", "taken_bytes")

    def __init__(self, files: Files, max_bytes: int = MAX_AHEAD_BYTES) -> None:
        self._files = files
        self._max_bytes = max_bytes
        self.taken_bytes = 0

    def take(self, file: Growing, size: int, end: int, limit: int) -> None:
        """Takes room for an open file of `size` bytes that grows to `end` now, and then further.

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
            self._cut(file.fd, size)  # some file systems keep the part that they found
            return
        file.room_taken = step
        self.taken_bytes += step

    def give_back(self, file: Growing, size: int) -> None:
        """Returns what an open file of `size` bytes has not used: it is complete."""
        unused = file.room_end - size if file.room_taken else 0
        self.forget(file)
        if unused > KEPT_BYTES:
            self._cut(file.fd, size)

    def give_back_forgotten(self, fd: int, size: int) -> None:
        """The same for a file of which nobody knows: a broker has crashed that had taken room."""
        if size > FIRST_BYTES:
            self._cut(fd, size)

    def forget(self, file: Growing) -> None:
        """Takes note that a file has no room ahead: it was cut, or is gone."""
        self.taken_bytes -= file.room_taken
        file.room_taken = file.room_end = 0

    def _cut(self, fd: int, size: int) -> None:
        with suppress(OSError):
            self._files.truncate(fd, size)


def bound(file: Growing) -> int:
    """How long a file may become before `take` is to be asked."""
    return max(file.room_end, FIRST_BYTES)
