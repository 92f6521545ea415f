"""Texts of headers, and the values they stand for."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from connectors.runtime.values.literals import parse
from connectors.sdk.schemas import DATE, STRING, Type


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("", Type.STRING, ""),
        ("7", Type.INT8, 7),
        ("-129", Type.INT16, -129),
        ("1e3", Type.INT16, 1000),
        ("70000", Type.INT32, 70000),
        ("1.5", Type.FLOAT32, 1.5),
        ("1e300", Type.FLOAT64, 1e300),
        ("99999999999999999999", Type.BYTES, Decimal(99999999999999999999)),
        ("true", Type.BOOLEAN, True),
        ("true}", Type.STRING, "true}"),
        ("2024-02-29", Type.INT32, date(2024, 2, 29)),
        ("99:99:99.999Z", Type.STRING, "99:99:99.999Z"),
        ("[1,2.5]", Type.ARRAY, [1.0, 2.5]),
        ('{"a":[1],"b":[]}', Type.MAP, {"a": [1], "b": []}),
        ("10:20", Type.STRING, "10:20"),
        ("[1]x", Type.STRING, "[1]x"),
        ("2024-1-29x", Type.STRING, "2024-1-29x"),
        ("\x00", Type.STRING, "\x00"),
        ("[1,", Type.STRING, "[1,"),
        ("1" * 2000, Type.STRING, "1" * 2000),
    ],
)
def test_a_text_is_read_as_the_smallest_type_that_holds_it(
    text: str, kind: Type, value: Any
) -> None:
    schema, found = parse(text)

    assert schema is not None
    assert schema.type is kind
    assert found == value


def test_null_has_neither_schema_nor_value() -> None:
    assert parse("null") == (None, None)


def test_a_quoted_date_is_a_date_and_any_other_quoted_text_a_text() -> None:
    schema, values = parse('["2024-02-29"]')

    assert schema is not None
    assert schema.value_schema is not None
    assert schema.value_schema.name == DATE
    assert values == [date(2024, 2, 29)]
    assert parse('["7"]')[0] == parse('["x"]')[0]
    assert parse("2024") != (STRING, "2024")
