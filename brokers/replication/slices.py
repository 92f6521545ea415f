"""Divides long work into slices, between which the event loop serves others."""

import asyncio
from typing import Final

from brokers.clock import Clock

# What one turn of long work may take. Requests that come in meanwhile wait no longer than that and
# the one step that is under way.
SLICE_SECONDS: Final = 0.001


class Slices:
    """Asked after every step of long work."""

    __slots__ = ("_began", "_clock")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()

    async def breathe(self) -> None:
        """Lets others run if this slice has lasted long enough."""
        if self._clock.monotonic() - self._began >= SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = self._clock.monotonic()
