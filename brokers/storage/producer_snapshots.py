"""The `.snapshot` files of a partition folder: producer state as it was at an offset.

Knows names and order, not the content. A snapshot at offset N covers all batches below N; it
carries its own checksum, so a crash may tear it without harm: the next older one serves, and replay
of the log fills the rest.
"""

import os
from collections.abc import Collection, Iterable

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, read_file, write_all
from brokers.storage.names import PRODUCER_SNAPSHOT, offset_file, parse_offset_file
from brokers.storage.producer_state import ProducerStates


class ProducerSnapshots:
    """The snapshots of one partition. Stateless but for its folder; every call reads the names."""

    __slots__ = ("_files", "folder")

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self.folder = folder

    def path(self, offset: int) -> str:
        """Where the snapshot at `offset` lies or would lie."""
        return os.path.join(self.folder, offset_file(offset, PRODUCER_SNAPSHOT))

    def offsets(self) -> list[int]:
        """The offsets of all snapshots, oldest first."""
        names = (parse_offset_file(name) for name in self._files.list_folder(self.folder))
        return sorted(
            name.offset
            for name in names
            if name is not None and name.suffix == PRODUCER_SNAPSHOT and not name.marker
        )

    def write(self, offset: int, states: ProducerStates) -> int:
        """Writes the state at `offset`; the descriptor returned is to be synced and then closed.

        The sync is the caller's, who may have a thread for it: a roll must not wait for the disk.
        """
        fd = self._files.open(self.path(offset), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(self._files, fd, states.snapshot())
        except OSError:
            self._files.close(fd)
            raise
        return fd

    def save(self, offset: int, states: ProducerStates) -> None:
        """Writes the state at `offset` and syncs it; its name wants a sync of the folder."""
        fd = self.write(offset, states)
        try:
            self._files.datasync(fd)
        finally:
            self._files.close(fd)

    def load_newest(self, states: ProducerStates, at_least: int, at_most: int) -> int | None:
        """Loads the newest usable snapshot of the range and returns its offset; None leaves none.

        Damaged ones are removed on the way, so that nobody trips over them again.
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
        """Removes snapshots of a future that truncation took back; True if there was one.

        It must not come back once the log has reached its offset again: a sync of the folder sees
        to that.
        """
        removed = [found for found in self.offsets() if found > offset]
        self._remove(removed)
        return bool(removed)

    def remove_strays(self, base_offsets: Collection[int]) -> None:
        """Removes snapshots of no segment, except one above them all: the last close wrote it."""
        offsets = self.offsets()
        newest_base = max(base_offsets, default=-1)
        kept = set(base_offsets)
        if offsets and offsets[-1] > newest_base:
            kept.add(offsets[-1])
        self._remove(found for found in offsets if found not in kept)

    def _remove(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            self._files.unlink(self.path(offset))
