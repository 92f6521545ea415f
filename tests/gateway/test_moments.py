"""Moments as users type them, also in the night when clocks change."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from gateway import moments
from tests.builders.messages import NOW

BERLIN = ZoneInfo("Europe/Berlin")


def read(text: str, zone: str = "UTC") -> list[str]:
    found = moments.read(text, zone=ZoneInfo(zone), now=NOW)
    assert all(moment.tzinfo is UTC for moment in found)
    return [moments.instant(moment) for moment in found]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("-1h", "2026-11-19T11:00:00Z"),
        ("now-1h30m", "2026-11-19T10:30:00Z"),
        ("15 min ago", "2026-11-19T11:45:00Z"),
        ("1h ago", "2026-11-19T11:00:00Z"),
        ("-2 days 3 hours", "2026-11-17T09:00:00Z"),
        ("1 week ago", "2026-11-12T12:00:00Z"),
        ("now", "2026-11-19T12:00:00Z"),
        ("today", "2026-11-18T23:00:00Z"),
        ("Yesterday 12:00", "2026-11-18T11:00:00Z"),
        ("yesterday at 9:05:01.25", "2026-11-18T08:05:01.250Z"),
        ("12:00", "2026-11-19T11:00:00Z"),
        ("12:00 UTC", "2026-11-19T12:00:00Z"),
        ("12:00-05:00", "2026-11-19T17:00:00Z"),
        ("19.11.2026 12:00", "2026-11-19T11:00:00Z"),
        ("1.2.2026", "2026-01-31T23:00:00Z"),
        ("2026-11-19", "2026-11-18T23:00:00Z"),
        ("2026-11-19 12:00:30.123", "2026-11-19T11:00:30.123Z"),
        ("2026-11-19T12:00Z", "2026-11-19T12:00:00Z"),
        ("2026-11-19 10:12:33 UTC", "2026-11-19T10:12:33Z"),
        ("20261119T120000+0100", "2026-11-19T11:00:00Z"),
        ("1795089600123", "2026-11-19T12:00:00.123Z"),
        ("  -1h ", "2026-11-19T11:00:00Z"),
    ],
)
def test_a_moment_is_read_in_every_form_in_which_people_write_it(text: str, instant: str) -> None:
    assert read(text, "Europe/Berlin") == [instant]


@pytest.mark.parametrize(
    ("zone", "text", "clocks"),
    [
        ("UTC", "2026-01-31T12:00", ["12:00"]),
        ("Europe/Berlin", "2026-10-25T02:30", ["00:30", "01:30"]),
        ("Europe/Berlin", "25.10.2026 02:30", ["00:30", "01:30"]),
        ("America/New_York", "2026-10-24T20:30", ["00:30"]),
        ("America/New_York", "2026-11-01T01:30", ["05:30", "06:30"]),
        ("Europe/Berlin", "2026-03-29T02:30", []),
        ("Europe/Berlin", "2026-10-25T02:30+02:00", ["00:30"]),
        # A day begins with its first moment, also where clocks go from 00:00 to 01:00.
        ("Africa/Cairo", "2026-04-24", ["22:00"]),
        ("Africa/Cairo", "2026-04-24 00:00", []),
    ],
)
def test_a_clock_time_means_one_moment_or_two_or_none(
    zone: str, text: str, clocks: list[str]
) -> None:
    assert [instant[11:16] for instant in read(text, zone)] == clocks


@pytest.mark.parametrize(
    "text",
    [
        *("", "noon", "1h", "-1x", "25:00", "12:60", "31.2.2026", "2026-02-30T00:00", "9" * 19),
        *("0001-01-01T00:00", "0001-01-01T00:00+05:00", "9999-12-31T23:59-05:00", "-999999999w"),
        *("1" * 40, "11/19/2026", "tomorrow", "12:00 CET", "-" + "1h" * 40),
    ],
)
def test_a_text_that_is_no_moment_is_refused_with_forms_that_are(text: str) -> None:
    with pytest.raises(moments.NotAMoment, match=r"not a time|no time is given") as caught:
        moments.read(text, zone=ZoneInfo("Asia/Tokyo"), now=NOW)

    assert not text or repr(text[:60]) in caught.value.message
    for form in ("-15m", "2 days ago", "12:00", "yesterday 12:00", "31.01.2026 12:00"):
        assert form in caught.value.next_step
        assert len(read(form)) == 1


@pytest.mark.parametrize(
    ("text", "how", "offsets"),
    [
        ("2026-10-25T02:30", "occurs twice", ("+02:00", "+01:00")),
        ("29.03.2026 02:30:15", "does not occur", ("+01:00", "+02:00")),
    ],
)
def test_a_clock_time_that_occurs_twice_or_never_is_refused_with_both_offsets(
    text: str, how: str, offsets: tuple[str, str]
) -> None:
    with pytest.raises(moments.NotAMoment) as caught:
        moments.one(text, zone=BERLIN, now=NOW)

    assert f"{how} in Europe/Berlin" in caught.value.message
    proposed = [word for word in caught.value.next_step.split() if word.endswith(offsets)]
    first, second = (moments.milliseconds(each, zone=BERLIN, now=NOW) for each in proposed)
    assert abs(second - first) == 3_600_000


def test_milliseconds_are_not_before_1970_and_have_no_calendar() -> None:
    last = moments.at(253_402_300_799_000)
    assert moments.written(last, BERLIN) == moments.instant(last) == "9999-12-31T23:59:59Z"
    assert moments.milliseconds("1900-01-01", zone=UTC, now=NOW) == 0
    assert moments.milliseconds(str(10**19 - 1), zone=UTC, now=NOW) == 2**63 - 1
    assert moments.absolute(str(10**19 - 1), zone=UTC, now=NOW) == str(10**19 - 1)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("hour", [0, 1])
def test_what_a_field_shows_is_read_as_the_same_moment(zone: str, hour: int) -> None:
    moment = datetime(2026, 10, 25, hour, 30, 0, 123_000, tzinfo=UTC)

    text = moments.written(moment, ZoneInfo(zone))

    assert moments.one(text, zone=ZoneInfo(zone), now=NOW) == moment
    assert moments.one(moments.instant(moment), zone=ZoneInfo(zone), now=NOW) == moment
