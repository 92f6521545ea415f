"""Reads the time, for all of brokers.

Other modules get a clock, or the time itself, so that a test or the simulator controls the time.
Wall time is for timestamps in records and files; monotonic time measures waits and never goes back.
"""

import time
from typing import Final, Protocol

_DAY_MS: Final = 86_400_000


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


def iso_time(now_ms: int) -> str:
    """Format milliseconds since 1970 as `2026-11-18T12:00:00.000Z`."""
    days, rest = divmod(now_ms, _DAY_MS)
    # Howard Hinnant's civil_from_days: years begin in March, so that a leap day ends one.
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    seconds, ms = divmod(rest, 1000)
    hours, seconds = divmod(seconds, 3600)
    clock = f"{hours:02}:{seconds // 60:02}:{seconds % 60:02}.{ms:03}"
    return f"{year:04}-{month:02}-{day:02}T{clock}Z"
