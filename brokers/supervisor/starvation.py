"""Measures how long a process waited for a core, by what the kernel counts for its main thread."""

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
