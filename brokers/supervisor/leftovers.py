"""Finds and kills processes of a killed supervisor that did not stop.

They are recognized by a mark in their environment that no user sets, so that neither a reused
process number nor another program that uses the home is ever taken for one of them.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "SAMSA_SUPERVISED"
# Between two scans. One alone is not enough: a process may start behind the scan's position, and
# has no readable environment while it executes another program.
SCAN_SECONDS: Final = 0.1
# A killed process ends at once, unless it hangs in the kernel.
KILL_SECONDS: Final = 3.0


def mark(home: Path) -> dict[str, str]:
    """Return the mark for the environment of processes; the same for every path of the home."""
    return {MARK: str(home.resolve())}


def _wanted(home: Path) -> bytes:
    return os.fsencode(f"{MARK}={home.resolve()}")


def marked(home: Path) -> Iterator[int]:
    """Yield this user's living processes that the home's supervisor, or its children, started."""
    wanted = _wanted(home)
    for entry in Path("/proc").iterdir():
        # This process may itself be started by one of the home and marked: it must not end itself.
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        if _has(int(entry.name), wanted):
            yield int(entry.name)


def _has(process: int, wanted: bytes) -> bool:
    # Other users' processes cannot be read, and any process may end during the scan.
    with suppress(OSError):
        return wanted in Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return False


def send(home: Path, number: signal.Signals) -> list[int]:
    """Signal all of them; return those that existed."""
    wanted = _wanted(home)
    return [process for process in marked(home) if _send(process, wanted, number)]


def _send(process: int, wanted: bytes, number: signal.Signals) -> bool:
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return False
    try:
        # The number may have passed to another process before the descriptor named this one.
        if not _has(process, wanted):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def kill_all(home: Path, now: Callable[[], float]) -> Iterator[float]:
    """Kill them all until two scans in a row find none; yield how long to wait before each scan.

    Some leave the group of the process that started them, as Spark's Python workers do.
    """
    end = now() + KILL_SECONDS
    quiet = 0
    while now() < end:
        quiet = 0 if send(home, signal.SIGKILL) else quiet + 1
        if quiet > 1:
            return
        yield SCAN_SECONDS
