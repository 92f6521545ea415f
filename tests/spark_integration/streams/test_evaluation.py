"""Expressions answer as SQL does, and nothing instead of an error."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_integration.streams.evaluation import (
    OF_VALUES,
    WITH_NULLS,
    evaluate,
    time_of_text,
)
from spark_integration.streams.expressions import (
    LONGS,
    Expression,
    as_double,
    as_long,
    as_text,
    choose,
    coalesce,
    contains,
    field,
    hour,
    is_null,
    lower,
    millis,
    substring,
    text_of,
    time_of_millis,
    trim,
    truncate,
    upper,
)
from spark_integration.streams.operators import SIGNATURES, Operator

A, B = field("a"), field("b")
TWO_HOURS = 7_200_000_000
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)


def test_every_operator_is_known_to_all_tables() -> None:
    assert set(SIGNATURES) == set(Operator)
    assert set(OF_VALUES) | set(WITH_NULLS) == set(Operator)
    assert set(OF_VALUES) & set(WITH_NULLS) == set()


@pytest.mark.parametrize(
    ("expression", "row", "answer"),
    [
        (A + B, {"a": 2**63 - 1, "b": 1}, None),
        (A - B, {"a": -(2**63), "b": 1}, None),
        (A * B, {"a": 1e300, "b": 1e300}, None),
        (A / B, {"a": 1, "b": 2}, 0.5),
        (A / B, {"a": 1, "b": 0}, None),
        (A / B, {"a": 1.0, "b": -0.0}, None),
        (A % B, {"a": -7, "b": 2}, -1),
        (A % B, {"a": 7, "b": -2}, 1),
        (A % B, {"a": 7, "b": 0}, None),
        (A == B, {"a": 2**53 + 1, "b": float(2**53)}, True),
        (A == B, {"a": None, "b": 1}, None),
        (A < B, {"a": "ﬀ", "b": "😀"}, True),
        (is_null(A), {"a": None}, True),
        (coalesce(A, B), {"a": None, "b": 3}, 3),
        (choose(A, 1, 2), {"a": None}, 2),
        (lower(A), {"a": "ÄBC"}, "Äbc"),
        (upper(A), {"a": "straße"}, "STRAßE"),
        (trim(A), {"a": " \ta "}, "\ta"),
        (substring(A, start=1, count=2), {"a": "a😀bc"}, "😀b"),
        (contains(A, ""), {"a": ""}, True),
        (as_text(A), {"a": b"\xff"}, None),
        (as_text(A), {"a": True}, "true"),
        (as_long(A), {"a": " 1"}, None),
        (as_long(A), {"a": "9223372036854775808"}, None),
        (as_long(A), {"a": -1.9}, -1),
        (as_long(A), {"a": 2.0**63}, None),
        (as_double(A), {"a": "1e999"}, None),
        (as_double(A), {"a": "NaN"}, None),
        (millis(A), {"a": -1}, -1),
        (time_of_millis(A), {"a": 2**62}, None),
        (truncate(A, "1h"), {"a": TWO_HOURS + 1}, TWO_HOURS),
        (hour(A), {"a": -1}, 23),
    ],
    ids=lambda value: text_of(value) if isinstance(value, Expression) else None,
)
def test_an_answer_is_the_one_of_sql(expression: Expression, row: Any, answer: Any) -> None:
    assert evaluate(expression, row) == answer


@given(a=NUMBERS, b=NUMBERS)
def test_a_number_is_of_64_bits_or_absent(a: float, b: float) -> None:
    for expression in (A + B, A - B, A * B, A / B):
        answer = evaluate(expression, {"a": a, "b": b})
        if isinstance(answer, int):
            assert answer in LONGS
        elif answer is not None:
            assert math.isfinite(answer)


@given(a=st.none() | st.booleans(), b=st.none() | st.booleans())
def test_the_logic_of_three_values_keeps_the_rules_of_de_morgan(
    a: bool | None, b: bool | None
) -> None:
    row = {"a": a, "b": b}

    assert evaluate(~(A & B), row) == evaluate(~A | ~B, row)
    assert evaluate(~(A | B), row) == evaluate(~A & ~B, row)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00.5+01:00", 500_000),
        ("2026-02-28T23:59:59.000001Z", 1_772_323_199_000_001),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        ("2026-02-30T00:00:00Z", None),
        ("2026-02-28T24:00:00Z", None),
        ("0000-01-01T00:00:00Z", None),
        ("2026-02-28 00:00:00Z", None),
        ("2026-02-28T00:00:00", None),
        ("2026-02-28T00:00:00+18:30", None),
        ("2026-02-28", None),
    ],
)
def test_a_time_is_a_text_with_its_offset(text: str, micros: int | None) -> None:
    assert time_of_text(text) == micros
