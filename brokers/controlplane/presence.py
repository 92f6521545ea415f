"""The mark that a running agent leaves in its home, and whether it has ended since.

Reads and writes nothing of the database: this is what can still be said when the agent, through
which everything else is known, is gone. A process of another namespace cannot be seen from here,
and what cannot be seen is not called dead.
"""

import os
from pathlib import Path
from typing import Final

# Its lock as well, which another process that only looks must not take, were it for a moment.
MARK_FILE: Final = "agent.lock"
PROCESSES: Final = Path("/proc")
# Larger than any mark.
MARK_BYTES: Final = 128


def mark() -> str:
    """Return the mark of this process: its id, and the namespace where that is its id."""
    return f"{os.getpid()}\n{_namespace()}\n"


def is_gone(home: Path) -> bool:
    """Tell whether the agent that was last in this home has ended."""
    try:
        with (home / MARK_FILE).open(encoding="ascii") as file:
            process, namespace = file.read(MARK_BYTES).split()
    except (OSError, ValueError):
        return False
    if namespace != _namespace() or not process.isdigit():
        return False
    try:
        words = (PROCESSES / process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return True
    # An id is given again, to somebody else.
    return b"agent" not in words


def _namespace() -> str:
    try:
        return str((PROCESSES / "self" / "ns" / "pid").readlink())
    except OSError:
        return "unknown"
