"""Changes of rows in a real database arrive once and in order, whatever process ends meanwhile."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from connectors.plugins.postgres.capture.connector import PostgresCapture
from connectors.plugins.postgres.capture.positions import parse
from connectors.sdk import contract
from connectors.sdk.errors import ConfigError, ConnectorError, RetriableError
from connectors.sdk.testing import parse_config
from tests.connectors.plugins.postgres.capture.captures import PREFIX, Capture, config
from tests.extras import requires

pytestmark = [requires("postgresql"), pytest.mark.slow]
Begin = Callable[..., Capture]
Database = psycopg.Connection[Any]


def make(database: Database, *tables: str, rows: int = 2) -> None:
    for table in tables:
        database.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY, note text)")
        query = f"INSERT INTO {table} SELECT n, 'x' FROM generate_series(1, %s) AS n"  # noqa: S608
        database.execute(query, (rows,))


def confirmed(database: Database) -> int:
    """Return up to where the server has been told that it need not keep its log."""
    query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
    row = database.execute(query, (database.info.dbname,)).fetchone()
    return parse(row[0]) if row else 0


def written(database: Database) -> int:
    row = database.execute("SELECT pg_current_wal_lsn()::text").fetchone()
    assert row is not None, "a function has a result"
    return parse(row[0])


def test_rows_come_first_and_then_each_change(database: Database, capture: Begin) -> None:
    make(database, "b", "a")
    begun = capture()

    rows = begun.take(4)
    database.execute("INSERT INTO a VALUES (3, 'new')")
    database.execute("UPDATE a SET note = NULL WHERE id = 1")
    database.execute("UPDATE a SET id = 9 WHERE id = 2")
    database.execute("DELETE FROM b WHERE id = 2")
    changes = begun.take(7)

    assert rows == [("r", 1, (1, "x")), ("r", 2, (2, "x"))] * 2
    assert [record.topic for record in begun.records[:4]] == [
        *[f"{PREFIX}.public.a"] * 2,
        *[f"{PREFIX}.public.b"] * 2,
    ]
    assert changes == [
        ("c", 3, (3, "new")),
        ("u", 1, (1, None)),
        ("d", 2, None),
        (None, 2, None),
        ("c", 9, (9, "x")),
        ("d", 2, None),
        (None, 2, None),
    ]
    markers = [record.value.values["source"].values["snapshot"] for record in begun.records[:4]]
    assert markers == ["first", "last_in_data_collection", "first_in_data_collection", "last"]


def test_changes_made_during_the_snapshot_follow_it(database: Database, capture: Begin) -> None:
    make(database, "a", rows=3)
    begun = capture(snapshot_fetch_size="1")
    begun.poll_until(lambda: len(begun.records) == 1)

    database.execute("UPDATE a SET note = 'y'")
    database.execute("DELETE FROM a WHERE id = 3")
    told = begun.take(7)

    assert told == [
        ("r", 2, (2, "x")),
        ("r", 3, (3, "x")),
        *[("u", number, (number, "y")) for number in (1, 2, 3)],
        ("d", 3, None),
        (None, 3, None),
    ]


def test_a_crash_in_the_snapshot_loses_neither_rows_nor_deletions(
    database: Database, capture: Begin
) -> None:
    make(database, "a", "b", rows=3)
    begun = capture(snapshot_fetch_size="1")
    begun.poll_until(lambda: len(begun.records) == 4)

    begun.crash()
    database.execute("DELETE FROM b WHERE id = 1")
    told = begun.take(4)

    # Table a is done; b is read again as it is now, and the log tells what is not there any more.
    assert told == [("r", 2, (2, "x")), ("r", 3, (3, "x")), ("d", 1, None), (None, 1, None)]


def test_what_was_not_stored_is_told_again(database: Database, capture: Begin) -> None:
    make(database, "a", rows=1)
    begun = capture()
    begun.take(1)
    database.execute("INSERT INTO a VALUES (2, 'y'), (3, 'y')")

    lost = begun.take(2, stores=False)
    begun.crash()
    again = begun.take(2)
    begun.crash()
    database.execute("INSERT INTO a VALUES (4, 'y')")

    assert lost == again
    assert begun.take(1) == [("c", 4, (4, "y"))]


def test_a_large_transaction_goes_on_where_it_was_stored(
    database: Database, capture: Begin
) -> None:
    make(database, "a", rows=0)
    begun = capture(max_batch_size="10")
    begun.poll_until(lambda: begun.context.offsets != {})
    with database.transaction():
        for number in range(50):
            database.execute("INSERT INTO a VALUES (%s, 'y')", (number,))

    begun.poll_until(lambda: len(begun.records) >= 20)
    begun.crash()
    begun.poll_until(lambda: begun.records[-1].key.values["id"] == 49)

    ids = [record.key.values["id"] for record in begun.records]
    assert list(dict.fromkeys(ids)) == list(range(50))
    assert len(ids) <= 52


def test_a_table_that_changes_its_columns_is_told_as_it_was_and_is(
    database: Database, capture: Begin
) -> None:
    make(database, "a", rows=0)
    begun = capture()
    begun.poll_until(lambda: begun.context.offsets != {})

    database.execute("INSERT INTO a VALUES (1, 'x')")
    database.execute("ALTER TABLE a ADD COLUMN more boolean NOT NULL DEFAULT true")
    database.execute("INSERT INTO a VALUES (2, 'x')")
    database.execute("ALTER TABLE a DROP COLUMN note")
    database.execute("INSERT INTO a VALUES (3)")

    assert begun.take(3) == [("c", 1, (1, "x")), ("c", 2, (2, "x", True)), ("c", 3, (3, True))]


@pytest.mark.parametrize("by_root", [False, True])
def test_rows_of_partitions_are_told_once(
    by_root: bool, database: Database, capture: Begin
) -> None:
    database.execute("CREATE TABLE a (id integer PRIMARY KEY) PARTITION BY RANGE (id)")
    for begin in (0, 10):
        query = f"CREATE TABLE a{begin} PARTITION OF a FOR VALUES FROM ({begin}) TO ({begin + 10})"
        database.execute(query.encode())
    database.execute("INSERT INTO a VALUES (1), (11)")
    begun = capture(publish_via_partition_root=str(by_root).lower())

    rows = begun.take(2)
    database.execute("INSERT INTO a VALUES (2), (12)")

    assert rows == [("r", 1, (1,)), ("r", 11, (11,))]
    assert begun.take(2) == [("c", 2, (2,)), ("c", 12, (12,))]
    topics = [record.topic.removeprefix(f"{PREFIX}.public.") for record in begun.records]
    assert topics == (["a"] * 4 if by_root else ["a0", "a10"] * 2)


def test_what_comes_before_a_value_that_cannot_be_told_is_told(
    database: Database, capture: Begin
) -> None:
    database.execute("CREATE TABLE a (id integer PRIMARY KEY, amount numeric(9, 2))")
    begun = capture(snapshot_mode="no_data")
    begun.poll_until(lambda: begun.context.offsets != {})

    database.execute("INSERT INTO a VALUES (1, 5), (2, 6), (3, 'NaN')")

    with pytest.raises(ConnectorError, match=r"amount of public\.a"):
        begun.poll_until(lambda: False)
    assert [record.key.values["id"] for record in begun.records] == [1]


def test_the_log_of_idle_tables_is_freed(database: Database, capture: Begin) -> None:
    make(database, "a", "busy", rows=1)
    begun = capture(table_include_list="public.a", publication_autocreate_mode="filtered")
    begun.take(1)

    database.execute("INSERT INTO busy SELECT n, 'x' FROM generate_series(2, 1000) AS n")
    at = written(database)
    begun.poll_until(lambda: confirmed(database) >= at)

    assert len(begun.records) == 1
    # What the server forgets is stored before.
    (offset,) = begun.context.offsets.values()
    assert f'"lsn_commit": {confirmed(database)}' in offset


def test_nothing_is_confirmed_that_is_not_stored(database: Database, capture: Begin) -> None:
    make(database, "a", rows=1)
    begun = capture()
    begun.take(1)
    before = confirmed(database)

    database.execute("INSERT INTO a VALUES (2, 'y')")
    begun.take(1, stores=False)
    for _ in range(5):
        begun.task.poll()

    assert confirmed(database) == before


def test_heartbeats_say_that_a_capture_lives(database: Database, capture: Begin) -> None:
    make(database, "a", rows=0)
    database.execute("CREATE TABLE beats (at timestamptz)")
    query = "INSERT INTO beats VALUES (now())"
    begun = capture(
        heartbeat_interval_ms="1", heartbeat_action_query=query, table_include_list="public.a"
    )
    begun.poll_until(lambda: len(begun.records) >= 2)

    assert {record.topic for record in begun.records} == {f"__debezium-heartbeat.{PREFIX}"}
    assert begun.records[0].key.values == {"serverName": PREFIX}
    (beats,) = database.execute("SELECT count(*) FROM beats").fetchone() or (0,)
    assert beats >= 2


def test_columns_and_tables_that_are_left_out_are_not_told(
    database: Database, capture: Begin
) -> None:
    make(database, "a", "b", rows=1)
    begun = capture(table_exclude_list="public\\.b", column_exclude_list="public.a.note")

    rows = begun.take(1)
    database.execute("INSERT INTO b VALUES (2, 'y')")
    database.execute("UPDATE a SET note = 'secret'")

    assert rows == [("r", 1, (1,))]
    assert begun.take(1) == [("u", 1, (1,))]


def test_other_columns_may_be_the_key(database: Database, capture: Begin) -> None:
    make(database, "a", rows=1)
    database.execute("ALTER TABLE a REPLICA IDENTITY FULL")
    begun = capture(message_key_columns="public.a:note,id")
    begun.take(1)

    database.execute("UPDATE a SET note = 'y'")

    assert begun.take(3) == [("d", "x", 1, None), (None, "x", 1, None), ("c", "y", 1, (1, "y"))]


def test_a_published_config_runs_as_it_is(database: Database, capture: Begin) -> None:
    """Its host is another one, and so is the slot, which belongs to the server of all tests."""
    database.execute("CREATE SCHEMA inventory")
    make(database, "inventory.customers", "public.others", rows=1)
    begun = capture(tasks_max="1", schema_include_list="inventory", plugin_name="pgoutput")

    rows = begun.take(1)
    database.execute("UPDATE others SET note = 'y'")
    database.execute("UPDATE inventory.customers SET note = 'y'")

    assert rows == [("r", 1, (1, "x"))]
    assert begun.take(1) == [("u", 1, (1, "y"))]
    assert {record.topic for record in begun.records} == {f"{PREFIX}.inventory.customers"}


def test_a_label_that_an_enum_got_later_is_told(database: Database, capture: Begin) -> None:
    database.execute("CREATE TYPE mood AS ENUM ('bad')")
    database.execute("CREATE TABLE a (id integer PRIMARY KEY, now mood)")
    begun = capture(snapshot_mode="no_data")
    begun.poll_until(lambda: begun.context.offsets != {})

    database.execute("INSERT INTO a VALUES (1, 'bad')")
    begun.take(1)
    database.execute("ALTER TYPE mood ADD VALUE 'good'")
    database.execute("INSERT INTO a VALUES (2, 'good')")

    assert begun.take(1) == [("c", 2, (2, "good"))]


def test_without_rows_only_changes_are_told(database: Database, capture: Begin) -> None:
    make(database, "a")
    begun = capture(snapshot_mode="no_data")
    begun.poll_until(lambda: begun.context.offsets != {})

    database.execute("INSERT INTO a VALUES (3, 'new')")

    assert begun.take(1) == [("c", 3, (3, "new"))]


def test_rows_alone_are_told_once_and_leave_no_slot(database: Database, capture: Begin) -> None:
    make(database, "a")
    begun = capture(snapshot_mode="initial_only")
    begun.take(2)

    begun.crash()
    for _ in range(3):
        begun.poll()

    assert len(begun.records) == 2
    assert confirmed(database) == 0


def test_a_slot_that_was_made_anew_is_noticed(database: Database, capture: Begin) -> None:
    make(database, "a", rows=1)
    begun = capture()
    begun.take(1)
    begun.context.close()
    slot = database.info.dbname
    wait = "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE active"
    database.execute(f"{wait} AND slot_name = %s", (slot,))
    database.execute("SELECT pg_drop_replication_slot(%s)", (slot,))

    begun.crash()
    with pytest.raises(
        ConnectorError, match=rf"the slot {slot} does not exist.*snapshot\.mode=when_needed"
    ):
        begun.poll()
    database.execute("INSERT INTO a VALUES (2, 'new')")
    begun.restart(snapshot_mode="when_needed")

    assert begun.take(2) == [("r", 1, (1, "x")), ("r", 2, (2, "new"))]


def test_a_slot_has_one_reader(database: Database, capture: Begin) -> None:
    make(database, "a", rows=1)
    first = capture()
    first.take(1)
    first.poll()
    second = capture()

    with pytest.raises(RetriableError, match="another client reads the slot"):
        second.task.poll()
    second.context.retries = 6
    with pytest.raises(ConnectorError, match=r"give each connector its own slot\.name"):
        second.task.poll()


def test_a_publication_that_is_missing_is_asked_for(database: Database, capture: Begin) -> None:
    with pytest.raises(ConnectorError, match=r"there is no publication dbz_publication.*create it"):
        capture(publication_autocreate_mode="disabled").poll()
    with pytest.raises(ConnectorError, match="no table matches"):
        capture(publication_autocreate_mode="filtered").poll()


def test_the_connector_promises_what_all_do(database: Database) -> None:
    written = config(database)

    contract.definition_is_sound(PostgresCapture)
    contract.tasks_are_told_what_is_defined(PostgresCapture(), written)
    contract.secrets_stay_hidden(PostgresCapture(), {**written, "database.port": "1"})


@pytest.mark.parametrize(
    "key",
    [
        "column.mask.with.8.chars",
        "column.mask.hash.SHA-256.with.salt.abc",
        "converters",
        "signal.data.collection",
        "database.sslcert",
    ],
)
def test_keys_that_are_not_served_are_refused_by_their_names(key: str) -> None:
    assert PostgresCapture.refused.get(key)


def test_only_offsets_of_its_own_are_taken(database: Database) -> None:
    parsed = parse_config(PostgresCapture.definition(), config(database))

    PostgresCapture().alter_offsets(parsed, {"p": {"lsn_commit": 5}, "q": None})
    with pytest.raises(ConfigError, match="p: lsn_commit is 'x'"):
        PostgresCapture().alter_offsets(parsed, {"p": {"lsn_commit": "x"}})
