"""Identifies processes of this machine, and notices when one ends, whichever process started it.

A pid alone is not enough: it is reused, soon after a restart of the machine or of a container.
A process is identified by the boot id of its kernel, its pid, and its start time.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from brokers.controlplane.agent.home import boot_id


def identity_of(pid: int) -> str:
    """Return an id that no other process ever has; empty if the process is not visible."""
    if not pid:
        return ""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name stands in brackets and may hold anything; the start time is the 20th field after it.
    started = stat.rpartition(")")[2].split()[19]
    return f"{boot_id()}:{pid}:{started}"


def watch_process(process: str, when_dead: Callable[[], None]) -> Callable[[], None] | None:
    """Call back once, in the loop, when a process ends; return a function that ends the watch.

    None: the process is dead already. If the kernel cannot watch it, the callback is never called,
    and silence on the link ends the session instead.
    """
    pid = int(process.split(":")[1])
    handle = -1
    with suppress(OSError):
        handle = os.pidfd_open(pid)
    # Checked after the handle is open, so that it cannot belong to a successor.
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
