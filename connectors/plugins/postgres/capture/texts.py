"""Parses the text forms of PostgreSQL's compound values: arrays, hstore, interval.

Pure, and strict: any other form raises ValueError, so that a server with another output style
causes an error, not a wrong value.
"""

import re
from dataclasses import dataclass
from typing import Final

# One element: quoted, with backslash escapes, or bare. A bare NULL is a null.
_ELEMENT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}\\]+)', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
# Bounds that do not begin at one precede the braces: [0:2]={1,2,3}
_BOUNDS: Final = re.compile(r"(?:\[-?\d+:-?\d+\])+=")
_PAIR: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)(?:, |$)', re.DOTALL)
_INTERVAL: Final = re.compile(
    r"(?:([+-]?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? ?)?"
    r"(?:([+-])?(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?"
)


def elements(text: str) -> list[str | None]:
    """Return the elements of an array of one dimension; None for nulls."""
    bounds = _BOUNDS.match(text)
    start = bounds.end() if bounds else 0
    if text[start : start + 1] != "{" or text[-1:] != "}":
        raise ValueError("not an array: it has no braces")
    found: list[str | None] = []
    at, end = start + 1, len(text) - 1
    while at < end:
        if text[at] == "{":
            raise ValueError("an array of several dimensions has no schema: leave the column out")
        element = _ELEMENT.match(text, at, end)
        if element is None:
            raise ValueError(f"not an array: no element at {at}")
        quoted, bare = element.groups()
        if bare is None:
            found.append(_unescaped(quoted))
        else:
            found.append(None if bare == "NULL" else bare)
        at = element.end()
        if at < end:
            if text[at] != "," or at + 1 == end:
                raise ValueError(f"not an array: no separator at {at}")
            at += 1
    return found


def pairs(text: str) -> dict[str, str | None]:
    """Return the keys and values of an hstore."""
    found: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise ValueError(f"not an hstore: no pair at {at}")
        key, value = pair.groups()
        found[_unescaped(key)] = None if value is None else _unescaped(value)
        at = pair.end()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval in PostgreSQL's three independent units, each with its own sign."""

    months: int
    days: int
    microseconds: int


def interval(text: str) -> Interval:
    """Parse the style `postgres`, as `1 year 2 mons -3 days 04:05:06.789`."""
    found = _INTERVAL.fullmatch(text)
    if found is None or not text:
        raise ValueError("not an interval in the style postgres")
    years, months, days, sign, hours, minutes, seconds, fraction = found.groups()
    whole = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    micros = whole * 1_000_000 + int((fraction or "").ljust(6, "0"))
    return Interval(
        months=int(years or 0) * 12 + int(months or 0),
        days=int(days or 0),
        microseconds=-micros if sign == "-" else micros,
    )


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text
