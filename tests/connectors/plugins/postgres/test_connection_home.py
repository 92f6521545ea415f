"""In a home that runs, no row and no record is lost, whoever is killed meanwhile."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.extras import requires
from tests.postgres import PostgresServer, postgres_server
from tests.scale import count

pytestmark = [requires("postgresql"), pytest.mark.slow]

KILLS = count(2, 2, long=10)
# About a second of work for the sink, so that a kill falls into the midst of it.
RECORDS = 10_000
PARTITIONS = 2
TABLE = "CREATE TABLE events (seq bigserial, id bigint NOT NULL, part integer NOT NULL)"


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


def ask(url: str, query: str) -> Any:
    with psycopg.connect(url, autocommit=True) as database:
        return database.execute(query).fetchone()


def wait_for(home: ConnectorsHome, number: Callable[[], int], least: int) -> float:
    """Wait until a number is as high as it must become; return how long that took."""
    return home.wait(lambda: number() >= least, f"{least} rows or records")


def wait_for_calm(home: ConnectorsHome, name: str) -> None:
    """Wait until the work of a slice is known: a task whose workers die in a row is stopped."""
    home.wait(lambda: all(task.crashes == 0 for task in home.tasks(name)), "progress to be noted")


def produce(home: ConnectorsHome, first: int) -> None:
    producer = Producer({"bootstrap.servers": home.connection.bootstrap, "linger.ms": 5})
    for number in range(first, first + RECORDS):
        part = number % PARTITIONS
        value = json.dumps({"id": number, "part": part}).encode()
        producer.produce("events", value, partition=part)
        producer.poll(0)
    assert producer.flush(60) == 0


def test_each_record_is_one_row_through_kills_of_workers_and_the_database(
    home: ConnectorsHome, server: PostgresServer, report: Callable[[str], None]
) -> None:
    url = server.make_database("events")
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(TABLE)
    admin = AdminClient({"bootstrap.servers": home.connection.bootstrap})
    admin.create_topics([NewTopic("events", PARTITIONS)])["events"].result(30)
    home.create(
        "rows",
        {
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "tasks.max": "2",
            "topics": "events",
            "connection.url": f"jdbc:postgresql://127.0.0.1:{server.port}/events?user=samsa",
            "connection.backoff.ms": "500",
            "retry.backoff.ms": "500",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        },
    )

    def written() -> int:
        return int(ask(url, "SELECT count(*) FROM events")[0])

    total, took = 0, []
    for step in range(KILLS + 1):
        before = written()
        produce(home, total)
        total += RECORDS
        wait_for(home, written, before + 1)
        at = written()
        if step < KILLS:
            home.kill_worker_of("rows")
        else:
            server.restart()
        took.append(wait_for(home, written, total))
        wait_for_calm(home, "rows")
        report(
            f"killed with {at - before:,} of {RECORDS:,} rows written; all after {took[-1]:.1f} s"
        )

    told = ask(url, "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM events")
    disorder = ask(
        url,
        "SELECT count(*) FROM (SELECT id, lag(id) OVER (PARTITION BY part ORDER BY seq) AS before"
        " FROM events) AS e WHERE id < before",
    )
    assert told == (total, total, 0, total - 1)
    assert disorder == (0,)
    assert [task.state for task in home.tasks("rows")] == ["RUNNING", "RUNNING"]


def read(home: ConnectorsHome, topic: str) -> list[int]:
    """Return the ids of a topic's records, in their order."""
    settings = {"bootstrap.servers": home.connection.bootstrap, "group.id": "reader"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    try:
        place = TopicPartition(topic, 0, OFFSET_BEGINNING)
        _, end = consumer.get_watermark_offsets(place, timeout=30)
        consumer.assign([place])
        values: list[int] = []
        while len(values) < end:
            for message in consumer.consume(1000, timeout=30):
                assert message.error() is None, message.error()
                values.append(json.loads(message.value() or b"")["id"])
        return values
    finally:
        consumer.close()


def test_each_row_is_a_record_through_kills_of_workers_and_the_database(
    home: ConnectorsHome, server: PostgresServer, report: Callable[[str], None]
) -> None:
    url = server.make_database("sources")
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("CREATE TABLE things (id bigserial PRIMARY KEY, name text)")
    admin = AdminClient({"bootstrap.servers": home.connection.bootstrap})
    admin.create_topics([NewTopic("from-things", 1)])["from-things"].result(30)
    home.create(
        "things",
        {
            "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
            "connection.url": f"jdbc:postgresql://127.0.0.1:{server.port}/sources?user=samsa",
            "connection.backoff.ms": "500",
            "mode": "incrementing",
            "table.whitelist": "things",
            "topic.prefix": "from-",
            "poll.interval.ms": "100",
            "batch.max.rows": "500",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        },
    )

    total = 0
    for step in range(KILLS + 1):
        with psycopg.connect(url, autocommit=True) as database:
            rows = "INSERT INTO things (name) SELECT 'x' FROM generate_series(1, %s)"
            database.execute(rows, (RECORDS,))
        total += RECORDS
        if step < KILLS:
            wait_for(home, last, total - RECORDS + 1)
            home.kill_worker_of("things")
        else:
            server.restart()
        wait_for(home, last, total)
        wait_for_calm(home, "things")

    told = read(home, "from-things")
    first = list(dict.fromkeys(told))
    report(f"{total:,} rows, {len(told) - total:,} of them written again after {KILLS} kills")
    assert first == list(range(1, total + 1))


def last() -> int:
    """Return the id up to which rows are known to be in the topic."""
    from connectors.models import SourceOffset  # noqa: PLC0415 - Django is set up by now

    found = SourceOffset.objects.filter(connector__name="things").first()
    return int(found.offset["incrementing"]) if found else 0
