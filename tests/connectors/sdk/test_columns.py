"""Values of a schema go into a table and come back the same."""

import datetime
from decimal import Decimal
from typing import Any

import pytest

from connectors.sdk import columns
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import (
    BYTES,
    DATE,
    DECIMAL,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Struct,
    Type,
)
from connectors.sdk.testing import sink_record
from tests.extras import requires

pytestmark = requires("pyarrow")

INNER = Schema(
    type=Type.STRUCT, is_optional=True, fields=(Field(name="x", schema=Schema(type=Type.INT8)),)
)
OPTIONAL_INT32 = Schema(type=Type.INT32, is_optional=True)
# name of a field: (its schema, a value)
FIELDS: dict[str, tuple[Schema, Any]] = {
    "tiny": (Schema(type=Type.INT8), -128),
    "small": (Schema(type=Type.INT16), 32767),
    "number": (INT32, -(2**31)),
    "large": (INT64, 2**63 - 1),
    "single": (Schema(type=Type.FLOAT32), 0.5),
    "real": (Schema(type=Type.FLOAT64), 0.1),
    "flag": (Schema(type=Type.BOOLEAN), True),
    "text": (STRING, "ä\x00"),
    "raw": (BYTES, b"\x00\xff"),
    "maybe": (OPTIONAL_INT32, None),
    "list": (Schema(type=Type.ARRAY, value_schema=OPTIONAL_INT32), [1, None]),
    "map": (Schema(type=Type.MAP, key_schema=STRING, value_schema=OPTIONAL_INT32), {"a": 1}),
    "inner": (INNER, Struct(INNER, {"x": 5})),
    "price": (
        Schema(type=Type.BYTES, name=DECIMAL, parameters={"scale": "2"}),
        Decimal("-12.30"),
    ),
    "day": (Schema(type=Type.INT32, name=DATE), datetime.date(2026, 11, 19)),
    "hour": (Schema(type=Type.INT32, name=TIME), datetime.time(1, 2, 3, 4000)),
    "at": (
        Schema(type=Type.INT64, name=TIMESTAMP),
        datetime.datetime(2026, 11, 19, 1, 2, 3, 4000, tzinfo=datetime.UTC),
    ),
}
SCHEMA = Schema(
    type=Type.STRUCT,
    fields=tuple(Field(name=name, schema=schema) for name, (schema, _) in FIELDS.items()),
)
VALUES = {name: value for name, (_, value) in FIELDS.items()}


def test_a_value_of_every_type_comes_back_as_it_was() -> None:
    table = columns.to_table(SCHEMA, [Struct(SCHEMA, VALUES)] * 3)
    schema, rows = columns.from_table(table)

    assert table.num_rows == 3
    assert [(field.name, field.schema) for field in schema.fields] == [
        (field.name, field.schema) for field in SCHEMA.fields
    ]
    assert [row.values for row in rows] == [VALUES] * 3


def test_a_batch_of_records_becomes_a_table() -> None:
    schema = Schema(type=Type.STRUCT, fields=(Field(name="id", schema=INT64),))
    batch = [sink_record(Struct(schema, {"id": n}), value_schema=schema) for n in range(3)]

    assert columns.table_of(batch).to_pydict() == {"id": [0, 1, 2]}


def test_records_of_several_schemas_are_no_table() -> None:
    schema = Schema(type=Type.STRUCT, fields=(Field(name="id", schema=INT64),))
    batch = [sink_record(Struct(schema, {"id": 1}), value_schema=schema), sink_record({"id": 1})]

    with pytest.raises(DataError, match="one schema"):
        columns.table_of(batch)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tiny", 128),
        ("number", "text"),
        ("text", None),
        ("list", [1, "x"]),
        ("inner", Struct(INNER, {"x": None})),
        ("inner", {"x": 1}),
        ("price", Decimal("1e40")),
    ],
)
def test_a_value_that_does_not_fit_its_column_is_refused(name: str, value: Any) -> None:
    with pytest.raises(DataError):
        columns.to_table(SCHEMA, [Struct(SCHEMA, {**VALUES, name: value})])
