"""Tells which process of this machine is which, and when one ends, whoever started it.

A pid alone says little: it is given again, soon after a restart of the machine or of a container.
A process is known here by the boot of its kernel, its pid, and the moment it was started.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from brokers.controlplane.agent.home import boot_id


def identity_of(pid: int) -> str:
    """Return what no other process is called, ever; empty where the process cannot be seen."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name stands in brackets and may hold anything; the start time is the 20th field after it.
    started = stat.rpartition(")")[2].split()[19]
    return f"{boot_id()}:{pid}:{started}"


def watch_process(process: str, when_dead: Callable[[], None]) -> Callable[[], None] | None:
    """Call back once, in the loop, when a process ends; return what ends the watch before.

    None: the process is dead already. A kernel that cannot watch it makes for a watch that never
    tells; silence then ends the session instead.
    """
    pid = int(process.split(":")[1])
    handle = -1
    with suppress(OSError):
        handle = os.pidfd_open(pid)
    # Asked when the handle is there, so that it cannot belong to a successor.
    if identity_of(pid) != process:
        if handle >= 0:
            os.close(handle)
        return None
    if handle < 0:
        return lambda: None
    return _watch(handle, when_dead)


def _watch(handle: int, when_dead: Callable[[], None]) -> Callable[[], None]:
    loop = asyncio.get_running_loop()
    is_open = True

    def stop() -> None:
        nonlocal is_open
        if is_open:
            is_open = False
            loop.remove_reader(handle)
            os.close(handle)

    def tell() -> None:
        stop()
        when_dead()

    loop.add_reader(handle, tell)
    return stop
