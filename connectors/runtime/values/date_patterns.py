"""Parses and formats dates by patterns of Java's SimpleDateFormat, in UTC and English.

An example is `yyyy-MM-dd'T'HH:mm:ss.SSSX`. Parsing is lenient as in Java: month 13 is January of
the next year, and blanks before a field are skipped. Weeks (`Y`, `w`, `W`) depend on the host's
locale and are refused; years of two digits, which depend on its clock, are in 1970 to 2069.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, TypeAlias

from connectors.runtime.values.temporal import EPOCH_DATE, MILLIS_PER_DAY, timestamp_of
from connectors.sdk.errors import ConfigError, DataError

# More than any date needs; the work for one record grows with it.
MAX_CHARS: Final = 200
# Days and years beyond this overflow Python's dates, whose own limit is year 9999.
_MAX_FIELD: Final = 10**9
_FIRST_YEAR: Final = 1970

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LETTERS: Final = frozenset("GyMLdDFEuaHkKhmsSzZX")
_LOCAL_LETTERS: Final = frozenset("YwW")
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_DIGITS: Final = re.compile(r"[0-9]{2}")
_OFFSET: Final = re.compile(r"([+-])([0-9]{1,2}):?([0-9]{2})")
_ISO_OFFSETS: Final = (
    r"([+-])([0-9]{2})()",
    r"([+-])([0-9]{2})([0-9]{2})",
    r"([+-])([0-9]{2}):([0-9]{2})",
)
_NAMED_ZONE: Final = re.compile(r"(?:UTC|GMT)(?:([+-])([0-9]{1,2}):?([0-9]{2}))?|UT")
_ISO_ZONES: Final = tuple(re.compile(f"Z|{offset}") for offset in _ISO_OFFSETS)


@dataclass(frozen=True, slots=True)
class _Field:
    letter: str
    count: int

    @property
    def is_number(self) -> bool:
        return not (self.letter in "GEazZX" or (self.letter in "ML" and self.count > 2))


_Part: TypeAlias = str | _Field


class Pattern:
    """A compiled pattern, for both directions. ConfigError names the letter that cannot be used."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARS:
            raise ConfigError(
                f"a date pattern has {len(text)} characters, and {MAX_CHARS} are allowed"
            )
        self.text = text
        self._parts = _compile(text)

    def format(self, millis: int) -> str:
        when = timestamp_of(millis)
        return "".join(
            part if isinstance(part, str) else _WRITERS[part.letter](when, part.count)
            for part in self._parts
        )

    def parse(self, text: str, *, is_whole: bool = False) -> int:
        """Return milliseconds since 1970.

        Text after the last field is ignored, unless `is_whole` is set.
        """
        found: dict[str, int] = {}
        end = self._read(text, found)
        if end is None or (is_whole and end < len(text)):
            raise DataError(f"{text[:100]!r} does not match the date pattern {self.text!r}")
        return _millis(found)

    def _read(self, text: str, found: dict[str, int]) -> int | None:
        """Read all fields into `found`; return the end position, or None if a field is missing."""
        at = 0
        for index, part in enumerate(self._parts):
            if isinstance(part, str):
                if not text.startswith(part, at):
                    return None
                at += len(part)
                continue
            follows = self._parts[index + 1] if index + 1 < len(self._parts) else ""
            # Adjacent number fields have as many digits as letters.
            is_fixed = isinstance(follows, _Field) and follows.is_number
            end = _read(part, text, at, found, is_fixed=is_fixed)
            if end is None:
                return None
            at = end
        return at


def _compile(text: str) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "'":
            literal, at = _quoted(text, at)
            parts.append(literal)
        elif char.isascii() and char.isalpha():
            end = at + len(text[at:]) - len(text[at:].lstrip(char))
            parts.append(_field(char, end - at, text))
            at = end
        else:
            parts.append(char)
            at += 1
    return tuple(parts)


def _quoted(text: str, at: int) -> tuple[str, int]:
    """Return the quoted literal, and where it ends; two quotes stand for one."""
    if text.startswith("''", at):
        return "'", at + 2
    end = at + 1
    while (end := text.find("'", end)) >= 0:
        if not text.startswith("''", end):
            return text[at + 1 : end].replace("''", "'"), end + 1
        end += 2
    raise ConfigError(f"the date pattern {text!r} has a quote that is not closed")


def _field(letter: str, count: int, text: str) -> _Field:
    if letter in _LOCAL_LETTERS:
        raise ConfigError(
            f"the date pattern {text!r} has {letter!r}, the weeks of the host's locale: "
            "use y for the year, and d or D for the day"
        )
    if letter not in _LETTERS:
        raise ConfigError(
            f"the date pattern {text!r} has {letter!r}, which is not a letter of a date: put "
            "words into single quotes"
        )
    if letter == "X" and count > len(_ISO_ZONES):
        raise ConfigError(f"the date pattern {text!r} has {'X' * count!r}: at most XXX is allowed")
    return _Field(letter, count)


def _padded(read: Callable[[datetime], int]) -> Callable[[datetime, int], str]:
    return lambda when, count: f"{read(when):0{count}}"


def _name(names: tuple[str, ...], index: int, count: int) -> str:
    return names[index] if count > 3 else names[index][:3]


def _month(when: datetime, count: int) -> str:
    return f"{when.month:0{count}}" if count < 3 else _name(_MONTHS, when.month - 1, count)


_WRITERS: Final[Mapping[str, Callable[[datetime, int], str]]] = {
    "G": lambda _when, _count: "AD",
    "y": lambda when, count: f"{when.year % 100:02}" if count == 2 else f"{when.year:0{count}}",
    "M": _month,
    "L": _month,
    "d": _padded(lambda when: when.day),
    "D": _padded(lambda when: when.timetuple().tm_yday),
    "F": _padded(lambda when: (when.day - 1) // 7 + 1),
    "E": lambda when, count: _name(_DAYS, when.weekday(), count),
    "u": _padded(lambda when: when.isoweekday()),
    "a": lambda when, _count: "AM" if when.hour < 12 else "PM",
    "H": _padded(lambda when: when.hour),
    "k": _padded(lambda when: when.hour or 24),
    "K": _padded(lambda when: when.hour % 12),
    "h": _padded(lambda when: when.hour % 12 or 12),
    "m": _padded(lambda when: when.minute),
    "s": _padded(lambda when: when.second),
    "S": _padded(lambda when: when.microsecond // 1000),
    "z": lambda _when, count: "UTC" if count < 4 else "Coordinated Universal Time",
    "Z": lambda _when, _count: "+0000",
    "X": lambda _when, _count: "Z",
}


def _read(
    field: _Field, text: str, at: int, found: dict[str, int], *, is_fixed: bool
) -> int | None:
    """Read one field into `found` by its letter; return where it ends."""
    while text.startswith((" ", "\t"), at):
        at += 1
    if field.letter == "X" or field.letter in "zZ":
        return _read_zone(field, text, at, found)
    if not field.is_number:
        return _read_name(field, text, at, found)
    number = _WHOLE.match(text, at, at + field.count) if is_fixed else _WHOLE.match(text, at)
    if number is None or (is_fixed and at + field.count > len(text)):
        return None
    value = int(number[0])
    if field.letter == "y" and field.count <= 2 and _DIGITS.fullmatch(number[0]):
        value = _FIRST_YEAR + (value - _FIRST_YEAR) % 100
    found[_SAME.get(field.letter, field.letter)] = value
    return number.end()


_SAME: Final = {"L": "M"}


def _read_name(field: _Field, text: str, at: int, found: dict[str, int]) -> int | None:
    names = _NAMES[field.letter]
    folded = text[at : at + 20].casefold()
    for length in (None, 3):
        for index, name in enumerate(names):
            if folded.startswith((short := name[:length]).casefold()):
                found[_SAME.get(field.letter, field.letter)] = index + (field.letter in "ML")
                return at + len(short)
    return None


_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "G": ("BC", "AD"),
    "M": _MONTHS,
    "L": _MONTHS,
    "E": _DAYS,
    "a": ("AM", "PM"),
}


def _read_zone(field: _Field, text: str, at: int, found: dict[str, int]) -> int | None:
    if field.letter == "X":
        zone = _ISO_ZONES[field.count - 1].match(text, at)
    else:
        zone = _NAMED_ZONE.match(text, at) or _OFFSET.match(text, at)
    if zone is None:
        return None
    sign, hours, minutes = zone.groups()
    if sign:
        offset = int(hours) * 60 + int(minutes or 0)
        found["Z"] = -offset if sign == "-" else offset
    return zone.end()


def _millis(found: Mapping[str, int]) -> int:
    if any(abs(value) > _MAX_FIELD for value in found.values()):
        raise DataError("a date has a field that is too large")
    year = found.get("y", _FIRST_YEAR)
    if found.get("G") == 0:
        year = 1 - year
    years, month = divmod(found.get("M", 1) - 1, 12)
    try:
        first = date(year + years, month + 1, 1)
    except ValueError as error:
        raise DataError(f"year {year + years} is outside of 1 to 9999") from error
    days = (first - EPOCH_DATE).days + found.get("d", 1) - 1
    if "D" in found and "d" not in found:
        days = (date(year, 1, 1) - EPOCH_DATE).days + found["D"] - 1
    seconds = (_hour(found) * 60 + found.get("m", 0) - found.get("Z", 0)) * 60 + found.get("s", 0)
    return days * MILLIS_PER_DAY + seconds * 1000 + found.get("S", 0)


def _hour(found: Mapping[str, int]) -> int:
    if "H" in found:
        return found["H"]
    if "k" in found:
        return 0 if found["k"] == 24 else found["k"]
    half = found["K"] if "K" in found else found.get("h", 0)
    # At noon and midnight, `h` is 12 and `K` is 0.
    if half == 12 and "K" not in found:
        half = 0
    return half + 12 * found.get("a", 0)
