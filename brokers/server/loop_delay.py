"""Measures how late the event loop runs its timers, a delay that every client experiences.

A timer compares the current time with its due time; the difference goes into a histogram.
"""

import asyncio
from typing import Final

from brokers.clock import Clock
from brokers.server.metrics import Histogram

# Often enough to catch some stalls of a few ms, rare enough to cost nothing at rest.
EVERY_SECONDS: Final = 0.25


class LoopDelay:
    """Belongs to the event loop."""

    def __init__(self, histogram: Histogram, clock: Clock) -> None:
        self._histogram = histogram
        self._now = clock.monotonic
        self._due = 0.0
        self._timer: asyncio.Handle | None = None

    def start(self) -> None:
        self._due = self._now() + EVERY_SECONDS
        self._timer = asyncio.get_running_loop().call_later(EVERY_SECONDS, self._ring)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self._histogram.observe(max(0.0, self._now() - self._due))
        self.start()
