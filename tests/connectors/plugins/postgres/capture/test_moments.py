"""Dates and times beyond those that Python's classes hold."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.plugins.postgres.capture import moments

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.dates())
def test_dates_are_those_of_python(day: date) -> None:
    days = (day - EPOCH.date()).days

    assert moments.days_of(day.isoformat()) == days
    assert moments.iso_date(days) == day.isoformat()


@given(st.integers(-4_000_000, 200_000_000))
def test_every_day_has_one_date(days: int) -> None:
    written = moments.iso_date(days)

    year = int(written[:-6])
    told = f"{1 - year if year < 1 else year:04d}{written[-6:]}{' BC' if year < 1 else ''}"
    assert moments.days_of(told) == days


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))  # noqa: DTZ001
def test_timestamps_are_those_of_python(when: datetime) -> None:
    told = when.replace(tzinfo=UTC)
    micros = (told - EPOCH) // timedelta(microseconds=1)

    assert moments.micros_of(when.isoformat(" ")) == micros
    assert moments.micros_of(when.isoformat(" ") + "+05:30") == micros - 19_800_000_000
    assert moments.iso_timestamp(micros, digits=6) == when.isoformat("T", "microseconds") + "Z"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0044-03-15 12:00:00 BC", "-0043-03-15T12:00:00Z"),
        ("20000-01-01 00:00:00.5", "+20000-01-01T00:00:00.5Z"),
        ("2024-01-02 03:04:05.120+02", "2024-01-02T01:04:05.12Z"),
    ],
)
def test_a_timestamp_is_written_as_java_writes_it(text: str, written: str) -> None:
    assert moments.iso_timestamp(moments.micros_of(text)) == written


def test_a_time_with_a_zone_is_told_in_utc_with_its_digits() -> None:
    assert moments.utc_of_day("03:04:05.12-05:30") == (30_845_120_000, 2)
    assert moments.utc_of_day("01:00:00+02") == (82_800_000_000, 0)


def test_the_end_of_a_day_is_a_time_too() -> None:
    assert moments.micros_of_day("24:00:00") == moments.DAY


@pytest.mark.parametrize("text", ["Jan 2 2024", "02.01.2024", "2024-01-02T03:04:05", ""])
def test_another_style_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ISO style"):
        moments.micros_of(text)
    with pytest.raises(ValueError, match="ISO style"):
        moments.days_of(text)
