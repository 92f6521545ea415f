"""Identifies processes of this host, and detects their end.

A process is identified by its number and its start time, since numbers are reused.
"""

import os
import select
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# The 22nd field of /proc/PID/stat, counted after the name in brackets.
BEGAN_FIELD: Final = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    number: int
    began: int


def host() -> str:
    return socket.gethostname()


def boot_id() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def this_one(number: int) -> Process:
    """Identify a running process."""
    return Process(number=number, began=began(number))


def began(number: int) -> int:
    """Return the start time of a process in the kernel's ticks; 0 if there is none."""
    with suppress(OSError, IndexError, ValueError):
        text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[BEGAN_FIELD])
    return 0


class Watched:
    """Watches processes, to notice their end at once."""

    def __init__(self) -> None:
        self._descriptors: dict[Process, int] = {}
        self._poll = select.poll()

    def watch(self, processes: set[Process]) -> set[Process]:
        """Watch exactly these from now on; return those that have already ended."""
        for process in self._descriptors.keys() - processes:
            self._close(process)
        return {process for process in processes if not self._open(process)}

    def wait(self, seconds: float) -> set[Process]:
        """Return the processes that have ended, after at most this time."""
        ended = {descriptor for descriptor, _ in self._poll.poll(seconds * 1000)}
        found = {process for process, own in self._descriptors.items() if own in ended}
        for process in found:
            self._close(process)
        return found

    def _open(self, process: Process) -> bool:
        if process in self._descriptors:
            return True
        try:
            descriptor = os.pidfd_open(process.number)
        except OSError:
            return False
        # The number may belong to another process by now.
        if began(process.number) != process.began:
            os.close(descriptor)
            return False
        self._descriptors[process] = descriptor
        self._poll.register(descriptor, select.POLLIN)
        return True

    def _close(self, process: Process) -> None:
        descriptor = self._descriptors.pop(process)
        self._poll.unregister(descriptor)
        os.close(descriptor)
