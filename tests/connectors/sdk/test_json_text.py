"""Values become JSON as Kafka Connect writes it without a schema."""

import base64
import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from connectors.sdk import json_text
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import OPTIONAL_STRING, STRING, Field, Schema, Struct, Type

ROW = Schema(
    type=Type.STRUCT,
    fields=(Field(name="a", schema=STRING), Field(name="b", schema=OPTIONAL_STRING)),
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ('ä\n"', '"ä\\n\\""'),
        (10**30, "1" + "0" * 30),
        (1.5, "1.5"),
        (b"\x00\xff", '"AP8="'),
        ([1, {"a": True}], '[1,{"a":true}]'),
        (Struct(ROW, {"a": "x"}), '{"a":"x","b":null}'),
        (datetime.date(1970, 1, 3), "2"),
        (datetime.date(1969, 12, 31), "-1"),
        (datetime.time(1, 0, 0, 5000), "3600005"),
        (datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC), "1000"),
        (datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=datetime.UTC), "-1000"),
    ],
)
def test_values_become_one_line_of_json(value: Any, text: str) -> None:
    assert json_text.write(value) == text


@pytest.mark.parametrize("number", ["0", "1.27", "-1.28", "128", "-129", "12345678901234567890.12"])
def test_a_decimal_is_its_unscaled_number_as_javas_biginteger_has_it(number: str) -> None:
    value = Decimal(number)

    raw = base64.b64decode(json.loads(json_text.write(value)))

    unscaled = int(number.replace(".", ""))
    assert int.from_bytes(raw, "big", signed=True) == unscaled
    # No byte more than the number and its sign need.
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    assert len(raw) == bits // 8 + 1


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), Decimal("NaN"), object(), {1, 2}, {(1, 2): 3}]
)
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="JSON cannot hold"):
        json_text.write(value)


def test_what_is_nested_without_an_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    with pytest.raises(DataError):
        json_text.write(endless)
