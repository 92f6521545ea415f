"""Numbers as Java has them."""

from decimal import Decimal

import pytest

from connectors.runtime.values.numbers import (
    decimal_bytes,
    decimal_of,
    double_text,
    float32,
    float32_text,
    parse_decimal,
    to_whole,
)
from connectors.sdk.errors import DataError


def test_whole_numbers_wrap_and_floats_saturate() -> None:
    assert to_whole(128, 8) == -128
    assert to_whole(1e10, 32) == 2**31 - 1
    assert to_whole(1e10, 8) == -1
    assert to_whole(float("-inf"), 64) == -(2**63)
    assert to_whole(Decimal("1e999999999"), 64) == 0
    assert to_whole(Decimal(2**64 + 3), 32) == 3


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0.0"), (-0.0, "-0.0"), (1e-3, "0.001"), (1e-4, "1.0E-4"), (9999999.0, "9999999.0")],
)
def test_doubles_are_written_as_java_writes_them(number: float, text: str) -> None:
    assert double_text(number) == text
    assert double_text(float("nan")) == "NaN"


def test_a_short_float_is_written_with_as_many_digits_as_it_needs() -> None:
    assert float32_text(float32(0.1)) == "0.1"
    assert float32_text(float32(1.5e10)) == "1.5E10"
    assert float32(1e300) == float("inf")


def test_decimals_are_their_unscaled_value_in_as_few_bytes_as_it_takes() -> None:
    assert decimal_bytes(Decimal("-1.28"), 2) == b"\x80"
    assert decimal_of(b"\x80", 2) == Decimal("-1.28")
    with pytest.raises(DataError, match="no bytes"):
        decimal_of(b"", 2)
    with pytest.raises(DataError, match="a decimal of 100000 bytes"):
        decimal_of(bytes(100_000), 2)


@pytest.mark.parametrize("text", ["", " 1", "1_0", "NaN", "1e9999999999", "1" * 1001])
def test_what_java_reads_as_no_number_is_none(text: str) -> None:
    with pytest.raises(DataError):
        parse_decimal(text)
