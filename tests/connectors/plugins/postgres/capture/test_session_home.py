"""In a running home, a topic ends with the state of its tables, whatever process is killed."""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

import psycopg
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from connectors.plugins.postgres.capture.positions import parse
from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.extras import requires
from tests.postgres import PostgresServer, postgres_server
from tests.scale import count

pytestmark = [requires("postgresql"), pytest.mark.slow]

# The first one falls into the snapshot.
KILLS = count(2, 2, long=5)
# About a second of work.
ROWS = 5_000
TABLES = ("orders", "customers")
TABLE = "CREATE TABLE {} (id bigint PRIMARY KEY, note text, amount numeric(12, 2), big text)"
FILL = "INSERT INTO {} SELECT n, 'first', n, NULL FROM generate_series(1, %s) AS n"
# Large enough to be kept beside the row, and not repeated in the log.
BIG = "SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300) AS n"
NAME = "capture"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Return a server of this file's own, since it is restarted."""
    with postgres_server() as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectorsHome]:
    folder, allowed = tmp_path_factory.mktemp("home"), {"SAMSA_CONNECT_TARGETS": "127.0.0.1"}
    with connectors_home(folder, workers=2, environment=allowed) as running:
        yield running


class Writer:
    """Changes rows at random, in a thread, until it is stopped."""

    def __init__(self, url: str, *, seed: int) -> None:
        self._url = url
        self._random = random.Random(seed)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.transactions = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as database:
            while not self._is_over.is_set():
                with database.transaction():
                    for _ in range(self._random.randint(1, 5)):
                        self._change(database)
                self.transactions += 1

    def _change(self, database: psycopg.Connection[Any]) -> None:
        table, row = self._random.choice(TABLES), self._random.randint(1, ROWS)
        new = ROWS + self._random.randint(1, ROWS)
        match self._random.randint(0, 5):
            case 0:
                database.execute(f"DELETE FROM {table} WHERE id = %s", (row,))  # noqa: S608
            case 1:
                database.execute(
                    f"INSERT INTO {table} (id, note, big) VALUES (%s, 'new', ({BIG}))"  # noqa: S608
                    " ON CONFLICT DO NOTHING",
                    (new,),
                )
            case 2:
                database.execute(
                    f"UPDATE {table} SET id = %s WHERE id = %s"  # noqa: S608
                    f" AND NOT EXISTS (SELECT FROM {table} WHERE id = %s)",
                    (new, row, new),
                )
            case _:
                database.execute(
                    f"UPDATE {table} SET note = note || '.', amount = %s WHERE id = %s",  # noqa: S608
                    (self._random.randint(0, 9999), self._random.choice((row, new))),
                )


def config(server: PostgresServer) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "samsa",
        "database.dbname": "shop",
        "topic.prefix": "shop",
        "table.include.list": "public\\.orders,public\\.customers",
        "publication.autocreate.mode": "filtered",
        "snapshot.fetch.size": "100",
        "status.update.interval.ms": "500",
        "slot.retry.delay.ms": "300",
        "retriable.restart.connector.wait.ms": "300",
        "decimal.handling.mode": "string",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }


def stored() -> dict[str, Any]:
    from connectors.models import SourceOffset  # noqa: PLC0415 - Django is set up by now

    found = SourceOffset.objects.filter(connector__name=NAME).first()
    return dict(found.offset) if found else {}


def is_streaming(behind: int) -> bool:
    offset = stored()
    return bool(offset) and "snapshot" not in offset and offset["lsn_commit"] > behind


def is_busy(kill: int, at: int) -> bool:
    """Whether there is work to be interrupted: first of the snapshot, then of the stream."""
    return is_streaming(at) if kill else bool(stored())


def ask(url: str, query: str) -> Any:
    with psycopg.connect(url, autocommit=True) as database:
        return (database.execute(query).fetchone() or (None,))[0]


def rebuilt(home: ConnectorsHome, table: str) -> tuple[dict[int, Any], int, int]:
    """Return the rows that a topic leads to, and how many records and tombstones it has."""
    consumer = Consumer(
        {
            "bootstrap.servers": home.connection.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
        }
    )
    rows: dict[int, Any] = {}
    tombstones = at = 0
    try:
        place = TopicPartition(f"shop.public.{table}", 0, OFFSET_BEGINNING)
        _, end = consumer.get_watermark_offsets(place, timeout=30)
        consumer.assign([place])
        while at < end:
            for message in consumer.consume(min(1000, end - at), timeout=1):
                assert message.error() is None, message.error()
                at = (message.offset() or 0) + 1
                key = json.loads(message.key() or b"")["id"]
                if message.value() is None:
                    tombstones += 1
                    rows.pop(key, None)
                elif (after := json.loads(message.value() or b"")["after"]) is not None:
                    rows[key] = merged(rows.get(key), after)
    finally:
        consumer.close()
    return rows, end, tombstones


def merged(before: Any, after: dict[str, Any]) -> tuple[Any, ...]:
    """Return a row; a large value that was left alone is the one of before."""
    if after["big"] == "__debezium_unavailable_value":
        assert before is not None, "a row was told before it was changed"
        after["big"] = before[2]
    return after["note"], after["amount"], after["big"]


def test_topics_lead_to_the_tables_through_kills_and_a_restart(
    home: ConnectorsHome, server: PostgresServer, report: Callable[[str], None]
) -> None:
    url = server.make_database("shop")
    with psycopg.connect(url, autocommit=True) as database:
        for table in TABLES:
            database.execute(TABLE.format(table))
            database.execute(FILL.format(table), (ROWS,))
    admin = AdminClient({"bootstrap.servers": home.connection.bootstrap})
    compacted = {"cleanup.policy": "compact"}
    topics = [NewTopic(f"shop.public.{table}", 1, config=compacted) for table in TABLES]
    for made in admin.create_topics(topics).values():
        made.result(30)

    took: list[float] = []
    with Writer(url, seed=1) as writer:
        home.create(NAME, config(server))
        for kill in range(KILLS):
            at = stored().get("lsn_commit", 0)
            took.append(home.wait(partial(is_busy, kill, at), "work in progress"))
            was = stored()
            home.kill_worker_of(NAME)
            report(f"killed at {was}")
        took.append(home.wait(lambda: is_streaming(0), "the snapshot to be done"))
    with Writer(url, seed=2) as later:
        took.append(home.wait(lambda: later.transactions > 50, "further changes"))
    began = time.monotonic()
    server.restart()
    took.append(time.monotonic() - began)
    with Writer(url, seed=3) as last:
        took.append(home.wait(lambda: last.transactions > 50, "changes behind the restart"))
    end = parse(ask(url, "SELECT pg_current_wal_lsn()::text"))
    took.append(home.wait(lambda: stored()["lsn_commit"] >= end, "all changes to be stored"))

    for table in TABLES:
        rows, records, tombstones = rebuilt(home, table)
        with psycopg.connect(url) as database:
            query = f"SELECT id, note, amount::text, big FROM {table}"  # noqa: S608
            expected = {row[0]: tuple(row[1:]) for row in database.execute(query)}
        assert rows == expected
        report(f"{table}: {len(expected):,} rows from {records:,} records, {tombstones:,} gone")
    home.wait(
        lambda: (
            parse(ask(url, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots") or "0/0")
            >= end
        ),
        "the server to be told",
    )
    assert [task.state for task in home.tasks(NAME)] == ["RUNNING"]
    transactions = writer.transactions + later.transactions + last.transactions
    report(f"{transactions:,} transactions; steps took {', '.join(f'{s:.1f}' for s in took)} s")
