"""Columns whose value the log of the source lacks keep what the target's rows have."""

from dataclasses import replace
from typing import Any

import pytest

from connectors.plugins.postgres.sink import PostgresSink
from connectors.sdk.errors import RecordError
from connectors.sdk.records import SinkRecord
from connectors.sdk.schemas import BYTES, INT32, INT64, OPTIONAL_STRING, Struct
from connectors.sdk.testing import MemorySinkContext, run_sink, sink_record
from tests.builders.connect_values import struct_schema
from tests.connectors.plugins.postgres.sinks import Database, keys, rows
from tests.extras import requires

pytestmark = [requires("postgresql"), pytest.mark.slow]


BIG = struct_schema(
    "big", id=INT64, big=OPTIONAL_STRING, raw=replace(BYTES, is_optional=True), n=INT32
)
GONE = "__debezium_unavailable_value"


def big(number: int, text: str | None, raw: bytes | None, n: int, **more: Any) -> SinkRecord:
    value = Struct(BIG, {"id": number, "big": text, "raw": raw, "n": n})
    return sink_record(value, value_schema=BIG, key=number, key_schema=INT64, **more)


def test_placeholder_leaves_the_columns_of_an_upserted_row_alone(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, big text NOT NULL, raw bytea)")
    database.execute("ALTER TABLE orders ADD n integer")
    parsed = keys(
        database,
        insert_mode="upsert",
        pk_mode="record_key",
        pk_fields="id",
        delete_enabled="true",
    )
    first = [big(1, "a", b"a", 1), big(2, "b", b"b", 1), big(3, "c", b"c", 1)]
    # Each change has columns of its own, 4 is new in the batch, and 3 is deleted and new again.
    second = [
        big(1, GONE, GONE.encode(), 2),
        big(4, "d", b"d", 1),
        big(2, "b2", GONE.encode(), 2),
        big(4, GONE, b"d2", 2),
        big(1, GONE, b"a3", 3),
        sink_record(None, key=3, key_schema=INT64),
        big(3, "c4", GONE.encode(), 4),
        big(4, GONE, GONE.encode(), 3),
    ]
    batches = [
        [replace(record, origin_offset=10 * at + index) for index, record in enumerate(batch)]
        for at, batch in enumerate((first, second))
    ]

    run_sink(PostgresSink(), parsed, context, batches)

    assert rows(database) == [
        (1, "a", b"a3", 3),
        (2, "b2", b"b", 2),
        (3, "c4", None, 4),
        (4, "d", b"d2", 3),
    ]
    assert [line for line in context.lines if "orders: new rows" in line and "raw" in line]


def test_placeholder_is_never_written_where_the_row_is_new(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, big text DEFAULT '?', n integer)")
    database.execute("CREATE TABLE strict (id bigint PRIMARY KEY, big text NOT NULL, n integer)")
    record = sink_record({"id": 1, "big": "gone", "n": 2})
    more = {"unavailable_value_placeholder": "gone", "pk_mode": "record_value", "pk_fields": "id"}

    for mode in ("update", "insert", "upsert"):
        parsed = keys(database, insert_mode=mode, offsets_name=mode, **more)
        run_sink(PostgresSink(), parsed, context, [[record]])

    assert rows(database) == [(1, "?", 2)]
    strict = keys(database, insert_mode="upsert", table_name_format="strict", **more)
    with pytest.raises(RecordError, match='null value in column "big"'):
        run_sink(PostgresSink(), strict, context, [[replace(record, origin_offset=9)]])


def test_placeholder_in_a_key_is_refused(database: Database, context: MemorySinkContext) -> None:
    parsed = keys(database, insert_mode="upsert", pk_mode="record_value", pk_fields="big")

    with pytest.raises(RecordError, match="REPLICA IDENTITY FULL"):
        run_sink(PostgresSink(), parsed, context, [[sink_record({"big": GONE, "n": 1})]])


def test_refused_value_that_a_later_row_takes_over_is_blamed_on_its_own_record(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, big text, raw bytea, n integer)")
    parsed = keys(database, insert_mode="upsert", pk_mode="record_key", pk_fields="id")

    with pytest.raises(RecordError) as caught:
        run_sink(
            PostgresSink(),
            parsed,
            context,
            [[big(1, "n\0", b"", 1), big(1, GONE, b"", 2, offset=1)]],
        )

    assert caught.value.index == 0
