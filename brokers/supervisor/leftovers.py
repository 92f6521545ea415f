"""Processes that a killed supervisor left behind, and that did not stop by themselves.

They are known by a mark in their environment that no user sets, so that neither a reused process
number nor a program that happens to use the home is ever taken for one of ours.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "SAMSA_SUPERVISED"


def mark(home: Path) -> dict[str, str]:
    """The mark, for the environment of what a supervisor starts; the same by whatever name."""
    return {MARK: str(home.resolve())}


def marked(home: Path) -> Iterator[int]:
    """Every living process of this user that a supervisor of the home started, or its child."""
    wanted = os.fsencode(f"{MARK}={home.resolve()}")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        # Other users' processes are closed to us, and any may end while we look.
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)


def send(home: Path, number: signal.Signals) -> list[int]:
    """Signal all of them; return those that were there."""
    found = []
    for process in marked(home):
        with suppress(ProcessLookupError):
            os.kill(process, number)
            found.append(process)
    return found
