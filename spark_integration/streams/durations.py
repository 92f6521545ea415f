"""Parses durations: `500ms`, `10s`, `5m`, `1h`, `7d`. Pure."""

import re
from typing import Final

from spark_integration.streams.errors import refused

MICROS_PER_MS: Final = 1000
UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
FORM: Final = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)", re.ASCII)
# A century: sums with record times stay far within 64 bits of microseconds.
LONGEST_MS: Final = 36_525 * UNITS_MS["d"]


def parse_duration(step: str, text: object, *, shortest_ms: int = 1) -> int:
    """Return the milliseconds of a text."""
    found = FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise refused(step, f"{text!r} is not a duration", "write it as 500ms, 10s, 5m, 1h, 7d")
    length_ms = int(found[1]) * UNITS_MS[found[2]]
    if not shortest_ms <= length_ms <= LONGEST_MS:
        raise refused(
            step,
            f"{text!r} is {length_ms} ms",
            f"give at least {shortest_ms} ms and at most {LONGEST_MS // UNITS_MS['d']}d",
        )
    return length_ms
