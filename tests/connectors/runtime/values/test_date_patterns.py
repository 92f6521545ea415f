"""Patterns of dates, written and read."""

import pytest

from connectors.runtime.values.date_patterns import Pattern
from connectors.sdk.errors import ConfigError, DataError

WHEN = 1_700_000_000_123  # 2023-11-14T22:13:20.123Z, a Tuesday


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2023-11-14T22:13:20.123Z"),
        ("EEE, d MMM yyyy HH:mm:ss Z", "Tue, 14 Nov 2023 22:13:20 +0000"),
        ("EEEE MMMM", "Tuesday November"),
        ("yy/M/d h:m a", "23/11/14 10:13 PM"),
        ("DDD u F k K", "318 2 2 22 10"),
        ("''yyyy'o''clock'", "'2023o'clock"),
        ("G z zzzz", "AD UTC Coordinated Universal Time"),
        ("yyyyyy S", "002023 123"),
    ],
)
def test_a_timestamp_is_written_by_its_pattern(pattern: str, text: str) -> None:
    assert Pattern(pattern).format(WHEN) == text


@pytest.mark.parametrize(
    ("pattern", "text", "millis"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2023-11-14T22:13:20.123Z", WHEN),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2023-11-15T00:13:20.123+02", WHEN),
        ("yyyyMMddHHmmss", "20231114221320", WHEN - 123),
        ("yyyy-MM-dd", "2023-13-01 and more", 1_704_067_200_000),
        ("dd MMM yy", "14 nov 23", 1_699_920_000_000),
        ("yy", "70", 0),
        ("hh a", "12 AM", 0),
        ("HH:mm z", "01:00 GMT+1:00", 0),
    ],
)
def test_a_text_is_read_leniently(pattern: str, text: str, millis: int) -> None:
    assert Pattern(pattern).parse(text) == millis


def test_a_text_that_does_not_match_is_refused_with_the_pattern() -> None:
    with pytest.raises(DataError, match="'x' does not match the date pattern 'yyyy'"):
        Pattern("yyyy").parse("x")
    with pytest.raises(DataError, match="year 99999 is outside"):
        Pattern("yyyy").parse("99999")


@pytest.mark.parametrize("pattern", ["b", "YYYY", "ww", "'open", "XXXX", "y" * 1000])
def test_a_bad_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        Pattern(pattern)
