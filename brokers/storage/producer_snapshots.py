"""The `.snapshot` files of a partition folder: producer state as it was at an offset.

Handles names and order, not the content. A snapshot at offset N covers all batches below N; it has
its own checksum, so a crash may tear it without harm: recovery uses the next older one and replays
the log from there.
"""

import os
from collections.abc import Collection, Iterable

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, read_file, write_all
from brokers.storage.names import PRODUCER_SNAPSHOT, offset_file, parse_offset_file
from brokers.storage.producer_state import ProducerStates


class ProducerSnapshots:
    """The snapshots of one partition. Stateless but for its folder; every call lists the files."""

    __slots__ = ("_files", "folder")

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self.folder = folder

    def path(self, offset: int) -> str:
        """Return the path of the snapshot at `offset`, present or not."""
        return os.path.join(self.folder, offset_file(offset, PRODUCER_SNAPSHOT))

    def offsets(self) -> list[int]:
        """Return the offsets of all snapshots, oldest first."""
        names = (parse_offset_file(name) for name in self._files.list_folder(self.folder))
        return sorted(
            name.offset
            for name in names
            if name is not None and name.suffix == PRODUCER_SNAPSHOT and not name.marker
        )

    def write(self, offset: int, states: ProducerStates) -> int:
        """Write the state at `offset`; return the descriptor, to be synced and then closed.

        The caller syncs, maybe in a thread: a roll must not wait for the disk.
        """
        fd = self._files.open(self.path(offset), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(self._files, fd, states.snapshot())
        except OSError:
            self._files.close(fd)
            raise
        return fd

    def save(self, offset: int, states: ProducerStates) -> None:
        """Write the state at `offset` and sync it; its name needs a sync of the folder."""
        fd = self.write(offset, states)
        try:
            self._files.datasync(fd)
        finally:
            self._files.close(fd)

    def load_newest(self, states: ProducerStates, at_least: int, at_most: int) -> int | None:
        """Load the newest usable snapshot of the range; return its offset, or None without one.

        Removes damaged ones on the way, so that they are not tried again.
        """
        for offset in reversed(self.offsets()):
            if not at_least <= offset <= at_most:
                continue
            try:
                states.load(read_file(self._files, self.path(offset)), self.path(offset))
            except StorageCorrupt:
                self._files.unlink(self.path(offset))
            else:
                return offset
        states.clear()
        return None

    def remove_above(self, offset: int) -> bool:
        """Remove snapshots above the new end of a truncated log; True if there was one.

        It must not reappear once the log has reached its offset again, which needs a sync of the
        folder.
        """
        removed = [found for found in self.offsets() if found > offset]
        self._remove(removed)
        return bool(removed)

    def remove_strays(self, base_offsets: Collection[int]) -> None:
        """Remove snapshots of no segment, except one above all: the last close wrote it."""
        offsets = self.offsets()
        newest_base = max(base_offsets, default=-1)
        kept = set(base_offsets)
        if offsets and offsets[-1] > newest_base:
            kept.add(offsets[-1])
        self._remove(found for found in offsets if found not in kept)

    def _remove(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            self._files.unlink(self.path(offset))
