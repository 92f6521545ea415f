"""What converters and transforms of connectors cost for each record; shown, not judged."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import pytest

from connectors.runtime import chain, converters
from connectors.sdk.schemas import INT32, INT64, OPTIONAL_STRING, STRING, Schema, Type
from connectors.sdk.testing import sink_record
from tests.builders.connect_values import (
    decimal_schema,
    schema,
    struct,
    struct_schema,
    timestamp_schema,
)
from tests.scale import count

pytestmark = [pytest.mark.alone, pytest.mark.slow]

RECORDS: Final = count(2_000, 5_000, long=100_000)
LINE: Final = struct_schema("line", sku=STRING, count=INT32)
ORDER: Final = struct_schema(
    "order",
    id=INT64,
    customer=INT32,
    who=STRING,
    note=OPTIONAL_STRING,
    price=decimal_schema(2),
    when=timestamp_schema(),
    paid=schema(Type.BOOLEAN),
    lines=Schema(type=Type.ARRAY, value_schema=LINE),
    weight=schema(Type.FLOAT64),
    country=STRING,
)
VALUE: Final = struct(
    ORDER,
    id=12345678901,
    customer=42,
    who="Ada Lovelace",
    price=Decimal("199.90"),
    when=datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
    paid=True,
    lines=[struct(LINE, sku="A-1", count=2), struct(LINE, sku="B-2", count=1)],
    weight=1.25,
    country="AT",
)
TRANSFORMS: Final = {
    "transforms": "a,b,c",
    "transforms.a.type": "ReplaceField$Value",
    "transforms.a.exclude": "note",
    "transforms.b.type": "InsertField$Value",
    "transforms.b.topic.field": "topic",
    "transforms.b.timestamp.field": "ts",
    "transforms.c.type": "Cast$Value",
    "transforms.c.spec": "id:string",
}


def test_the_cost_of_a_record_is_shown(report: Callable[[str], None]) -> None:
    full = converters.make("JsonConverter", {}, is_key=False)
    plain = converters.make("JsonConverter", {"schemas.enable": "false"}, is_key=False)
    written, bare = full.from_value("t", ORDER, VALUE), plain.from_value("t", ORDER, VALUE)
    bare_value = plain.to_value("t", bare)[1]
    transforms = chain.make(TRANSFORMS)
    record = sink_record(VALUE, value_schema=ORDER, timestamp_ms=1)
    steps: dict[str, Callable[[], Any]] = {
        "JSON with schema, read": lambda: full.to_value("t", written),
        "JSON with schema, written": lambda: full.from_value("t", ORDER, VALUE),
        "JSON without schema, read": lambda: plain.to_value("t", bare),
        "JSON without schema, written": lambda: plain.from_value("t", None, bare_value),
        "three transforms, with schema": lambda: transforms.apply(record),
    }

    for name, step in steps.items():
        assert step() is not None
        began = time.process_time()
        for _ in range(RECORDS):
            step()
        report(f"{name}: {RECORDS / (time.process_time() - began):,.0f} records/s per core")
