"""Converts dates, times and timestamps between Python's values and whole numbers.

A timestamp is an aware `datetime`, in milliseconds since 1970 as everywhere in Kafka; finer digits
are cut off. Years before 1 and after 9999, which Java has, are refused.
"""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from connectors.sdk.errors import DataError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DATE: Final = date(1970, 1, 1)
MILLISECOND: Final = timedelta(milliseconds=1)
MILLIS_PER_DAY: Final = 24 * 60 * 60 * 1000

Temporal = date | time | datetime


def millis_of(value: Temporal) -> int:
    """Return milliseconds since 1970, or since midnight for a time."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise DataError(
                f"timestamp {value} has no time zone: make it aware, as with tzinfo=UTC"
            )
        return (value - EPOCH) // MILLISECOND
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * 1000 + value.microsecond // 1000
    return days_of(value) * MILLIS_PER_DAY


def timestamp_of(millis: int) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=millis)
    except OverflowError as error:
        raise DataError(
            f"timestamp {millis} is outside of the years 1 to 9999: is its unit milliseconds?"
        ) from error


def days_of(value: date) -> int:
    """Return days since 1970; DataError for a timestamp that is not at midnight."""
    if isinstance(value, datetime):
        days, rest = divmod(millis_of(value), MILLIS_PER_DAY)
        if rest:
            raise DataError(f"a date cannot hold the time of day of {value}")
        return days
    return (value - EPOCH_DATE).days


def date_of(days: int) -> date:
    try:
        return EPOCH_DATE + timedelta(days=days)
    except OverflowError as error:
        raise DataError(
            f"date {days} is outside of the years 1 to 9999: is its unit days since 1970?"
        ) from error


def time_of(millis: int) -> time:
    if not 0 <= millis < MILLIS_PER_DAY:
        raise DataError(f"time {millis} is not a millisecond of a day, 0 to {MILLIS_PER_DAY - 1}")
    return (EPOCH + timedelta(milliseconds=millis)).time()


def iso_text(value: Temporal) -> str:
    """Return Java's text for headers, and for a cast to string.

    A timestamp at midnight is written as a date. Java writes any value before 1970-01-02 as a time
    of day, which loses the day; this function does so only for times.
    """
    if isinstance(value, time):
        return time_text(millis_of(value))
    millis = millis_of(value)
    days, rest = divmod(millis, MILLIS_PER_DAY)
    day = date_of(days).isoformat()
    is_day = not rest and (not isinstance(value, datetime) or days > 0)
    return day if is_day else f"{day}T{time_text(rest)}"


def time_text(millis: int) -> str:
    seconds, millis = divmod(millis, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z"
