"""How stretches of time are written."""

import pytest

from console.durations import at_least, between, span


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (0, "0 s"),
        (0.42, "0.4 s"),
        (9.96, "10 s"),
        (12.7, "12 s"),
        (60, "1 min"),
        (250, "4 min 10 s"),
        (659, "10 min"),
        (3_600 + 59, "1 h"),
        (7_320, "2 h 2 min"),
        (6 * 86_400 + 23 * 3_600, "6 d 23 h"),
        (40 * 86_400, "40 d"),
        (1e300, "10000 d"),
    ],
)
def test_a_span_is_told_by_its_two_largest_units(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("low_s", "high_s", "words"),
    [
        (0, 0, "0 s"),
        (30, 30, "30 s"),
        (240, 539, "4–9 min"),
        (50, 170, "50 s – 3 min"),
        (119, 121, "119 s – 3 min"),
        (3 * 3_600, 5.5 * 3_600, "3–6 h"),
        (40_000, 10 * 86_400, "11 h – 10 d"),
    ],
)
def test_a_range_holds_both_of_its_ends(low_s: float, high_s: float, words: str) -> None:
    assert between(low_s, high_s) == words


def test_a_range_without_an_end_is_told_by_its_beginning() -> None:
    assert at_least(299) == "4 min"
