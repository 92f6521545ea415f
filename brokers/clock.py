"""Reads the time, for all of brokers.

Other modules get a clock, or the time itself, so that a test or the simulator controls the time.
Wall time is for timestamps in records and files; monotonic time measures waits and never goes back.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Return the wall time in milliseconds since 1970, as record timestamps carry it."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never go back."""
        ...


class SystemClock:
    """The machine's clock. Safe in any thread."""

    __slots__ = ()

    # The function itself: it is called several times for each request.
    monotonic = staticmethod(time.monotonic)
    # For separate processes that keep to a pace; code on an event loop must not call it.
    sleep = staticmethod(time.sleep)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that moves only by explicit calls. One thread only."""

    __slots__ = ("_monotonic_ms", "_now_ms")

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic_ms / 1000

    def advance(self, milliseconds: int) -> None:
        assert milliseconds >= 0, f"time cannot advance by {milliseconds} ms"
        self._now_ms += milliseconds
        self._monotonic_ms += milliseconds

    def set_wall(self, now_ms: int) -> None:
        """Set the wall time alone, also backwards, as an operator or NTP may."""
        self._now_ms = now_ms
