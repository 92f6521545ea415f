"""Rows become records, each once while nothing fails, from whatever offset a slice begins at."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from connectors.plugins.postgres.source import PostgresSource, PostgresSourceTask
from connectors.sdk.errors import ConfigError, ConnectorError, RetriableError
from connectors.sdk.records import SourceRecord
from connectors.sdk.schemas import DATE, DECIMAL, TIME, TIMESTAMP, Type
from connectors.sdk.testing import MemorySourceContext, parse_config, run_source
from tests.connectors.plugins.postgres.conftest import url_of
from tests.extras import requires

pytestmark = [requires("postgresql"), pytest.mark.slow]

Database = psycopg.Connection[Any]
BOTH = {
    "mode": "timestamp+incrementing",
    "incrementing_column_name": "id",
    "timestamp_column_name": "at",
}
TIMES = {"mode": "timestamp", "timestamp_column_name": "at"}
NUMBERS = {"mode": "incrementing"}


def keys(database: Database, **config: str) -> dict[str, Any]:
    told = {"connection.url": url_of(database), "topic.prefix": "db-", "poll.interval.ms": "0"}
    told |= {name.replace("_", "."): value for name, value in config.items()}
    return parse_config(PostgresSource.definition(), told)


@pytest.fixture
def context() -> Iterator[MemorySourceContext]:
    made = MemorySourceContext()
    yield made
    made.close()


def fill(database: Database, count: int, *, begin: int = 1, ties: int = 1) -> None:
    """Add rows whose times are those of a minute each, some rows to a minute."""
    database.execute(
        "CREATE TABLE IF NOT EXISTS orders (id serial PRIMARY KEY, "
        "at timestamptz NOT NULL, name text)"
    )
    database.execute(
        "INSERT INTO orders (at, name) SELECT timestamptz '2026-01-01 00:00Z' "
        "+ interval '1 minute' * ((n - 1) / %(ties)s), 'n' || n "
        "FROM generate_series(%(begin)s::int, %(end)s::int) n",
        {"ties": ties, "begin": begin, "end": begin + count - 1},
    )


def read(database: Database, context: MemorySourceContext, **config: str) -> list[SourceRecord]:
    return run_source(PostgresSource(), keys(database, **config), context)


def read_behind(
    database: Database, stored: list[SourceRecord], **config: str
) -> list[SourceRecord]:
    """Read in a process that knows nothing but the offsets of some records."""
    context = MemorySourceContext()
    context.store(stored)
    try:
        return read(database, context, **config)
    finally:
        context.close()


def numbers(records: list[SourceRecord]) -> list[int]:
    return [record.value["id"] for record in records]


@pytest.mark.parametrize("mode", [NUMBERS, TIMES, BOTH])
def test_new_rows_are_read_once(
    database: Database, context: MemorySourceContext, mode: dict[str, str]
) -> None:
    fill(database, 25, ties=4)
    first = read(database, context, batch_max_rows="3", **mode)
    fill(database, 5, begin=41)
    second = read(database, context, batch_max_rows="3", **mode)

    assert numbers(first) == list(range(1, 26))
    assert numbers(second) == list(range(26, 31))
    assert read(database, context, **mode) == []
    assert {record.topic for record in first} == {"db-orders"}


@pytest.mark.parametrize("mode", [NUMBERS, TIMES, BOTH])
def test_a_resume_from_any_record_passes_over_none(
    database: Database, mode: dict[str, str]
) -> None:
    fill(database, 12, ties=5)
    whole = read_behind(database, [], batch_max_rows="4", **mode)

    for count in range(1, 13):
        rest = numbers(read_behind(database, whole[:count], batch_max_rows="4", **mode))
        left = list(range(count + 1, 13))
        # Rows with one time are read again together, where nothing else tells them apart.
        assert rest[-len(left) :] == left if left else rest == []
        assert len(rest) - len(left) <= (4 if mode is TIMES else 0)


def test_a_changed_row_is_read_again_by_its_time(
    database: Database, context: MemorySourceContext
) -> None:
    fill(database, 3)
    read(database, context, **BOTH)
    database.execute("UPDATE orders SET at = now() - interval '1 second', name = 'new' WHERE id=2")

    assert [record.value["name"] for record in read(database, context, **BOTH)] == ["new"]


def test_changes_are_read_once_they_are_old_enough(
    database: Database, context: MemorySourceContext
) -> None:
    fill(database, 1)
    database.execute("INSERT INTO orders (at) VALUES (now() - interval '10 seconds')")

    read_now = read(database, context, timestamp_delay_interval_ms="3600000", **TIMES)

    assert numbers(read_now) == [1]
    assert numbers(read(database, context, **TIMES)) == [2]


@pytest.mark.parametrize(("initial", "count"), [("-1", 0), ("1767225660000", 1), ("0", 3)])
def test_a_first_slice_begins_at_the_time_that_is_configured(
    database: Database, context: MemorySourceContext, initial: str, count: int
) -> None:
    fill(database, 3)

    assert len(read(database, context, timestamp_initial=initial, **TIMES)) == count


def test_bulk_reads_all_rows_and_again_after_the_interval(database: Database) -> None:
    fill(database, 10)
    context = MemorySourceContext()
    config = {"mode": "bulk", "batch_max_rows": "3", "poll_interval_ms": "3600000"}

    first = read(database, context, **config)
    again = read(database, context, **config)
    repeated = read_behind(database, first[:7], **config)
    context.close()

    assert numbers(first) == list(range(1, 11))
    assert again == []
    assert numbers(repeated) == list(range(1, 11))


def test_a_query_is_read_with_the_conditions_around_it(
    database: Database, context: MemorySourceContext
) -> None:
    fill(database, 6)
    query = "SELECT id, name, '{%}' AS odd FROM orders WHERE name LIKE 'n%' AND id % 2 = 0; "

    records = read(database, context, query=query, incrementing_column_name="id", **NUMBERS)

    assert numbers(records) == [2, 4, 6]
    assert {record.topic for record in records} == {"db-"}
    assert records[0].value["odd"] == "{%}"
    assert records[0].source_partition == {"query": "query"}


def test_columns_have_schemas(database: Database, context: MemorySourceContext) -> None:
    database.execute(
        "CREATE TABLE things (id bigserial, i2 smallint, i4 int NOT NULL, r real, d float8, "
        "b bool, price numeric(8,2), free numeric, t varchar(9), raw bytea, day date, clock time, "
        "at timestamp, tz timestamptz, j jsonb, list int[], u uuid, span interval, many int4range)"
    )
    database.execute(
        "INSERT INTO things VALUES (1, 2, 3, 0.5, 0.25, true, 1.5, 1e20, 'ü', '\\x00ff', "
        "'2026-01-02', '03:04', '2026-01-02 03:04:05.678', '2026-01-02 03:04:05+01', "
        "'{\"a\": [1]}', '{1,NULL}', '7f3e1c1e-0d43-4c1d-8d7f-1f2e3d4c5b6a', '1 day', '[1,3)')"
    )
    database.execute("INSERT INTO things (id, i4) VALUES (2, 3)")

    full, empty = read(database, context, table_whitelist="things", **NUMBERS)

    kinds = [(field.schema.type, field.schema.name) for field in full.value_schema.fields]  # type: ignore[union-attr]
    assert list(full.value.values.values()) == [
        *(1, 2, 3, 0.5, 0.25, True, Decimal("1.50"), "100000000000000000000", "ü", b"\x00\xff"),
        *(date(2026, 1, 2), time(3, 4), datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)),
        *(datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC), '{"a": [1]}', "[1, null]"),
        *("7f3e1c1e-0d43-4c1d-8d7f-1f2e3d4c5b6a", "1 day", "[1,3)"),
    ]
    assert kinds[:14] == [
        *((Type.INT64, None), (Type.INT16, None), (Type.INT32, None), (Type.FLOAT32, None)),
        *((Type.FLOAT64, None), (Type.BOOLEAN, None), (Type.BYTES, DECIMAL), (Type.STRING, None)),
        *((Type.STRING, None), (Type.BYTES, None), (Type.INT32, DATE), (Type.INT32, TIME)),
        *((Type.INT64, TIMESTAMP), (Type.INT64, TIMESTAMP)),
    ]
    optional = [field.schema.is_optional for field in full.value_schema.fields]  # type: ignore[union-attr]
    assert optional == [False, True, False] + [True] * 16
    assert set(list(empty.value.values.values())[3:]) == {None}
    assert empty.value["i2"] is None


@pytest.mark.parametrize(
    ("mapping", "values"),
    [
        ("none", [Decimal(5), Decimal("1.5")]),
        ("precision_only", [5, Decimal("1.5")]),
        ("best_fit", [5, 1.5]),
        ("best_fit_eager_double", [5, 1.5]),
    ],
)
def test_numbers_become_what_the_mapping_says(
    database: Database, context: MemorySourceContext, mapping: str, values: list[Any]
) -> None:
    database.execute("CREATE TABLE n (a numeric(4,0), b numeric(4,1))")
    database.execute("INSERT INTO n VALUES (5, 1.5)")

    config = {"mode": "bulk", "poll_interval_ms": "60000"}
    (record,) = read(database, context, numeric_mapping=mapping, **config)

    told = list(record.value.values.values())
    assert told == values
    assert [type(value) for value in told] == [type(value) for value in values]


def test_tables_are_chosen_shared_among_tasks_and_found_later(database: Database) -> None:
    database.execute("CREATE SCHEMA other")
    names = [f"t{number}" for number in range(6)] + ["other.x", "secret"]
    for name in names:
        database.execute(f"CREATE TABLE {name} (id serial)")
        database.execute(f"INSERT INTO {name} DEFAULT VALUES")
    connector, config = PostgresSource(), {"table_blacklist": "public.secret", **NUMBERS}

    topics = []
    for own in connector.task_configs(keys(database, **config), max_tasks=3):
        context = MemorySourceContext()
        topics += [
            record.topic
            for record in read(
                database, context, **config, **{k.replace(".", "_"): v for k, v in own.items()}
            )
        ]
        context.close()

    assert sorted(topics) == ["db-t0", "db-t1", "db-t2", "db-t3", "db-t4", "db-t5", "db-x"]


def test_a_table_that_comes_later_is_found(
    database: Database, context: MemorySourceContext
) -> None:
    now = [0.0]
    task = PostgresSourceTask(lambda: now[0])
    task.start(context, keys(database, table_whitelist="orders,public.gone", **NUMBERS))
    before = task.poll()
    fill(database, 2)
    now[0] += 30
    meanwhile = task.poll()
    now[0] += 31
    after = task.poll()

    assert (before, meanwhile, numbers(after)) == ([], [], [1, 2])
    assert "there is no table public.gone to read" in context.lines


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"mode": "incrementing", "incrementing_column_name": "no"}, "has no column no; it has id"),
        ({"mode": "incrementing", "incrementing_column_name": "name"}, "may be null"),
        ({"mode": "timestamp", "timestamp_column_name": "name"}, "may be null"),
    ],
)
def test_columns_that_rows_cannot_be_read_by_are_refused(
    database: Database, context: MemorySourceContext, config: dict[str, str], reason: str
) -> None:
    fill(database, 1)

    with pytest.raises(ConfigError, match=reason):
        read(database, context, **config)


def test_a_query_that_fails_stops_the_task_with_what_the_server_says(
    database: Database, context: MemorySourceContext
) -> None:
    with pytest.raises(ConnectorError, match='relation "nothing" does not exist'):
        read(database, context, mode="bulk", query="SELECT * FROM nothing")


def test_a_connection_that_was_cut_is_made_again_and_no_row_is_lost(
    database: Database, context: MemorySourceContext
) -> None:
    fill(database, 4)
    task = PostgresSourceTask()
    task.start(context, keys(database, batch_max_rows="2", **NUMBERS))

    first = task.poll()
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    with pytest.raises(RetriableError):
        task.poll()
    second = task.poll()

    assert numbers(first + second) == [1, 2, 3, 4]
