"""Divides long work into slices, between which the event loop serves others."""

import asyncio
from typing import Final

from brokers.clock import Clock

# The time of long work in one turn. Requests wait at most for that and the current step.
SLICE_SECONDS: Final = 0.001


class Slices:
    """Called after every step of long work."""

    __slots__ = ("_began", "_clock")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()

    async def breathe(self) -> None:
        """Let other tasks run if this slice has lasted long enough."""
        if self._clock.monotonic() - self._began >= SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = self._clock.monotonic()
