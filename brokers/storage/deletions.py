"""Segments out of service: renamed at once, unlinked when nobody reads them any more.

Knows no reasons and no clock. A crash in between is harmless, because every start removes what is
called `.deleted`; a reader in between is, too, because it reads through its open descriptor.
"""

from collections.abc import Sequence
from contextlib import suppress

from brokers.storage.errors import LogDirFailed, is_refusal
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

    def add(self, segments: Sequence[Segment], due_ms: int) -> list[str]:
        """Renames the files of segments, which go for good once it is `due_ms`; returns them.

        If the disk refuses one of them for want of space, all are called as before.
        """
        renamed: list[str] = []
        try:
            for segment in segments:
                segment.drop_rebuild()
                for path in segment.paths():
                    with suppress(FileNotFoundError):
                        self._handles.files.rename(path, path + DELETED)
                        renamed.append(path)
        except OSError as error:
            if is_refusal(error):
                self._name_back(renamed)
            raise
        self._waiting += ((due_ms, segment) for segment in segments)
        return renamed

    def take_back(self, segments: Sequence[Segment], renamed: list[str]) -> None:
        """Gives segments their names again: what was to follow their deletion was refused."""
        self._waiting = [entry for entry in self._waiting if entry[1] not in segments]
        self._name_back(renamed)

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

    def _name_back(self, renamed: list[str]) -> None:
        for path in reversed(renamed):
            try:
                self._handles.files.rename(path + DELETED, path)
            except OSError as error:
                # Half of a log is under other names now, so nothing but a new start helps.
                raise self._handles.fail(LogDirFailed(path, "rename", error)) from error
