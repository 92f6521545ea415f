"""Moments in words, also in the night when clocks change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django import forms
from django.utils import timezone

from console import times

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)
# Clocks go back at 01:00 UTC, from 03:00 to 02:00.
FIRST = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
SECOND = FIRST + timedelta(hours=1)


def test_the_two_half_past_twos_of_one_night_are_told_apart() -> None:
    with timezone.override(BERLIN):
        assert [times.clock(at) for at in (FIRST, SECOND)] == ["02:30:00+0200", "02:30:00+0100"]
        assert times.exact(FIRST) == "2026-10-25 02:30:00+02:00"
        assert times.exact(SECOND) == "2026-10-25 02:30:00+01:00"
        assert times.title(SECOND) == (
            "2026-10-25 02:30:00+01:00 Europe/Berlin · 2026-10-25 01:30:00 UTC"
        )


def test_an_hour_before_and_after_that_night_needs_no_offset() -> None:
    with timezone.override(BERLIN):
        assert times.clock(FIRST - timedelta(hours=1)) == "01:30:00"
        assert times.clock(SECOND + timedelta(hours=1)) == "03:30:00"


@pytest.mark.parametrize("typed", ["2026-10-25 02:30:00", "2026-03-29 02:30:00"])
def test_a_form_refuses_a_time_that_occurs_twice_or_never(typed: str) -> None:
    with timezone.override(BERLIN), pytest.raises(forms.ValidationError, match="Europe/Berlin"):
        forms.DateTimeField().clean(typed)


def test_the_same_moment_typed_in_either_zone_is_the_same() -> None:
    with timezone.override(BERLIN):
        local = forms.DateTimeField().clean("2026-11-19 13:00:00")
    with timezone.override(UTC):
        utc = forms.DateTimeField().clean("2026-11-19 12:00:00")

    assert local == utc == NOON


def test_an_exact_time_that_was_shown_can_be_typed_again() -> None:
    with timezone.override(BERLIN):
        assert forms.DateTimeField().clean(times.exact(SECOND)) == SECOND


def test_an_export_has_the_zone_of_the_pages_and_the_same_moment() -> None:
    with timezone.override(BERLIN):
        text = times.exported(NOON)

    assert text == "2026-11-19T13:00:00+01:00"
    assert datetime.fromisoformat(text) == NOON


def test_today_depends_on_the_zone() -> None:
    late = datetime(2026, 11, 18, 23, 30, tzinfo=UTC)

    with timezone.override(UTC):
        assert times.short(late, NOON) == "18 Nov"
    with timezone.override(BERLIN):
        assert times.short(late, NOON) == "00:30:00"
    with timezone.override(UTC):
        assert times.short(late - timedelta(days=700), NOON) == "2024-12-18"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "now"),
        (-1, "now"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3_599, "59 min ago"),
        (7_200, "2 h ago"),
        (200_000, "2 d ago"),
        (-90, "in 1 min"),
    ],
)
def test_how_long_ago_is_told_in_the_largest_unit_that_fits(seconds: int, text: str) -> None:
    assert times.ago(NOON - timedelta(seconds=seconds), NOON) == text
