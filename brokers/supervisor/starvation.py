"""Tells what a process waits for, a core or a disk, by what the kernel says of its main thread."""

from pathlib import Path
from typing import Final

NANOSECONDS: Final = 1e9


def waited_seconds(pid: int | None) -> float:
    """Return the seconds since the start of a process in which it could run and had no core.

    0 where the kernel does not count them, or without a process.
    """
    try:
        # The time on a core, the time of waiting for one, and the number of its turns.
        counted = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()
        return int(counted[1]) / NANOSECONDS
    except (OSError, ValueError, IndexError):
        return 0.0


def waits_for_disk(pid: int | None) -> bool:
    """Tell whether a process sleeps in the kernel without being interruptible, as for a disk."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # The state follows the name, which may hold any character.
    return told.rpartition(")")[2].split()[:1] == ["D"]
