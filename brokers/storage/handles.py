"""Resources shared by the logs of one log dir: open files, memory budgets, disk failure.

Has no offsets or batches. A log file is opened on first use and may be closed again at any time,
unless this very descriptor is still needed: a reader has pinned it, a flush is running on it, or it
holds unsynced bytes. The last matters most: the kernel reports a lost write only to descriptors
that were open when it was lost.

A log that is taken out of service does not wait for its readers. Its files are renamed or unlinked
at once; a file that is still pinned is *doomed*, and its last reader closes the descriptor. One
thread owns the handles and everything in them.
"""

import os
import resource
from collections import OrderedDict
from contextlib import suppress
from typing import Final, Protocol

from brokers.disk_room import Room
from brokers.storage.dense_tail import DEFAULT_TAIL_BYTES
from brokers.storage.errors import TOO_MANY_OPEN_ERRNOS, LogDirFailed, TooManyOpenFiles
from brokers.storage.files import Files
from brokers.storage.holes import RecordsDamaged
from brokers.storage.memory_budget import MemoryBudget
from brokers.storage.producer_ids import SeenProducerIds
from brokers.storage.room_ahead import RoomAhead

# The share of the process's descriptor limit; the rest is for sockets.
_SHARE_OF_LIMIT: Final = 2
# Reopening costs about 3 µs, so more than this has no measurable benefit.
MAX_OPEN_FILES: Final = 8192
# Below this even a broker with few partitions would reopen all the time.
MIN_OPEN_FILES: Final = 16
# Eight full segments of 1 GiB at Kafka's index interval; reading one in again takes 1-2 ms.
DEFAULT_INDEX_BYTES: Final = 16 * 1024 * 1024
# Index entries on their way to a file: enough for 64 logs that are written fast. Writing more often
# is all that a lack of it costs.
DEFAULT_WAITING_BYTES: Final = 4 * 1024 * 1024
# Unreported damage. The broker reports twice a second; for a disk that breaks faster than this a
# longer list would add nothing.
MAX_DAMAGE_NOTED: Final = 256


class LogFile:
    """One segment's `.log`: its path, and its descriptor while there is one.

    Owners read `fd` and go through `Handles.open` when it is negative.
    """

    __slots__ = (
        "doomed_by",
        "fd",
        "is_dirty",
        "path",
        "pins",
        "room_end",
        "room_taken",
        "was_used",
    )

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self.pins = 0  # readers and flushes that need the descriptor to stay
        self.is_dirty = False  # holds bytes that no finished or running flush covers
        self.was_used = True
        self.room_end = self.room_taken = 0
        self.doomed_by: Handles | None = None  # the handles that close it after the last reader

    def unpin(self) -> None:
        """Drop one pin; the last pin of a doomed file closes it."""
        self.pins -= 1
        if self.doomed_by is not None and self.pins == 0:
            self.doomed_by.close(self)

    @property
    def is_held(self) -> bool:
        """Whether the descriptor must stay open, and the file where it is."""
        return self.pins > 0 or self.is_dirty


class Owner(Protocol):
    """An appender to files of this log dir, which must stop when the disk is full or has failed."""

    def refuse_appends(self) -> None: ...


class Rebuild(Protocol):
    """A rebuild of a segment's indexes."""

    def step(self) -> bool:
        """Do one short step; return True once the rebuild is complete."""


class Handles:
    """Opens log files on demand and closes those least recently used."""

    __slots__ = (
        "_damage",
        "_doomed",
        "_held",
        "_look_again_in",
        "_max_open",
        "_open",
        "ahead",
        "failure",
        "files",
        "indexes",
        "owners",
        "producer_ids",
        "rebuilds",
        "room",
        "tails",
        "waiting",
    )

    def __init__(
        self,
        files: Files,
        *,
        max_open: int | None = None,
        index_bytes: int = DEFAULT_INDEX_BYTES,
        tail_bytes: int = DEFAULT_TAIL_BYTES,
    ) -> None:
        self.files = files
        self.ahead = RoomAhead(files)
        self.failure: LogDirFailed | None = None
        self.room: Room | None = None  # of the disk, when last measured
        self.owners: set[Owner] = set()
        self.producer_ids = SeenProducerIds()
        self.indexes = MemoryBudget(index_bytes)
        self.tails = MemoryBudget(tail_bytes)
        self.waiting = MemoryBudget(DEFAULT_WAITING_BYTES)
        self.rebuilds: dict[Rebuild, None] = {}  # under way, oldest first
        self._damage: list[RecordsDamaged] = []
        self._max_open = default_budget() if max_open is None else max_open
        # A clock's order: a file that was used since the hand last passed stays for another round.
        self._open: OrderedDict[LogFile, None] = OrderedDict()
        # Files that were held when the hand met them. It must not meet thousands of them at each
        # opening, so they come back when a flush is over, or after as many openings as there are of
        # them: readers release files without notice.
        self._held: set[LogFile] = set()
        # Pinned files of logs that are out of service. Each was open before its log was taken out,
        # so dooming adds no descriptor. Each has a piece of an unsent answer, and the output limits
        # of connections bound those in bytes; what bounds the number of files is the descriptor
        # limit of the process alone, beyond which an opening is TooManyOpenFiles.
        self._doomed: set[LogFile] = set()
        self._look_again_in = 0

    @property
    def open_files(self) -> int:
        return len(self._open) + len(self._held) + len(self._doomed)

    @property
    def doomed_files(self) -> int:
        """Return how many files of logs out of service a reader still keeps open."""
        return len(self._doomed)

    @property
    def is_over_budget(self) -> bool:
        """Tell whether more files are held than the budget allows; a flush releases dirty ones."""
        return self.open_files > self._max_open

    def open(self, file: LogFile, *, create: bool = False) -> int:
        """Return the descriptor of `file`; open it if it is closed. `create` also empties it."""
        if file.fd >= 0:
            file.was_used = True
            return file.fd
        if self.open_files >= self._max_open:
            self._close_idle()
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC if create else os.O_RDWR
        try:
            file.fd = self.files.open(file.path, flags)
        except OSError as error:
            if error.errno in TOO_MANY_OPEN_ERRNOS:
                raise TooManyOpenFiles(file.path, "open") from error
            raise
        file.was_used = True
        self._open[file] = None
        return file.fd

    def close(self, file: LogFile) -> None:
        """Close a file for good, or doom it while it is pinned; discard its dirty bytes."""
        self.ahead.forget(file)
        if file.fd < 0:
            return
        self._open.pop(file, None)
        self._held.discard(file)
        if file.pins > 0:
            file.doomed_by = self
            self._doomed.add(file)
            return
        file.doomed_by = None
        self._doomed.discard(file)
        self._release(file)

    def note_damage(self, damage: RecordsDamaged) -> None:
        """Record new damage for the next report."""
        if len(self._damage) < MAX_DAMAGE_NOTED:
            self._damage.append(damage)

    def take_damage(self) -> list[RecordsDamaged]:
        """Return what was noted since the last call."""
        damage, self._damage = self._damage, []
        return damage

    def let_go(self, file: LogFile) -> None:
        """Let a file be closed again that a flush no longer needs."""
        if file in self._held and not file.is_held:
            self._held.discard(file)
            self._open[file] = None

    def sync(self, fd: int, path: str) -> None:
        """Sync an open file; after any failure, accepted bytes may be lost."""
        try:
            self.files.datasync(fd)
        except OSError as error:
            raise self.fail(LogDirFailed(path, "fsync", error)) from error

    def sync_path(self, path: str) -> None:
        """Sync a file that is not held open."""
        fd = self.files.open(path, os.O_RDONLY)
        try:
            self.sync(fd, path)
        finally:
            self.files.close(fd)

    def sync_folder(self, path: str) -> None:
        """Sync the names in a folder."""
        try:
            self.files.sync_folder(path)
        except OSError as error:
            if error.errno in TOO_MANY_OPEN_ERRNOS:
                # The folder was not even opened, so nothing is lost.
                raise TooManyOpenFiles(path, "fsync") from error
            raise self.fail(LogDirFailed(path, "fsync", error)) from error

    def measure(self, place: str | int) -> None:
        """Measure the room on the disk; logs check it at their next append if it has become scarce.

        They are notified for the reason given at `fail`.
        """
        before = self.room
        # What cannot be measured is not refused: a write tells whether there is room.
        with suppress(OSError):
            self.room = self.files.room(place)
        if _grants(self.room) < _grants(before):
            for owner in self.owners:
                owner.refuse_appends()

    def fail(self, failure: LogDirFailed) -> LogDirFailed:
        """Mark the log dir as failed, for good, and return the first failure, which counts.

        Owners are notified, because a check before every append would cost each a tenth of a µs.
        """
        if self.failure is None:
            self.failure = failure
            for owner in self.owners:
                owner.refuse_appends()
        return self.failure

    def _close_idle(self) -> None:
        self._look_again_in -= 1
        if self._look_again_in <= 0:
            for file in [file for file in self._held if not file.is_held]:
                self.let_go(file)
            self._look_again_in = len(self._held)
        # Two rounds at most: the first clears the marks of recent use, the second closes files.
        for _ in range(2 * len(self._open)):
            if not self._open or self.open_files < self._max_open:
                return
            file, _none = self._open.popitem(last=False)
            if file.is_held:
                self._held.add(file)
            elif file.was_used:
                file.was_used = False
                self._open[file] = None
            else:
                self._release(file)

    def _release(self, file: LogFile) -> None:
        fd, file.fd = file.fd, -1
        self.files.close(fd)


def default_budget() -> int:
    """Return how many log files a process may hold open, well below the system's limit."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_OPEN_FILES
    return max(MIN_OPEN_FILES, min(MAX_OPEN_FILES, soft // _SHARE_OF_LIMIT))


def _grants(room: Room | None) -> int:
    """Return how many kinds of records may be appended: all, those of coordinators, or none."""
    if room is None:
        return 2
    return (room.free_bytes >= room.records_floor) + (room.free_bytes >= room.internal_floor)
