"""Formats sizes, rates and counts for pages. An unknown one is a dash, and never a zero."""

from typing import Final

UNKNOWN: Final = "–"
BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
DECIMAL: Final = ("", "k", "M", "G", "T")


def size(value: float | None) -> str:
    """Return bytes in binary units: 1.4 GiB."""
    return UNKNOWN if value is None else _scaled(value, 1024, BINARY)


def share(value: float | None) -> str:
    """Return a share as a percentage that is neither rounded to nothing nor to all."""
    if value is None:
        return UNKNOWN
    if 0 < value < 0.01:
        return f"{value:.2%}" if value >= 0.0001 else "under 0.01%"
    return "over 99%" if 0.99 < value < 1 else f"{value:.0%}"


def bytes_rate(value: float | None) -> str:
    return UNKNOWN if value is None else f"{size(value)}/s"


def rate(value: float | None) -> str:
    """Return a rate per second in three digits: 18.2 k/s."""
    return UNKNOWN if value is None else f"{short(value)}/s"


def short(value: float | None) -> str:
    """Return a number in three digits: 18.2 k."""
    return UNKNOWN if value is None else _scaled(value, 1000, DECIMAL)


def count(value: float | None) -> str:
    """Return a whole number to the digit: 1,204,551."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def _scaled(value: float, step: int, units: tuple[str, ...]) -> str:
    """Return a number below `step` with its unit, in three digits."""
    place = 0
    while place < len(units) - 1 and abs(value) >= step - 0.5:
        value, place = value / step, place + 1
    # A number with three digits needs no tenths.
    number = f"{value:.{1 if abs(value) < 99.95 else 0}f}".removesuffix(".0")
    return f"{number} {units[place]}".rstrip()
