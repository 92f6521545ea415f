"""Formats durations for pages, in their largest relevant units.

Pure. `console.times` formats moments.
"""

import math
from typing import Final

DAY_S: Final = 86_400
UNITS: Final = ((DAY_S, "d"), (3_600, "h"), (60, "min"), (1, "s"))
# From this many of a unit on, the next smaller unit is irrelevant.
WHOLE: Final = 10
# The unit of a range's end by its size: "90 s" and "70 min" read well, larger numbers do not.
RANGE_UNITS: Final = ((120, 1, "s"), (7_200, 60, "min"), (2 * DAY_S, 3_600, "h"))
# Longer durations come from a wrong clock, or are practically unlimited.
MAX_SPAN_S: Final = 10_000 * DAY_S


def span(seconds: float) -> str:
    """Return a duration in its two largest units: 0.4 s, 12 s, 4 min 10 s, 6 d 23 h."""
    if seconds < WHOLE:
        return f"{round(max(0.0, seconds), 1):g} s"
    whole = int(min(seconds, MAX_SPAN_S))
    place = next(place for place, (size, _unit) in enumerate(UNITS) if whole >= size)
    size, unit = UNITS[place]
    amount, rest = divmod(whole, size)
    smaller, smaller_unit = UNITS[min(place + 1, len(UNITS) - 1)]
    if amount >= WHOLE or rest < smaller:
        return f"{amount} {unit}"
    return f"{amount} {unit} {rest // smaller} {smaller_unit}"


def between(low_s: float, high_s: float) -> str:
    """Return a range that contains both ends: 4–9 min, 50 s – 3 min."""
    (low_size, low_unit), (high_size, high_unit) = _range_unit(low_s), _range_unit(high_s)
    low, high = int(low_s // low_size), math.ceil(high_s / high_size)
    if low_unit != high_unit:
        return f"{low} {low_unit} – {high} {high_unit}"
    return f"{low} {low_unit}" if low == high else f"{low}–{high} {low_unit}"


def at_least(seconds: float) -> str:
    """Return the lower end of a range without an upper one."""
    size, unit = _range_unit(seconds)
    return f"{int(seconds // size)} {unit}"


def _range_unit(seconds: float) -> tuple[int, str]:
    found = ((size, unit) for limit, size, unit in RANGE_UNITS if seconds < limit)
    return next(found, (DAY_S, "d"))
