"""Records that PostgreSQL refuses are left out of their batch, and the others are written."""

from collections.abc import Sequence

import psycopg
import pytest

from connectors.plugins.postgres.rows import Row
from connectors.plugins.postgres.sifting import GO_BACK, Refused, write_but_refused
from connectors.plugins.postgres.sink import PostgresSink
from connectors.plugins.postgres.writes import Writer
from connectors.sdk.errors import RecordError
from connectors.sdk.testing import MemorySinkContext, run_sink, sink_record
from tests.connectors.plugins.postgres.sinks import Database, keys, rows, started
from tests.connectors.plugins.postgres.test_sink import ORDERS, person
from tests.extras import requires

pytestmark = [requires("postgresql"), pytest.mark.slow]

MIXED = [person(1, "a"), person(2, "long"), person(3, "b"), person(4, "bad")]
MIXED += [person(99_999, "c", offset=5), person(6, "n\0"), person(7, "z")]


def test_nothing_of_a_batch_stays_where_one_record_cannot_be_taken(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute("CREATE TABLE orders (id smallint, name varchar(3) CHECK (name <> 'bad'))")
    task = started(context, keys(database))
    task.open([ORDERS])

    with pytest.raises(RecordError, match="too long for type character varying") as caught:
        task.put(MIXED)

    assert caught.value.index == 1
    assert rows(database) == []


@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
def test_refused_records_are_left_out_and_the_others_written(
    database: Database, context: MemorySinkContext, mode: str
) -> None:
    database.execute(
        "CREATE TABLE orders (id smallint PRIMARY KEY, name varchar(3) CHECK (name <> 'bad'))"
    )
    database.execute("INSERT INTO orders SELECT n, 'old' FROM generate_series(2, 7) AS n")
    if mode == "insert":
        database.execute("DELETE FROM orders")
    context.is_tolerant = True
    parsed = keys(database, insert_mode=mode, pk_mode="record_value", pk_fields="id")

    run_sink(PostgresSink(), parsed, context, [MIXED, MIXED])

    refused = {record.value["id"]: str(error) for record, error in context.refused}
    assert sorted(refused) == [2, 4, 6, 99_999]
    assert "check constraint" in refused[4]
    written = [row for row in rows(database) if row[1] != "old"]
    assert written == [
        row for row in [(1, "a"), (3, "b"), (7, "z")] if mode != "update" or row[0] > 1
    ]
    assert rows(database, "SELECT next_offset FROM samsa_connect_offsets") == [(8,)]


def test_refused_record_leaves_the_earlier_one_of_its_key(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, name varchar(3))")
    context.is_tolerant = True
    parsed = keys(database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    batch = [person(1, "a", offset=0), person(2, "b", offset=1), person(1, "long", offset=2)]

    run_sink(PostgresSink(), parsed, context, [[*batch, person(2, "c", offset=3)]])

    assert rows(database) == [(1, "a"), (2, "c")]
    assert [record.origin_offset for record, _ in context.refused] == [2]


def test_rows_that_a_foreign_key_refuses_are_found(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute("CREATE TABLE people (name text PRIMARY KEY)")
    database.execute("INSERT INTO people VALUES ('a')")
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY CHECK (id % 7 <> 5),"
        " name text REFERENCES people)"
    )
    context.is_tolerant = True
    parsed = keys(database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    batch = [person(number, "b" if number in {3, 4, 39} else "a") for number in range(40)]

    run_sink(PostgresSink(), parsed, context, [batch])

    refused = [record.value["id"] for record, _ in context.refused]
    assert refused == sorted([3, 4, 39, *range(5, 40, 7)])
    assert len(rows(database)) == 40 - len(refused)


def test_good_rows_of_a_batch_with_refused_ones_are_written_a_few_times_at_most(
    database: Database, context: MemorySinkContext
) -> None:
    """Rows that PostgreSQL names cost a constant number of statements each, not of batches."""
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, name text)")
    database.execute("ALTER TABLE orders ADD CHECK (name <> 'bad')")
    context.is_tolerant = True
    # Writes outside of the transaction are not rolled back, so a sequence counts the attempts.
    database.execute("CREATE SEQUENCE attempts")
    database.execute(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM nextval('attempts'); RETURN NEW; END$$"
    )
    database.execute(
        "CREATE TRIGGER note BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION note()"
    )
    parsed = keys(database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    batch = [person(number, "bad" if number % 50 == 7 else "a") for number in range(500)]

    run_sink(PostgresSink(), parsed, context, [batch])

    assert len(context.refused) == 10
    ((attempts,),) = rows(database, "SELECT last_value FROM attempts")
    assert attempts < 3 * len(batch)


def test_refused_rows_that_are_inserted_need_no_temporary_objects(
    database: Database, context: MemorySinkContext
) -> None:
    """Roles of a database may lack the right to create them, which inserts do not need."""
    database.execute("CREATE TABLE orders (id smallint, name varchar(3) CHECK (name <> 'bad'))")
    context.is_tolerant = True

    run_sink(PostgresSink(), keys(database), context, [MIXED])

    assert len(context.refused) == 4
    found = rows(database, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pg_temp%'")
    assert found == []


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_row_is_written_if_the_row_it_conflicts_with_is_refused(
    database: Database, context: MemorySinkContext, mode: str
) -> None:
    database.execute("CREATE TABLE people (name text PRIMARY KEY)")
    database.execute("INSERT INTO people VALUES ('a')")
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, name text REFERENCES people, code text UNIQUE)"
    )
    context.is_tolerant = True
    parsed = keys(database, insert_mode=mode, pk_mode="record_value", pk_fields="id")
    batch = [
        sink_record({"id": number, "name": name, "code": code}, offset=number)
        for number, (name, code) in enumerate([("a", "x"), ("b", "y"), ("a", "y"), ("a", "x")])
    ]

    run_sink(PostgresSink(), parsed, context, [batch])

    assert [record.value["id"] for record, _ in context.refused] == [1, 3]
    assert rows(database) == [(0, "a", "x"), (2, "a", "y")]


def test_search_for_refused_rows_leaves_no_savepoint(
    database: Database, context: MemorySinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else those of the next chunks would be within it, and each level makes statements slower."""
    found: list[Row] = []

    def checked(writer: Writer, rows: Sequence[Row], refused: Refused) -> bool:
        is_done = write_but_refused(writer, rows, refused)
        with (
            pytest.raises(psycopg.errors.InvalidSavepointSpecification),
            writer.connection.transaction(),
        ):
            writer.connection.execute(GO_BACK)
        found.extend(rows)
        return is_done

    monkeypatch.setattr("connectors.plugins.postgres.sink.write_but_refused", checked)
    database.execute("CREATE TABLE orders (id smallint, name varchar(3) CHECK (name <> 'bad'))")
    context.is_tolerant = True

    run_sink(PostgresSink(), keys(database), context, [MIXED])

    assert len(found) == len(MIXED)


def test_booleans_become_bits_and_refused_values_name_their_column(
    database: Database, context: MemorySinkContext
) -> None:
    database.execute("CREATE TABLE orders (id bigint, flag bit(1), byte bit(8))")
    context.is_tolerant = True
    batch = [
        sink_record({"id": 1, "flag": True, "byte": "00000101"}),
        sink_record({"id": 2, "flag": False, "byte": None}, offset=1),
        sink_record({"id": 3, "flag": True, "byte": "5"}, offset=2),
    ]

    run_sink(PostgresSink(), keys(database), context, [batch])

    assert rows(database, "SELECT id, flag::text, byte::text FROM orders ORDER BY 1") == [
        (1, "1", "00000101"),
        (2, "0", None),
    ]
    [(record, error)] = context.refused
    assert record.value["id"] == 3
    assert str(error).startswith("PostgreSQL: column byte: bit string length 1")
