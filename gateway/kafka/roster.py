"""Records which members of groups a process has, for those that outlive it.

A group waits 45 s for a member that ended without leaving, and a process that is killed cannot
leave. Each member is a file with the name of its group, in the folder of its process; a file that
is left behind names a member that is gone.
"""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

log: Final = logging.getLogger(__name__)
# A process has some hundreds of members.
MAX_MEMBERS: Final = 10_000
# No group has a longer name.
MAX_GROUP_BYTES: Final = 32_767


class Roster:
    """The files of one process. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def enter(self, group: str, member: str) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file(member).write_bytes(group.encode())
        except OSError as error:
            # Reading goes on; after a kill, the group waits for the member's session.
            log.warning("roster.not_written error=%s", error)

    def leave(self, member: str) -> None:
        with suppress(OSError):
            self._file(member).unlink(missing_ok=True)

    def members(self) -> list[tuple[str, str]]:
        """Return the group and the id of each member."""
        found = []
        for name in names_in(self._folder)[:MAX_MEMBERS]:
            with suppress(OSError, UnicodeDecodeError), (self._folder / name).open("rb") as file:
                group = file.read(MAX_GROUP_BYTES).decode()
                # A process that was killed while it wrote leaves an empty file.
                if group:
                    found.append((group, unquote(name)))
        return found

    def _file(self, member: str) -> Path:
        return self._folder / quote(member, safe="")


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder; none if it does not exist."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
