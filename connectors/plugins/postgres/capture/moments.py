"""Parses PostgreSQL's dates and times into counts, and formats them by ISO 8601.

It uses counts, not Python's classes: years go from 4713 BC to 294276, and a time may be 24:00.
"""

import re
from typing import Final

SECOND: Final = 1_000_000  # in microseconds, as all times here
DAY: Final = 86_400 * SECOND
# Infinity as a count: for timestamps the value that Debezium uses; for dates the limits of the
# type, which PostgreSQL itself uses.
TIMESTAMPS: Final = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
DATES: Final = {"infinity": 2**31 - 1, "-infinity": -(2**31)}

_DATE: Final = re.compile(r"(\d{4,7})-(\d\d)-(\d\d)( BC)?")
_TIME: Final = r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?"
_ZONE: Final = r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?"
_CLOCK: Final = re.compile(_TIME)
_ZONED_CLOCK: Final = re.compile(_TIME + _ZONE)
_TIMESTAMP: Final = re.compile(rf"(\d{{4,7}}-\d\d-\d\d) {_TIME}(?:{_ZONE})?( BC)?")
_DAYS_OF_400_YEARS: Final = 146_097
# Days from March 1st of year 0, where the count begins, to 1970.
_DAYS_TO_1970: Final = 719_468


def days_of(text: str) -> int:
    """Return the days from 1970 to a date, in the Gregorian calendar of all times."""
    if text in DATES:
        return DATES[text]
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError("not a date in ISO style")
    year, month, day, before = found.groups()
    return _days(1 - int(year) if before else int(year), int(month), int(day))


def micros_of_day(text: str) -> int:
    """Return the microseconds from midnight."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise ValueError("not a time of day")
    return _clock(*found.groups())


def utc_of_day(text: str) -> tuple[int, int]:
    """Return a time with a zone as microseconds from midnight in UTC, and its digits."""
    found = _ZONED_CLOCK.fullmatch(text)
    if found is None:
        raise ValueError("not a time of day with a zone")
    hours, minutes, seconds, fraction, *zone = found.groups()
    micros = _clock(hours, minutes, seconds, fraction) - _offset(*zone)
    return micros % DAY, len(fraction or "")


def micros_of(text: str) -> int:
    """Return the microseconds from 1970 to a timestamp; without a zone it is UTC."""
    if text in TIMESTAMPS:
        return TIMESTAMPS[text]
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise ValueError("not a timestamp in ISO style")
    date, hours, minutes, seconds, fraction, *zone, before = found.groups()
    days = days_of(date + (before or ""))
    return days * DAY + _clock(hours, minutes, seconds, fraction) - _offset(*zone)


def iso_date(days: int) -> str:
    """Format a date; years beyond four digits have a sign, as in Java."""
    year, month, day = _civil(days)
    written = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{written}-{month:02d}-{day:02d}"


def iso_time(micros: int, *, digits: int | None = None) -> str:
    """Format a time of day with this many fraction digits; None for as few as it needs."""
    seconds, fraction = divmod(micros, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    told = f"{fraction:06d}"
    told = told.rstrip("0") if digits is None else told[:digits]
    return f"{hour:02d}:{minute:02d}:{second:02d}" + (f".{told}" if told else "")


def iso_timestamp(micros: int, *, digits: int | None = None) -> str:
    days, rest = divmod(micros, DAY)
    return f"{iso_date(days)}T{iso_time(rest, digits=digits)}Z"


def _clock(hours: str, minutes: str, seconds: str, fraction: str | None) -> int:
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * SECOND + int((fraction or "").ljust(6, "0"))


def _offset(sign: str | None, hours: str | None, minutes: str | None, seconds: str | None) -> int:
    whole = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return (-whole if sign == "-" else whole) * SECOND


def _days(year: int, month: int, day: int) -> int:
    """Count from March, so that a leap day is the last day of its year."""
    year -= month <= 2
    of_400, within = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    of_400_years = within * 365 + within // 4 - within // 100 + of_year
    return of_400 * _DAYS_OF_400_YEARS + of_400_years - _DAYS_TO_1970


def _civil(days: int) -> tuple[int, int, int]:
    of_400, rest = divmod(days + _DAYS_TO_1970, _DAYS_OF_400_YEARS)
    within = (rest - rest // 1460 + rest // 36524 - rest // 146096) // 365
    of_year = rest - (365 * within + within // 4 - within // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    day = of_year - (153 * shifted + 2) // 5 + 1
    return of_400 * 400 + within + (month <= 2), month, day
