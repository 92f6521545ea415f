"""Rows that go from a captured table through the sink into another one stay as they are."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from connectors.plugins.postgres.sink import PostgresSink
from connectors.runtime.transforms import CLASSES
from connectors.sdk.records import Record
from connectors.sdk.testing import MemorySinkContext, parse_config, run_sink, sink_record
from tests.connectors.plugins.postgres.capture.captures import Capture
from tests.connectors.plugins.postgres.conftest import url_of
from tests.extras import requires

pytestmark = [requires("postgresql"), pytest.mark.slow]
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
SINK = {
    "insert.mode": "upsert",
    "pk.mode": "record_key",
    "table.name.format": "copy",
    "auto.create": "true",
}
# Random bytes as text do not compress, so values are stored beside the row.
FILL = """
    INSERT INTO wide SELECT n, 0, b, convert_to(b, 'UTF8'), ARRAY[b], to_jsonb(b) FROM (
        SELECT n, string_agg(md5(random()::text), '') AS b
        FROM generate_series(1, 3) AS n, generate_series(1, 300) GROUP BY n
    ) AS made
"""


def unwrapped(records: Iterable[Record], **config: str) -> list[Any]:
    told = {key.replace("_", "."): text for key, text in config.items()}
    transform = CLASSES[UNWRAP].make(told)
    rows = [row for record in records if (row := transform(record)) is not None]
    return [
        sink_record(
            row.value,
            topic=row.topic,
            offset=offset,
            key=row.key,
            key_schema=row.key_schema,
            value_schema=row.value_schema,
        )
        for offset, row in enumerate(rows)
    ]


def test_update_keeps_the_large_values_of_the_copy(database: psycopg.Connection[Any]) -> None:
    database.execute(
        "CREATE TABLE wide (id integer PRIMARY KEY, n integer, big text NOT NULL, raw bytea,"
        " list text[], doc jsonb)"
    )
    # In the copy, arrays are JSON unless the table is made by hand.
    database.execute("CREATE TABLE copy (LIKE wide INCLUDING ALL)")
    database.execute(FILL)
    capture = Capture(database, table_include_list="public.wide")
    context = MemorySinkContext(connector="sink")
    with closing(capture.context), closing(context):
        capture.take(3)
        database.execute("UPDATE wide SET n = id + 10 WHERE id < 3")
        capture.take(2)

        parsed = parse_config(
            PostgresSink.definition(), {"connection.url": url_of(database), **SINK}
        )
        written = unwrapped(capture.records)
        for batch in (written[:3], written[3:]):
            run_sink(PostgresSink(), parsed, context, [batch])

    differing = database.execute("(TABLE wide EXCEPT TABLE copy)").fetchall()
    assert [row[:2] for row in differing] == []
    warned = [line for line in capture.context.lines if "REPLICA IDENTITY" in line]
    assert len(warned) == 1
    assert "public.wide: an update that leaves a large value of big, doc, list, raw" in warned[0]


def test_table_that_logs_whole_rows_is_not_warned_about(
    database: psycopg.Connection[Any],
) -> None:
    database.execute("CREATE TABLE wide (id integer PRIMARY KEY, big text)")
    database.execute("CREATE TABLE narrow (id integer PRIMARY KEY, word varchar(9))")
    database.execute("CREATE TABLE parts (id integer PRIMARY KEY, big text) PARTITION BY HASH (id)")
    database.execute(
        "CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0)"
    )
    database.execute("ALTER TABLE wide REPLICA IDENTITY FULL")
    capture = Capture(database, column_exclude_list="public.part.big")

    with closing(capture.context):
        capture.poll()

    assert [line for line in capture.context.lines if "large value" in line] == []


@pytest.mark.parametrize("size", [1, 2, 9])
def test_truncate_empties_the_copy_between_the_rows_around_it(
    database: psycopg.Connection[Any], size: int
) -> None:
    for table in ("orders", "other"):
        database.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY)")
    capture = Capture(database, skipped_operations="none", table_include_list=r"public\.o.*")
    context = MemorySinkContext(connector="sink")
    with closing(capture.context), closing(context):
        capture.poll_until(lambda: bool(capture.context.offsets))
        database.execute("INSERT INTO orders VALUES (1), (2)")
        database.execute("INSERT INTO other VALUES (7)")
        database.execute("TRUNCATE orders, other")
        database.execute("INSERT INTO orders VALUES (2), (3)")
        capture.take(7)

        more = {"table.name.format": "copy_${topic}", "truncate.enabled": "true"}
        written = [
            replace(record, topic=record.topic.rpartition(".")[2])
            for record in unwrapped(capture.records, truncate_handling_mode="keep")
        ]
        parsed = parse_config(
            PostgresSink.definition(), {"connection.url": url_of(database), **SINK, **more}
        )
        batches = [written[begin : begin + size] for begin in range(0, len(written), size)]
        run_sink(PostgresSink(), parsed, context, batches)
        # The same records again change nothing.
        run_sink(PostgresSink(), parsed, context, batches)

    assert database.execute("SELECT id FROM copy_orders ORDER BY 1").fetchall() == [(2,), (3,)]
    assert database.execute("SELECT count(*) FROM copy_other").fetchall() == [(0,)]
    assert context.lines == []


def test_skipped_truncate_is_warned_about_once(database: psycopg.Connection[Any]) -> None:
    database.execute("CREATE TABLE orders (id integer PRIMARY KEY)")
    capture = Capture(database, table_include_list="public.orders")
    context = MemorySinkContext(connector="sink")
    truncation = {"before": None, "after": None, "source": {"table": "orders"}, "op": "t"}
    with closing(capture.context), closing(context):
        capture.poll_until(lambda: bool(capture.context.offsets))
        for _ in range(2):
            database.execute("TRUNCATE orders")
        database.execute("INSERT INTO orders VALUES (1)")
        capture.take(1)

        parsed = parse_config(
            PostgresSink.definition(), {"connection.url": url_of(database), **SINK}
        )
        for offset in range(2):
            run_sink(PostgresSink(), parsed, context, [[sink_record(truncation, offset=offset)]])

    warned = [line for line in capture.context.lines if "TRUNCATE" in line]
    assert len(warned) == 1
    assert "public.orders was emptied by a TRUNCATE" in warned[0]
    assert len(context.lines) == 1
    assert "set truncate.enabled=true" in context.lines[0]
