"""Reads what the kernel knows of a process: CPU, memory, descriptors, threads, children.

Knows Linux's /proc and nothing of what the processes are.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# The state that the kernel's table of sockets gives to one that listens.
LISTENING: Final = "0A"


@dataclass(frozen=True, slots=True)
class Process:
    """One process, by its number."""

    pid: int

    def cpu_seconds(self) -> float:
        """User and system time of all threads, those that have ended included; in steps of 10 ms.

        The kernel divides by ticks, but the sum of both is what the scheduler counted.
        """
        user, system = self._fields()[11:13]
        return (int(user) + int(system)) / TICKS

    def cpu_seconds_with_ended(self) -> float:
        """Return the CPU seconds of the process and of its descendants that have ended."""
        try:
            return sum(int(ticks) for ticks in self._fields()[11:15]) / TICKS
        except FileNotFoundError:
            # The process has ended meanwhile, and its parent counts it.
            return 0.0

    def rss_bytes(self) -> int:
        return int(self._text("statm").split()[1]) * PAGE_BYTES

    def pss_bytes(self) -> int:
        """Return its memory, with its share of what it shares with others."""
        return int(self._text("smaps_rollup").partition("\nPss:")[2].split()[0]) * 1024

    def peak_bytes(self) -> int:
        """Return the most memory that it ever had resident."""
        return int(self._text("status").partition("VmHWM:")[2].split()[0]) * 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def parent(self) -> int:
        return int(self._fields()[1])

    def environment(self) -> dict[str, str]:
        """The environment variables with which it was started."""
        pairs = self._text("environ").split("\0")
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)

    def command(self) -> list[str]:
        return self._text("cmdline").split("\0")[:-1]

    def listening_ports(self) -> set[int]:
        """The TCP ports (IPv4) on which it takes connections."""
        mine = set(self._open_things())
        table = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        rows = [line.split() for line in table]
        return {
            int(row[1].rpartition(":")[2], 16)
            for row in rows
            if row[3] == LISTENING and f"socket:[{row[9]}]" in mine
        }

    def _open_things(self) -> Iterator[str]:
        """What its descriptors stand for, as the kernel calls it."""
        for name in os.listdir(f"/proc/{self.pid}/fd"):
            # One may have been closed since, as that of this very listing is.
            with suppress(FileNotFoundError):
                yield os.readlink(f"/proc/{self.pid}/fd/{name}")

    def _fields(self) -> list[str]:
        """The numbers of /proc/PID/stat behind the name, which may hold anything."""
        return self._text("stat").rpartition(")")[2].split()

    def _text(self, name: str) -> str:
        return Path(f"/proc/{self.pid}/{name}").read_text(encoding="utf-8", errors="replace")


def family(root: int) -> set[int]:
    """A process and all that descend from it, now."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                parents[int(name)] = Process(int(name)).parent()
            except OSError:
                continue  # it ended meanwhile
    found = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more
