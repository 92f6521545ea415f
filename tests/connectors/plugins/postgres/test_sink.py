"""Records become rows, each once, in tables that are there or are made."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from connectors.plugins.postgres.connection import is_about_data
from connectors.plugins.postgres.sink import PostgresSink
from connectors.sdk.errors import ConnectorError, RecordError, RetriableError
from connectors.sdk.records import RecordPlace, SinkRecord, TopicPartition
from connectors.sdk.schemas import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Struct,
    Type,
)
from connectors.sdk.testing import MemorySinkContext, run_sink, sink_record
from tests.connectors.plugins.postgres.sinks import Database, keys, rows, started
from tests.extras import requires

pytestmark = [requires("postgresql"), pytest.mark.slow]

ORDERS = TopicPartition(topic="orders", partition=0)
Run = Callable[..., None]


def struct_of(name: str, /, **fields: Schema) -> Schema:
    return Schema(
        type=Type.STRUCT,
        name=name,
        fields=tuple(Field(name=field, schema=schema) for field, schema in fields.items()),
    )


PERSON = struct_of("person", id=INT64, name=OPTIONAL_STRING)


def person(number: int, name: str | None, *, offset: int | None = None, **more: Any) -> SinkRecord:
    value = Struct(PERSON, {"id": number, "name": name})
    at = number if offset is None else offset
    return sink_record(value, offset=at, value_schema=PERSON, **more)


def test_rows_are_inserted_into_a_table_that_is_made(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database, auto_create="true", pk_mode="record_value", pk_fields="id")

    run_sink(PostgresSink(), parsed, context, [[person(1, "a"), person(2, None)]])

    assert rows(database) == [(1, "a"), (2, None)]
    with pytest.raises(psycopg.errors.UniqueViolation):
        database.execute("INSERT INTO orders VALUES (1)")


def test_every_type_of_a_schema_has_a_column(
    database: Database, context: MemorySinkContext
) -> None:
    schema = struct_of(
        "all",
        i=INT32,
        f=FLOAT64,
        b=BOOLEAN,
        s=STRING,
        raw=BYTES,
        price=Schema(type=Type.BYTES, name=DECIMAL, parameters={"scale": "2"}),
        day=Schema(type=Type.INT32, name=DATE),
        clock=Schema(type=Type.INT32, name=TIME),
        at=Schema(type=Type.INT64, name=TIMESTAMP),
        list=Schema(type=Type.ARRAY, value_schema=INT32),
        inner=PERSON,
    )
    at = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    values = (5, 0.5, True, "ü\t\\N", b"\0\xff", Decimal("1.50"), date(2026, 1, 2), time(3, 4), at)
    more: tuple[Any, ...] = ([1, 2], Struct(PERSON, {"id": 1, "name": "x"}))
    names = [field.name for field in schema.fields]
    value = Struct(schema, dict(zip(names, values + more, strict=True)))

    run_sink(
        PostgresSink(),
        keys(database, auto_create="true"),
        context,
        [[sink_record(value, value_schema=schema)]],
    )

    assert rows(database) == [(*values, [1, 2], {"id": 1, "name": "x"})]


def test_columns_with_types_of_their_own_take_what_fits(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute(
        "CREATE TABLE orders (id numeric, tags text[], data jsonb, at timestamp, more text)"
    )
    value = {
        "id": "12.5",
        "tags": ["a", 'b"c', None],
        "data": {"x": [1]},
        "at": "2026-01-02T03:04:05Z",
        "more": 7,
    }

    run_sink(PostgresSink(), keys(database), context, [[sink_record(value)]])

    assert rows(database) == [
        (
            Decimal("12.5"),
            ["a", 'b"c', None],
            {"x": [1]},
            datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001 - as the column has it
            "7",
        )
    ]


def test_an_upsert_keeps_the_last_of_each_key_and_deletes_with_no_value(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(
        database,
        auto_create="true",
        insert_mode="upsert",
        pk_mode="record_key",
        pk_fields="id",
        delete_enabled="true",
    )
    steps = [(1, "a"), (2, "b"), (1, "c"), (2, None), (3, "d"), (4, None), (3, None), (3, "e")]
    batch = [
        person(number, name, offset=offset, key=number, key_schema=INT64)
        if name
        else sink_record(None, offset=offset, key=number, key_schema=INT64)
        for offset, (number, name) in enumerate(steps)
    ]

    for cut in (3, 8):
        run_sink(PostgresSink(), parsed, context, [batch[:cut]])

    assert rows(database) == [(1, "c"), (3, "e")]


@pytest.mark.parametrize(
    ("mode", "left"), [("upsert", [(1, "b", None), (2, "x", None)]), ("update", [])]
)
def test_row_gets_nothing_back_that_was_deleted_in_its_batch(
    database: Database, context: MemorySinkContext, mode: str, left: list[tuple[Any, ...]]
) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, name text, kept text)")
    database.execute("INSERT INTO orders VALUES (1, 'a', 'k')")
    parsed = keys(
        database, insert_mode=mode, pk_mode="record_key", pk_fields="id", delete_enabled="true"
    )
    batch = [
        person(2, "x", key=2, key_schema=INT64),
        sink_record(None, offset=1, key=1, key_schema=INT64),
        person(1, "b", offset=2, key=1, key_schema=INT64),
    ]

    run_sink(PostgresSink(), parsed, context, [batch])

    assert rows(database) == left


def test_a_first_record_that_deletes_makes_no_table_without_columns(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(
        database, auto_create="true", pk_mode="record_key", pk_fields="id", delete_enabled="true"
    )
    batch = [sink_record(None, key=9), person(1, "a", key=1, key_schema=INT64)]

    run_sink(PostgresSink(), parsed, context, [batch])

    assert rows(database) == [(1, "a")]


def test_an_update_changes_rows_that_are_there(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, name text, kept text)")
    database.execute("INSERT INTO orders VALUES (1, 'a', 'k')")
    parsed = keys(database, insert_mode="update", pk_mode="record_value", pk_fields="id")

    run_sink(PostgresSink(), parsed, context, [[person(1, "b"), person(2, "c")]])

    assert rows(database) == [(1, "b", "k")]


def test_columns_are_added_where_that_is_allowed(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute("CREATE TABLE orders (id bigint)")

    with pytest.raises(ConnectorError, match=r"no column name: add it, or set auto.evolve=true"):
        run_sink(PostgresSink(), keys(database), context, [[person(1, "a")]])
    run_sink(PostgresSink(), keys(database, auto_evolve="true"), context, [[person(1, "a")]])

    assert rows(database) == [(1, "a")]


def test_a_table_that_is_missing_is_named(database: Database, context: MemorySinkContext) -> None:
    with pytest.raises(ConnectorError, match=r"no table orders: make it, or set auto.create=true"):
        run_sink(PostgresSink(), keys(database), context, [[person(1, "a")]])


def test_a_table_that_is_renamed_while_the_sink_runs_is_looked_up_again(
    database: Database, context: MemorySinkContext
) -> None:
    task = started(context, keys(database, auto_create="true"))
    task.open([ORDERS])
    task.put([person(1, "a")])
    database.execute("ALTER TABLE orders RENAME TO kept_orders")
    task.put([person(2, "b")])

    assert rows(database) == [(2, "b")]

    database.execute("ALTER TABLE orders DROP COLUMN name")
    with pytest.raises(ConnectorError, match=r"no column name: add it, or set auto.evolve=true"):
        task.put([person(3, "c")])


def test_the_place_in_the_topic_is_a_key_and_tables_are_named_by_a_format(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute('CREATE SCHEMA "In"')
    parsed = keys(
        database, auto_create="true", pk_mode="kafka", table_name_format="In.from_${topic}"
    )
    parsed |= keys(database, auto_create="true", pk_mode="kafka")
    parsed["table.name.format"] = 'In.from "${topic}"'

    run_sink(PostgresSink(), parsed, context, [[person(1, "a", offset=5, topic='o"x')]])

    told = rows(database, 'SELECT * FROM "In"."from ""o""x"""')
    assert told == [('o"x', 0, 5, 1, "a")]


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_a_batch_that_is_put_again_is_written_once(
    database: Database, context: MemorySinkContext, mode: str
) -> None:
    parsed = keys(
        database, auto_create="true", insert_mode=mode, pk_mode="kafka", fields_whitelist="id"
    )
    batch = [person(number, "x") for number in range(100)]
    task = started(context, parsed)

    begin_at = task.open([ORDERS])
    for part in (batch[:60], batch[:60], batch[20:]):
        task.put(part)
    task.stop()

    assert begin_at == {}
    assert started(context, parsed).open([ORDERS]) == {ORDERS: 100}
    assert rows(database, "SELECT count(*), min(id), max(id) FROM orders") == [(100, 0, 99)]


def test_records_of_a_topic_that_was_made_anew_are_not_taken_for_the_former_ones(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database, auto_create="true")
    run_sink(PostgresSink(), parsed, context, [[person(1, "a"), person(2, "b")]])
    task = started(context, parsed)
    task.open([ORDERS])

    with pytest.raises(ConnectorError, match=r"partition 0 continues at offset 0.*delete the row"):
        task.put([person(0, "new")])
    database.execute("DELETE FROM samsa_connect_offsets")
    run_sink(PostgresSink(), parsed, context, [[person(0, "new")]])

    assert rows(database) == [(0, "new"), (1, "a"), (2, "b")]


def test_a_topic_that_was_made_anew_and_has_grown_past_the_offset_stops_the_task(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database, auto_create="true")
    context.topic_ids = {"orders": "one"}
    run_sink(PostgresSink(), parsed, context, [[person(1, "a"), person(2, "b")]])
    same = started(context, parsed).open([ORDERS])
    context.topic_ids = {"orders": "two"}

    with pytest.raises(ConnectorError, match=r"orders was deleted and recreated.*delete the rows"):
        started(context, parsed).open([ORDERS])
    kept = rows(database, "SELECT next_offset, topic_id FROM samsa_connect_offsets")
    database.execute("DELETE FROM samsa_connect_offsets")
    anew = [person(number, "new", offset=number) for number in range(5)]
    run_sink(PostgresSink(), keys(database, auto_create="true"), context, [anew])

    assert (same, kept) == ({ORDERS: 3}, [(3, "one")])
    assert rows(database, "SELECT count(*) FROM orders") == [(7,)]


def test_offsets_of_a_version_without_ids_of_topics_are_gone_on_with(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database, auto_create="true")
    run_sink(PostgresSink(), parsed, context, [[person(1, "a")]])
    database.execute("ALTER TABLE samsa_connect_offsets DROP COLUMN topic_id")
    context.topic_ids = {"orders": "one"}

    begin_at = started(context, parsed).open([ORDERS])
    context.topic_ids = {}
    not_told = started(context, parsed).open([ORDERS])

    assert begin_at == not_told == {ORDERS: 2}
    assert rows(database, "SELECT topic_id FROM samsa_connect_offsets") == [("one",)]


def test_an_owner_that_was_replaced_writes_nothing_more(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database, auto_create="true")
    old = started(context, parsed)
    old.open([ORDERS])
    old.put([person(1, "a")])

    newer = MemorySinkContext(connector="sink", epoch=2)
    begin_at = started(newer, parsed).open([ORDERS])
    with pytest.raises(RetriableError, match="later owner"):
        old.put([person(2, "b")])
    newer.close()

    assert begin_at == {ORDERS: 2}
    assert rows(database) == [(1, "a")]


def test_a_partition_that_moves_to_another_task_is_written_by_that_alone(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database, auto_create="true")
    context.epoch = 7
    first = started(context, parsed)
    first.open([ORDERS])
    first.put([person(1, "a")])

    other = MemorySinkContext(connector="sink", task=1, epoch=5)
    second = started(other, parsed)
    begin_at = second.open([ORDERS])
    with pytest.raises(RetriableError, match="later owner"):
        first.put([person(2, "b")])
    second.put([person(2, "b")])
    other.close()

    assert begin_at == {ORDERS: 2}
    assert rows(database) == [(1, "a"), (2, "b")]


def test_an_owner_that_was_replaced_may_not_begin_again(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database)
    newer = MemorySinkContext(connector="sink", epoch=2)
    started(newer, parsed).open([ORDERS])
    newer.close()

    with pytest.raises(RetriableError, match="later owner"):
        started(context, parsed).open([ORDERS])


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (sink_record("text"), "the value is a str"),
        (sink_record(None), "delete.enabled is false"),
        (sink_record({"id": None}), "null, but a part of the key"),
        (sink_record({"other": 1}), "no field id"),
    ],
)
def test_a_record_without_a_place_is_refused_by_its_index(
    database: Database, context: MemorySinkContext, record: SinkRecord, reason: str
) -> None:
    task = started(context, keys(database, pk_mode="record_value", pk_fields="id"))
    task.open([ORDERS])

    with pytest.raises(RecordError, match=reason) as caught:
        task.put([record])

    assert caught.value.index == 0


def test_a_connection_that_was_cut_is_made_again(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database, auto_create="true")
    task = started(context, parsed)
    task.open([ORDERS])
    task.put([person(1, "a")])

    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    with pytest.raises(RetriableError):
        task.put([person(2, "b")])
    task.put([person(2, "b")])

    assert rows(database) == [(1, "a"), (2, "b")]


def test_a_slice_keeps_the_connection_for_the_next_one(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database, auto_create="true")

    run_sink(PostgresSink(), parsed, context, [[person(1, "a")]])
    kept = context.kept["postgres.connection"]
    run_sink(PostgresSink(), parsed, context, [[person(2, "b")]])

    assert context.kept["postgres.connection"] is kept
    context.close()
    assert kept.closed


def test_retries_end_where_that_is_configured(
    database: Database, context: MemorySinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = keys(database, max_retries="1", retry_backoff_ms="250")
    parsed["connection.url"] = "postgresql://127.0.0.1:1/none"
    task = started(context, parsed)

    with pytest.raises(RetriableError) as caught:
        task.open([ORDERS])
    with pytest.raises(ConnectorError, match="gave up after 1 retries"):
        task.open([ORDERS])

    assert caught.value.wait_s == 10


@pytest.mark.parametrize("limit", ["max_retries", "connection_attempts"])
def test_retries_of_former_slices_count(
    database: Database, context: MemorySinkContext, limit: str
) -> None:
    parsed = keys(database, **{limit: "4"})
    # What a slice keeps is closed when it ends with a retry.
    context.retries = 4
    task = started(context, parsed | {"connection.url": "postgresql://127.0.0.1:1/none"})

    with pytest.raises(ConnectorError, match="gave up after") as caught:
        task.open([ORDERS])
    assert not isinstance(caught.value, RetriableError)

    context.close()
    reached = started(context, parsed)
    reached.open([ORDERS])
    assert context.has_reached


def test_a_host_that_may_not_be_reached_is_refused(
    database: Database, context: MemorySinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAMSA_CONNECT_TARGETS")

    with pytest.raises(ConnectorError, match=r"SAMSA_CONNECT_TARGETS=127\.0\.0\.1"):
        started(context, keys(database)).open([ORDERS])


def test_a_record_that_is_sent_again_is_counted_where_it_was_read_and_named_where_it_stood(
    database: Database, context: MemorySinkContext
) -> None:
    parsed = keys(database, auto_create="true", pk_mode="kafka", insert_mode="upsert")
    first = RecordPlace(topic="orders", partition=3, offset=17)
    again = replace(
        person(1, "a", offset=0),
        origin_topic="connect-sink.retry",
        retried=first,
    )

    for _ in range(2):
        run_sink(PostgresSink(), parsed, context, [[again, person(2, "b", offset=0)]])

    written = rows(database, "SELECT * FROM orders ORDER BY 2")
    assert written == [("orders", 0, 0, 2, "b"), ("orders", 3, 17, 1, "a")]
    query = "SELECT topic, next_offset FROM samsa_connect_offsets ORDER BY 1"
    assert rows(database, query) == [("connect-sink.retry", 1), ("orders", 1)]


def test_the_table_of_offsets_of_another_sink_is_not_written_to(
    database: Database, context: MemorySinkContext
) -> None:
    run_sink(PostgresSink(), keys(database, auto_create="true"), context, [[person(1, "a")]])
    theirs = keys(database, offsets_table="mine", table_name_format="samsa_connect_offsets")
    other = MemorySinkContext(connector="b")

    with pytest.raises(ConnectorError, match="has the columns of a table of sink offsets"):
        run_sink(PostgresSink(), theirs, other, [[person(2, "b")]])
    other.close()

    assert len(rows(database, "SELECT * FROM samsa_connect_offsets")) == 1


def test_batch_is_written_when_the_target_is_corrected_while_a_record_is_sought(
    database: Database, context: MemorySinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("CREATE TABLE orders (id bigint, name integer)")
    task = started(context, keys(database))
    task.open([ORDERS])

    def corrected_first(error: psycopg.Error) -> bool:
        database.execute("ALTER TABLE orders ALTER name TYPE text")
        return is_about_data(error)

    monkeypatch.setattr("connectors.plugins.postgres.sifting.is_about_data", corrected_first)
    task.put([person(1, "many")])

    assert rows(database) == [(1, "many")]
