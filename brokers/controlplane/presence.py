"""Builds the mark that a running agent leaves in its home, and checks whether it has ended.

Does not use the database: this works even if the agent, the source of all other information, is
gone. A process of another namespace is not visible here, and an invisible process is not reported
as dead.
"""

import os
from pathlib import Path
from typing import Final

# The file is the agent's lock too, which a process that only checks must not take even briefly.
MARK_FILE: Final = "agent.lock"
PROCESSES: Final = Path("/proc")
# Larger than any mark.
MARK_BYTES: Final = 128


def mark() -> str:
    """Return the mark of this process: its id, and the namespace of that id."""
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
    # The id was reused by another process.
    return b"agent" not in words


def _namespace() -> str:
    try:
        return str((PROCESSES / "self" / "ns" / "pid").readlink())
    except OSError:
        return "unknown"
