"""The text forms of PostgreSQL's compound values: arrays, hstore, interval.

Pure, and strict: a text of another form is a ValueError, so that a server that was told another
style is found out, and no value becomes another one.
"""

import re
from dataclasses import dataclass
from typing import Final

# One element: quoted, where backslashes escape, or bare. A bare NULL is a null.
_ELEMENT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}\\]+)', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
# Bounds that do not begin at one stand before the braces: [0:2]={1,2,3}
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
        raise ValueError("no array: it has no braces")
    found: list[str | None] = []
    at, end = start + 1, len(text) - 1
    while at < end:
        if text[at] == "{":
            raise ValueError("an array of several dimensions has no schema: leave the column out")
        element = _ELEMENT.match(text, at, end)
        if element is None:
            raise ValueError(f"no array: what stands at {at} is no element")
        quoted, bare = element.groups()
        if bare is None:
            found.append(_unescaped(quoted))
        else:
            found.append(None if bare == "NULL" else bare)
        at = element.end()
        if at < end:
            if text[at] != "," or at + 1 == end:
                raise ValueError(f"no array: what stands at {at} is no separator")
            at += 1
    return found


def pairs(text: str) -> dict[str, str | None]:
    """Return the keys and values of an hstore."""
    found: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            raise ValueError(f"no hstore: what stands at {at} is no pair")
        key, value = pair.groups()
        found[_unescaped(key)] = None if value is None else _unescaped(value)
        at = pair.end()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval in the three units that PostgreSQL keeps apart, and which have any sign."""

    months: int
    days: int
    microseconds: int


def interval(text: str) -> Interval:
    """Read the style `postgres`, as `1 year 2 mons -3 days 04:05:06.789`."""
    found = _INTERVAL.fullmatch(text)
    if found is None or not text:
        raise ValueError("no interval of the style postgres")
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
