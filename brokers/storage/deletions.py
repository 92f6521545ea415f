"""Segments out of service: renamed at once, unlinked when nobody reads them any more.

Knows no reasons and no clock. A crash in between is harmless, because every start removes what is
called `.deleted`; a reader in between is, too, because it reads through its open descriptor.
"""

from contextlib import suppress

from brokers.storage.handles import Handles
from brokers.storage.names import DELETED
from brokers.storage.segment import Segment


class Deletions:
    """The deleted segments of one log whose files are still there. Belongs to its log."""

    __slots__ = ("_handles", "_waiting")

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        self._waiting: list[tuple[int, Segment]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, segment: Segment, due_ms: int) -> None:
        """Renames the files of a segment, which go for good once it is `due_ms`."""
        for path in segment.paths():
            with suppress(FileNotFoundError):
                self._handles.files.rename(path, path + DELETED)
        self._waiting.append((due_ms, segment))

    def finish(self, now_ms: int) -> None:
        """Unlinks the files whose time has come, unless a reader or a flush still holds them."""
        waiting, self._waiting = self._waiting, []
        for due_ms, segment in waiting:
            if due_ms > now_ms or segment.file.pins > 0:
                self._waiting.append((due_ms, segment))
                continue
            segment.release()
            for path in segment.paths():
                with suppress(FileNotFoundError):
                    self._handles.files.unlink(path + DELETED)

    def release(self) -> None:
        """Closes what is open; the files are left to the next start."""
        for _due_ms, segment in self._waiting:
            segment.release()
        self._waiting.clear()
