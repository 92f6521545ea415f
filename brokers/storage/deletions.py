"""Deletes segments: renames them at once, unlinks them when no reader uses them any more.

Has no clock. A crash in between is harmless, because every start removes files that end in
`.deleted`; a reader in between is harmless, too, because it reads through its open descriptor.
"""

from collections.abc import Sequence
from contextlib import suppress

from brokers.storage.errors import LogDirFailed, is_refusal
from brokers.storage.handles import Handles
from brokers.storage.names import DELETED
from brokers.storage.segment import Segment


class Deletions:
    """The deleted segments of one log whose files still exist. Belongs to its log."""

    __slots__ = ("_handles", "_waiting")

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        self._waiting: list[tuple[int, Segment]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, segments: Sequence[Segment], due_ms: int) -> list[str]:
        """Rename the files of segments, to be unlinked from `due_ms` on; return them.

        If the disk refuses one of them for want of space, all keep their names.
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
        """Restore the names of segments: the operation after their deletion was refused."""
        self._waiting = [entry for entry in self._waiting if entry[1] not in segments]
        self._name_back(renamed)

    def finish(self, now_ms: int) -> None:
        """Unlink the files that are due, unless a reader or a flush still holds them."""
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
        """Close open files; the next start removes them."""
        for _due_ms, segment in self._waiting:
            segment.release()
        self._waiting.clear()

    def _name_back(self, renamed: list[str]) -> None:
        for path in reversed(renamed):
            try:
                self._handles.files.rename(path + DELETED, path)
            except OSError as error:
                # Half of a log has other names now, so only a new start helps.
                raise self._handles.fail(LogDirFailed(path, "rename", error)) from error
