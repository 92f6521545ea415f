"""How sizes, rates and counts are written."""

import pytest

from console import quantities


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1024**3 - 1, "1 GiB"),
        (1.44 * 1024**3, "1.4 GiB"),
        (120 * 1024**4, "120 TiB"),
        (None, "–"),
    ],
)
def test_bytes_have_the_largest_binary_unit_that_fits(value: float | None, text: str) -> None:
    assert quantities.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0/s"), (0.3, "0.3/s"), (18_234, "18.2 k/s"), (999.9, "1 k/s"), (None, "–")],
)
def test_rates_have_three_digits(value: float | None, text: str) -> None:
    assert quantities.rate(value) == text


def test_a_rate_of_bytes_is_a_size_each_second() -> None:
    assert quantities.bytes_rate(2048) == "2 KiB/s"
    assert quantities.bytes_rate(None) == "–"


def test_counts_are_exact() -> None:
    assert quantities.count(1_204_551) == "1,204,551"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0%"),
        (0.00001, "under 0.01%"),
        (0.0007, "0.07%"),
        (0.37, "37%"),
        (0.9993, "over 99%"),
        (1.0, "100%"),
        (None, "–"),
    ],
)
def test_shares_are_rounded_neither_to_nothing_nor_to_all(value: float | None, text: str) -> None:
    assert quantities.share(value) == text
