"""Kinds of dates and times, by `time.precision.mode` and by the digits of their columns."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from connectors.plugins.postgres.capture import moments
from connectors.plugins.postgres.capture.event_settings import EventSettings, Intervals, Times
from connectors.plugins.postgres.capture.kinds import Kind, plain
from connectors.plugins.postgres.capture.texts import interval
from connectors.sdk import schemas
from connectors.sdk.schemas import Type

PACKAGE: Final = "io.debezium.time."
# Fraction digits of a column without a declared precision, and the most that milliseconds hold.
DIGITS: Final = 6
MILLISECONDS: Final = 3
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# A month in numeric intervals: a twelfth of a year of 365¼ days.
MONTH: Final = 2_629_800 * moments.SECOND
LEAST, MOST = -(2**63), 2**63 - 1
ADVICE: Final = "; use another time.precision.mode, or leave the column out"
BEYOND_PYTHON: Final = "it is outside of the years 1 to 9999" + ADVICE

# Conversions from a count of microseconds, by schema name.
_Unit = tuple[Type, str, Callable[[int], Any]]


def _same(micros: int) -> int:
    return micros


def _milliseconds(micros: int) -> int:
    return micros // 1000


def _nanoseconds(micros: int) -> int:
    if micros in moments.TIMESTAMPS.values():
        return MOST if micros > 0 else LEAST
    nanos = micros * 1000
    if not LEAST <= nanos <= MOST:
        raise ValueError(
            "it is outside of the years 1678 to 2261, the range of nanoseconds" + ADVICE
        )
    return nanos


def _datetime(micros: int) -> datetime:
    try:
        return EPOCH + timedelta(microseconds=micros // 1000 * 1000)
    except OverflowError as error:
        raise ValueError(BEYOND_PYTHON) from error


def _time(micros: int) -> time:
    if micros >= moments.DAY:
        raise ValueError("a time of Kafka Connect cannot hold 24:00" + ADVICE)
    return (EPOCH + timedelta(microseconds=micros // 1000 * 1000)).time()


def _iso_timestamp(micros: int) -> str:
    return moments.iso_timestamp(micros)


def _iso_time(micros: int) -> str:
    return moments.iso_time(micros % moments.DAY) + "Z"


MICRO_TIMESTAMP: Final = (Type.INT64, f"{PACKAGE}MicroTimestamp", _same)
MICRO_TIME: Final = (Type.INT64, f"{PACKAGE}MicroTime", _same)
# Modes that count in one unit, whatever the precision of a column.
TIMESTAMP_UNITS: Final[dict[Times, _Unit]] = {
    Times.CONNECT: (Type.INT64, schemas.TIMESTAMP, _datetime),
    Times.ISOSTRING: (Type.STRING, f"{PACKAGE}IsoTimestamp", _iso_timestamp),
    Times.MICROSECONDS: MICRO_TIMESTAMP,
    Times.NANOSECONDS: (Type.INT64, f"{PACKAGE}NanoTimestamp", _nanoseconds),
}
TIME_UNITS: Final[dict[Times, _Unit]] = {
    Times.ADAPTIVE_TIME_MICROSECONDS: MICRO_TIME,
    Times.CONNECT: (Type.INT32, schemas.TIME, _time),
    Times.ISOSTRING: (Type.STRING, f"{PACKAGE}IsoTime", _iso_time),
    Times.MICROSECONDS: MICRO_TIME,
    Times.NANOSECONDS: (Type.INT64, f"{PACKAGE}NanoTime", _nanoseconds),
}
ADAPTIVE_TIMESTAMPS: Final[tuple[_Unit, _Unit]] = (
    (Type.INT64, f"{PACKAGE}Timestamp", _milliseconds),
    MICRO_TIMESTAMP,
)
ADAPTIVE_TIMES: Final[tuple[_Unit, _Unit]] = (
    (Type.INT32, f"{PACKAGE}Time", _milliseconds),
    MICRO_TIME,
)


def timestamp(modifier: int, settings: EventSettings) -> Kind:
    adaptive = ADAPTIVE_TIMESTAMPS[_digits(modifier) > MILLISECONDS]
    return _counted(moments.micros_of, TIMESTAMP_UNITS.get(settings.times, adaptive))


def time_of_day(modifier: int, settings: EventSettings) -> Kind:
    adaptive = ADAPTIVE_TIMES[_digits(modifier) > MILLISECONDS]
    return _counted(moments.micros_of_day, TIME_UNITS.get(settings.times, adaptive))


def date_of(_modifier: int, settings: EventSettings) -> Kind:
    if settings.times is Times.CONNECT:
        kind = plain(Type.INT32, _connect_date, name=schemas.DATE)
        return replace(kind, fallback=EPOCH.date())
    if settings.times is Times.ISOSTRING:
        kind = plain(Type.STRING, _iso_date, name=f"{PACKAGE}IsoDate")
        return replace(kind, fallback="1970-01-01Z")
    return plain(Type.INT32, moments.days_of, name=f"{PACKAGE}Date")


def zoned_timestamp(modifier: int, _settings: EventSettings) -> Kind:
    digits = _digits(modifier)

    def value(text: str) -> str:
        if text in moments.TIMESTAMPS:
            return text
        return moments.iso_timestamp(moments.micros_of(text), digits=digits)

    kind = plain(Type.STRING, value, name=f"{PACKAGE}ZonedTimestamp")
    return replace(kind, fallback="1970-01-01T00:00:00Z")


def zoned_time(_modifier: int, _settings: EventSettings) -> Kind:
    def value(text: str) -> str:
        micros, digits = moments.utc_of_day(text)
        return moments.iso_time(micros, digits=digits) + "Z"

    kind = plain(Type.STRING, value, name=f"{PACKAGE}ZonedTime")
    return replace(kind, fallback="00:00:00Z")


def interval_of(_modifier: int, settings: EventSettings) -> Kind:
    if settings.intervals is Intervals.STRING:
        kind = plain(Type.STRING, _iso_interval, name=f"{PACKAGE}Interval")
        return replace(kind, fallback="P0Y0M0DT0H0M0S")
    return plain(Type.INT64, _micros_of_interval, name=f"{PACKAGE}MicroDuration")


def _counted(read: Callable[[str], int], unit: _Unit) -> Kind:
    type_, name, convert = unit
    if convert is _same:
        return plain(type_, read, name=name)
    kind = plain(type_, lambda text: convert(read(text)), name=name)
    return replace(kind, fallback=convert(0))


def _digits(modifier: int) -> int:
    return DIGITS if modifier < 0 else modifier


def _connect_date(text: str) -> date:
    try:
        return EPOCH.date() + timedelta(days=moments.days_of(text))
    except OverflowError as error:
        raise ValueError(BEYOND_PYTHON) from error


def _iso_date(text: str) -> str:
    return moments.iso_date(moments.days_of(text)) + "Z"


def _micros_of_interval(text: str) -> int:
    told = interval(text)
    return told.months * MONTH + told.days * moments.DAY + told.microseconds


def _iso_interval(text: str) -> str:
    """Format all units, zeros too, each with its sign from PostgreSQL."""
    told = interval(text)
    is_negative = told.microseconds < 0
    seconds, micros = divmod(abs(told.microseconds), moments.SECOND)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    years, months = abs(told.months) // 12, abs(told.months) % 12
    if told.months < 0:
        years, months = -years, -months
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    sign = "-" if is_negative else ""

    def signed(count: int) -> str:
        return f"{sign if count else ''}{count}"

    told_seconds = f"{sign if second or micros else ''}{second}{fraction}"
    return f"P{years}Y{months}M{told.days}DT{signed(hours)}H{signed(minute)}M{told_seconds}S"
