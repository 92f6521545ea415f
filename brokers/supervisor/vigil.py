"""Kills running processes that give no sign of life, so that their watchers start them again.

Silence counts only while the supervisor's own loop runs: after it was stopped, or starved by a busy
machine, every process gets its full time again. Time in which the silent process waited for a core
does not count either, and one that waits for a disk is left alone. A process that starts or
recovers its logs is not judged, and neither is a broker on hold.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from brokers.clock import Clock
from brokers.supervisor.probe import PROBE_SECONDS
from brokers.supervisor.watcher import State

LOOK_SECONDS: Final = 2.0
# Longer than any turn of a loop on a busy machine. With a look and a restart, a process that hangs
# is back, or its state says why it is not, within 30 s.
SILENT_SECONDS: Final = 20.0
# A process that only ever waits for a core is as good as hung for those who need it.
STARVED_SECONDS: Final = 6 * SILENT_SECONDS
# A round of looks that takes this much longer than it may: this process could not run.
HELD_UP_SECONDS: Final = 3.0


class Watched(Protocol):
    """A watcher, as far as it matters whether its process works."""

    @property
    def state(self) -> State: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def has_beats(self) -> bool: ...
    @property
    def is_on_hold(self) -> bool: ...
    @property
    def silent_seconds(self) -> float: ...
    @property
    def starved_seconds(self) -> float: ...
    @property
    def is_at_disk(self) -> bool: ...
    async def is_alive(self) -> bool: ...
    def note_alive(self) -> None: ...
    def end_silent(self) -> None: ...


class Vigil:
    """See the module. Belongs to the supervisor's loop."""

    def __init__(self, watchers: Callable[[], Sequence[Watched]], clock: Clock) -> None:
        self._watchers = watchers
        self._clock = clock

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            began = self._clock.monotonic()
            await asyncio.sleep(LOOK_SECONDS)
            await self.look(began)

    async def look(self, began: float) -> None:
        """Look at each process once; the round, with the pause before it, began at this time."""
        judged = [each for each in self._watchers() if each.state is State.HEALTHY]
        pids = [watcher.pid for watcher in judged]
        alive = await asyncio.gather(*(watcher.is_alive() for watcher in judged))
        took = self._clock.monotonic() - began
        was_held_up = took > LOOK_SECONDS + PROBE_SECONDS + HELD_UP_SECONDS
        for watcher, pid, is_alive in zip(judged, pids, alive, strict=True):
            if watcher.pid != pid:
                continue
            if was_held_up or (is_alive and not watcher.has_beats):
                watcher.note_alive()
            elif is_hung(watcher) and not watcher.is_on_hold and not watcher.is_at_disk:
                watcher.end_silent()


def is_hung(watcher: Watched) -> bool:
    """Tell whether a process was silent for too long although it had a core, or for much longer."""
    silent_s = watcher.silent_seconds
    if silent_s < SILENT_SECONDS:
        return False
    return silent_s - watcher.starved_seconds >= SILENT_SECONDS or silent_s >= STARVED_SECONDS
