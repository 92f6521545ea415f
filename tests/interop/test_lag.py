"""How far a group is behind, as the command line shows it: exact, and within seconds.

The group is a real client's, on brokers that are processes of their own; once for real time, at a
thousand records a second, and once with times that are made up.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cli.groups import groups
from gateway.kafka.connection import Connection
from gateway.kafka.groups import Groups
from gateway.kafka.values import Place
from tests.cli.data_commands import Shell
from tests.cluster import running_cluster
from tests.fakes.broker_thread import broker_beside
from tests.scale import count

pytestmark = [pytest.mark.interop, pytest.mark.slow]

GROUP = "readers"
TOPIC = "orders"
PARTITIONS = 4
BROKERS = 2
# What the consumer reads before it is paused.
READ = 400
PER_SECOND = 1_000
PAUSED_SECONDS = count(4, 4, long=10)
# How soon all must be seen, and how exactly.
SEEN_SECONDS = 2.0
RECORDS_OFF = 1
MS_OFF = 1_000
TICK_SECONDS = 0.01
# What the client library takes for its own clock.
NOW = 0
# For what takes an instant on an idle machine.
SECONDS = 60.0
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


def create_topic(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    wanted = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    [future] = client.create_topics([wanted]).values()
    future.result(SECONDS)


class Source:
    """Writes records to all partitions in turn."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, "log_level": 0})
        self._written = 0

    def write(self, timestamp_ms: int = NOW) -> None:
        partition = self._written % PARTITIONS
        self._producer.produce(TOPIC, b"x", partition=partition, timestamp=timestamp_ms)
        self._written += 1

    def flush(self) -> None:
        assert self._producer.flush(SECONDS) == 0, "records are left"

    def write_evenly(self, number: int) -> tuple[float, float]:
        """A thousand each second; when the first was written, and the last was acknowledged."""
        pause = threading.Event()
        began = time.time()
        for index in range(number):
            while time.time() - began < index / PER_SECOND:
                pause.wait(TICK_SECONDS)
            self.write()
        self._producer.poll(0)
        self.flush()
        return began, time.time()


@contextmanager
def reading_consumer(bootstrap: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([TOPIC])
        yield consumer
    finally:
        consumer.close()


def read_all(consumer: Consumer, number: int) -> None:
    """Reads so many records, and commits."""
    deadline, read = time.monotonic() + SECONDS, 0
    while read < number:
        assert time.monotonic() < deadline, f"{read} of {number} records were read"
        for message in consumer.consume(number, TICK_SECONDS):
            assert message.error() is None, message.error()
            read += 1
    consumer.commit(asynchronous=False)


def lags(bootstrap: str) -> list[dict[str, Any]]:
    """Return the lag of the group in each partition, in order."""
    rows = Shell(bootstrap).json(groups, "lag", GROUP)
    return sorted(rows, key=itemgetter("partition"))


def wait_for_lag(bootstrap: str, number: int, since: float) -> int:
    """Wait until the group is so many records behind; return the age of the oldest one."""
    pause = threading.Event()
    while True:
        rows = lags(bootstrap)
        records = sum(row["lag"] for row in rows)
        if abs(records - number) <= RECORDS_OFF:
            return max(row["lag_ms"] for row in rows)
        assert time.time() - since < SEEN_SECONDS, f"{records} records behind, not {number}"
        pause.wait(TICK_SECONDS)


@pytest.mark.alone
def test_lag_of_paused_consumer_is_the_time_of_its_pause(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    environment = {"SAMSA_DEFAULTS": json.dumps(SETTINGS)}
    with running_cluster(tmp_path / "home", brokers=BROKERS, environment=environment) as cluster:
        create_topic(cluster.bootstrap)
        source = Source(cluster.bootstrap)
        for _ in range(READ):
            source.write()
        source.flush()
        with reading_consumer(cluster.bootstrap) as consumer:
            read_all(consumer, READ)
            consumer.pause(consumer.assignment())

            began, ended = source.write_evenly(PER_SECOND * PAUSED_SECONDS)
            ms = wait_for_lag(cluster.bootstrap, PER_SECOND * PAUSED_SECONDS, ended)
            now = time.time()

            report(
                f"{ms / 1e3:.2f} s behind, seen after {now - ended:.2f} s; "
                f"written in {ended - began:.2f} s"
            )
            # The age of the first unread record, however long the answer took.
            assert abs(ms - (now - began) * 1e3) <= MS_OFF

            consumer.resume(consumer.assignment())
            read_all(consumer, PER_SECOND * PAUSED_SECONDS)
            assert wait_for_lag(cluster.bootstrap, 0, time.time()) == 0


def test_lag_counts_records_and_their_own_times(tmp_path: Path) -> None:
    records, base_ms = 10_000, int(time.time() * 1e3) - 10_000
    each = records // PARTITIONS
    with broker_beside(tmp_path, topics={TOPIC: PARTITIONS}, defaults=SETTINGS) as broker:
        source = Source(broker.bootstrap)
        for number in range(records):
            source.write(base_ms + number)
        source.flush()
        asked = Groups(Connection(bootstrap=broker.bootstrap))
        places = [Place(topic=TOPIC, partition=index) for index in range(PARTITIONS)]
        asked.commit(GROUP, dict.fromkeys(places, 0))

        before_ms = time.time() * 1e3
        rows = lags(broker.bootstrap)
        after_ms = time.time() * 1e3

        for row in rows:
            first_ms = base_ms + row["partition"]
            assert row["lag"] == each
            assert int(before_ms) <= first_ms + row["lag_ms"] <= after_ms + 1

        # The middle, the log's start, the end, and beyond it.
        delete_records(broker.bootstrap, 1, 100)
        asked.commit(GROUP, dict(zip(places, (each // 2, 50, each, each + 9), strict=True)))
        before_ms = time.time() * 1e3
        rows = lags(broker.bootstrap)
        after_ms = time.time() * 1e3

        found = [(row["lag"], row["is_lost"]) for row in rows]
        assert found == [(each // 2, False), (each - 100, True), (0, False), (0, False)]
        middle_ms = base_ms + each // 2 * PARTITIONS
        assert int(before_ms) <= middle_ms + rows[0]["lag_ms"] <= after_ms + 1


def delete_records(bootstrap: str, partition: int, before: int) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    [future] = client.delete_records([TopicPartition(TOPIC, partition, before)]).values()
    future.result(SECONDS)
