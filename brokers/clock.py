"""The only reader of time in brokers.

Everything else is given a clock, or the time itself, so that a test or the simulator decides
what time it is. Wall time stamps what others will read (records, files); monotonic time measures
waits and never goes back.
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

    # The function itself: it is asked several times for each request.
    monotonic = staticmethod(time.monotonic)
    # For processes of their own that keep to a pace; nothing that a loop runs may call it.
    sleep = staticmethod(time.sleep)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that stands still until it is told to move. One thread only."""

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
        """Move the wall time alone, also backwards, as an operator or NTP may."""
        self._now_ms = now_ms
