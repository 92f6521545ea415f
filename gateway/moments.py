"""Reads moments as users type them, and writes them for addresses and for fields. Pure.

One grammar for the options of commands and for the fields of the console. A clock time means
another moment in each time zone, so addresses carry instants only: `absolute` translates what was
typed before a page is shown.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final

from brokers import quantities
from brokers.quantities import Unit

MAX_CHARS: Final = 64
MAX_MS: Final = 2**63 - 1
MILLISECONDS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NEXT_STEP: Final = (
    "give how long ago, as -15m or 2 days ago; a time of today, as 12:00; a date, as yesterday"
    " 12:00, 31.01.2026 12:00 or 2026-01-31T12:00:00Z; or milliseconds since 1970"
)

_AGO: Final = re.compile(r"(?:now)?\s*-\s*(?P<before>[0-9].*)|(?P<ago>[0-9].*)\s+ago", re.ASCII)
_CLOCK: Final = r"(?P<clock>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?)"
_DATE: Final = (
    r"(?P<word>today|yesterday)|(?P<day>[0-9]{1,2})\.(?P<month>[0-9]{1,2})\.(?P<year>[0-9]{4})"
    r"|(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})"
)
_ZONE: Final = r"\s*(?P<zone>z|utc|gmt|[+-][0-9]{2}:?[0-9]{2})"
_WALL: Final = re.compile(
    rf"(?:(?:{_DATE})(?:(?:\s+at\s+|\s*t\s*|,?\s+){_CLOCK})?|{_CLOCK.replace('clock', 'alone')})"
    rf"(?:{_ZONE})?",
    re.ASCII,
)


class NotAMoment(ValueError):
    """A text that means no moment, or more than one; it says what to write instead."""

    def __init__(self, message: str, next_step: str = NEXT_STEP) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What a text means: a clock time in a zone, if it is one, and its moments in UTC."""

    naive: datetime | None = None
    zone: tzinfo = UTC
    moments: tuple[datetime, ...]


def read(text: str, *, zone: tzinfo, now: datetime) -> tuple[datetime, ...]:
    """Return the moments that a text means in a zone, in UTC, the earlier one first.

    Two in the hour that occurs twice, none in the hour that is skipped; a text with an offset means
    one moment, and a day without a clock time its beginning.
    """
    return _read(text, zone, now).moments


def one(text: str, *, zone: tzinfo, now: datetime) -> datetime:
    """Return the moment that a text means. Raises NotAMoment unless it is exactly one."""
    found = _read(text, zone, now)
    if len(found.moments) != 1:
        raise _unclear(text, found)
    return found.moments[0]


def milliseconds(text: str, *, zone: tzinfo, now: datetime) -> int:
    """Return a moment in milliseconds since 1970, not before: no record is older."""
    if MILLISECONDS.fullmatch(text.strip()):
        return min(int(text), MAX_MS)
    return max(0, milliseconds_of(one(text, zone=zone, now=now)))


def span(since: str, until: str, *, zone: tzinfo, now: datetime) -> tuple[int | None, int | None]:
    """Return the ends of a time range in milliseconds since 1970; an empty text is no end.

    Raises NotAMoment, also for a range that ends before it begins.
    """
    start, end = (
        milliseconds(text, zone=zone, now=now) if text else None for text in (since, until)
    )
    if start is not None and end is not None and end <= start:
        raise NotAMoment(
            f"the end {until[:60]!r} is not after the start {since[:60]!r}",
            "give a later end, or an earlier start",
        )
    return start, end


def milliseconds_of(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def at(ms: int) -> datetime:
    """Return the moment of milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=ms)


def absolute(text: str, *, zone: tzinfo, now: datetime) -> str:
    """Return a text that means the same moment to every reader, for an address."""
    if MILLISECONDS.fullmatch(text.strip()):
        return text.strip()
    return instant(one(text, zone=zone, now=now))


def instant(moment: datetime) -> str:
    """Return a moment for an address: 2026-11-19T10:00:00Z."""
    return f"{_digits(moment.astimezone(UTC), 'T')}Z"


def written(moment: datetime, zone: tzinfo) -> str:
    """Return a moment for a field: date and clock time of the zone, with the offset if needed."""
    try:
        local = moment.astimezone(zone)
    except OverflowError:
        # The first and the last hours of the calendar exist in some zones only.
        return instant(moment)
    is_twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    return _digits(local, " ") + (local.isoformat()[-6:] if is_twice else "")


def in_field(text: str, *, zone: tzinfo, now: datetime) -> str:
    """Return a moment of an address as its field shows it; one that has no date as it is."""
    try:
        return written(one(text, zone=zone, now=now), zone)
    except NotAMoment:
        return text


def start_of_day(day: date, zone: tzinfo) -> datetime:
    """Return the first moment of a day, also where clocks skip or repeat midnight."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def _digits(moment: datetime, separator: str) -> str:
    timespec = "milliseconds" if moment.microsecond else "seconds"
    return moment.replace(tzinfo=None).isoformat(sep=separator, timespec=timespec)


def _read(text: str, zone: tzinfo, now: datetime) -> _Read:
    told = text.strip().lower()
    # "An hour ago" does not mean milliseconds, and addresses are shorter without.
    now = now.astimezone(UTC).replace(microsecond=0)
    if len(told) > MAX_CHARS:
        raise _wrong(text)
    try:
        if MILLISECONDS.fullmatch(told):
            return _Read(moments=(at(int(told)),))
        if told == "now":
            return _Read(moments=(now,))
        if found := _AGO.fullmatch(told):
            span_ms = quantities.parse(Unit.MS, found["before"] or found["ago"])
            return _Read(moments=(now - timedelta(milliseconds=span_ms),))
        if found := _WALL.fullmatch(told):
            return _of_wall(found, zone, now)
        return _of_iso(told, zone)
    except (ValueError, OverflowError):
        raise _wrong(text) from None


def _of_wall(found: re.Match[str], zone: tzinfo, now: datetime) -> _Read:
    zone = _zone(found["zone"]) if found["zone"] else zone
    clock = found["clock"] or found["alone"]
    day = _day(found, now.astimezone(zone).date())
    if clock is None:
        return _Read(moments=(start_of_day(day, zone),))
    hour, minute, *rest = clock.replace(",", ".").split(":")
    second, _, fraction = (rest[0] if rest else "0").partition(".")
    of_day = time(int(hour), int(minute), int(second), int(fraction[:6].ljust(6, "0")))
    return _at_clock(datetime.combine(day, of_day), zone)


def _zone(text: str) -> tzinfo:
    if text[0] not in "+-":
        return UTC
    size = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-size if text[0] == "-" else size)


def _day(found: re.Match[str], today: date) -> date:
    if found["iso"]:
        return date.fromisoformat(found["iso"])
    if found["year"]:
        return date(int(found["year"]), int(found["month"]), int(found["day"]))
    return today - timedelta(days=1) if found["word"] == "yesterday" else today


def _of_iso(told: str, zone: tzinfo) -> _Read:
    """Read the rarer formats of ISO 8601, such as 20261119T1200."""
    if told.isdecimal():
        raise ValueError(told)
    given = datetime.fromisoformat(told.upper())
    return (
        _at_clock(given, zone) if given.tzinfo is None else _Read(moments=(given.astimezone(UTC),))
    )


def _at_clock(naive: datetime, zone: tzinfo) -> _Read:
    return _Read(naive=naive, zone=zone, moments=_moments(naive, zone))


def _moments(naive: datetime, zone: tzinfo) -> tuple[datetime, ...]:
    found: set[datetime] = set()
    for fold in (0, 1):
        moment = naive.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) == naive:
            found.add(moment)
    return tuple(sorted(found))


def _wrong(text: str) -> NotAMoment:
    return NotAMoment(f"{text[:60]!r} is not a time" if text.strip() else "no time is given")


def _unclear(text: str, found: _Read) -> NotAMoment:
    """Return the error for a clock time that occurs twice in a zone, or never."""
    assert found.naive is not None, "only a clock time is unclear"
    folds = (found.naive.replace(tzinfo=found.zone, fold=fold) for fold in (0, 1))
    first, second = (each.isoformat() for each in folds)
    how = "occurs twice in" if found.moments else "does not occur in"
    return NotAMoment(
        f"{text[:60]!r} {how} {found.zone}, where clocks are changed",
        f"give it with its offset: {first} or {second}",
    )
