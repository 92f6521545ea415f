"""How far a group is behind: exact, within seconds, and the same by every way to find out.

The board reads the inspection ports of all brokers, the command line asks over the wire. The group
is a real client's, on brokers that are processes of their own; once for real time, at a thousand
records a second, and once with times that are made up.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.processes import Process
from brokers.inspection.client import Inspection, InspectionFailed
from brokers.inspection.lag import LagBoard, PartitionLag
from brokers.key_files import read_keys
from cli.groups import groups
from gateway.kafka.connection import Connection
from gateway.kafka.groups import Groups
from gateway.kafka.values import Place
from tests.cli.data_commands import Shell
from tests.cluster import Cluster, running_cluster
from tests.fakes.broker import SECRET
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
PAUSED_SECONDS = count(4, 10)
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

Row = tuple[int, int]


@contextmanager
def board_of(cluster: Cluster) -> Iterator[LagBoard]:
    """The board over all brokers of a cluster."""
    secret = read_keys(cluster.home.secret_file)[0]
    with ExitStack() as stack:
        inspections = [
            stack.enter_context(inspection_of(cluster.pid(f"broker-{number}"), secret))
            for number in range(1, BROKERS + 1)
        ]
        yield LagBoard(inspections)


def inspection_of(pid: int, secret: str) -> Inspection:
    """A broker has two ports, of which one answers this question."""
    for port in Process(pid).listening_ports():
        inspection = Inspection("127.0.0.1", port, secret)
        try:
            inspection.is_serving()
        except (InspectionFailed, http.client.HTTPException):
            inspection.close()
        else:
            return inspection
    raise AssertionError(f"broker process {pid} has no inspection port that answers")


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


def total(lags: Sequence[PartitionLag]) -> Row:
    """Records in all partitions, and how old the oldest one is."""
    return sum(lag.records or 0 for lag in lags), max((lag.ms or 0 for lag in lags), default=0)


def told_by_command(bootstrap: str) -> dict[int, Row]:
    rows = Shell(bootstrap).json(groups, "lag", GROUP)
    return {row["partition"]: (row["lag"], row["lag_ms"]) for row in rows}


def told_by_board(board: LagBoard) -> dict[int, Row]:
    board.refresh()
    assert board.failures == {}
    return {
        lag.partition: (lag.records, lag.ms)
        for lag in board.lags()
        if lag.records is not None and lag.ms is not None
    }


def check_agreement(board: LagBoard, bootstrap: str) -> None:
    """While nothing is produced: the same records, and a time between two looks at the board."""
    before = told_by_board(board)
    told = told_by_command(bootstrap)
    after = told_by_board(board)

    assert set(told) == set(before) == set(after)
    for partition, (records, ms) in told.items():
        assert before[partition][0] == records == after[partition][0]
        assert before[partition][1] - MS_OFF <= ms <= after[partition][1] + MS_OFF


@pytest.mark.alone
def test_a_consumer_that_pauses_is_as_many_seconds_behind(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    environment = {"SAMSA_DEFAULTS": json.dumps(SETTINGS)}
    with (
        running_cluster(tmp_path / "home", brokers=BROKERS, environment=environment) as cluster,
        board_of(cluster) as board,
    ):
        create_topic(cluster.bootstrap)
        source = Source(cluster.bootstrap)
        for _ in range(READ):
            source.write()
        source.flush()
        with reading_consumer(cluster.bootstrap) as consumer:
            read_all(consumer, READ)
            board.refresh()
            consumer.pause(consumer.assignment())

            began, ended = source.write_evenly(PER_SECOND * PAUSED_SECONDS)
            records, ms = wait_for_records(board, PER_SECOND * PAUSED_SECONDS, ended)
            seen = time.time() - ended

            report(
                f"{records} records and {ms / 1e3:.2f} s behind, seen after {seen:.2f} s; "
                f"written in {ended - began:.2f} s"
            )
            assert abs(records - PER_SECOND * PAUSED_SECONDS) <= RECORDS_OFF
            assert abs(ms - PAUSED_SECONDS * 1e3) <= MS_OFF
            (group,) = board.groups()
            assert (group.group, group.state, group.members) == (GROUP, "Stable", 1)
            assert group.rebalances >= 1
            check_agreement(board, cluster.bootstrap)

            consumer.resume(consumer.assignment())
            read_all(consumer, PER_SECOND * PAUSED_SECONDS)
            wait_for_records(board, 0, time.time())
            check_agreement(board, cluster.bootstrap)


def wait_for_records(board: LagBoard, number: int, since: float) -> Row:
    """Looks until the board shows so many records, or the time for that is over."""
    pause = threading.Event()
    while True:
        board.refresh()
        records, ms = total(board.lags())
        if abs(records - number) <= RECORDS_OFF or time.time() - since > SEEN_SECONDS:
            assert abs(records - number) <= RECORDS_OFF, f"{records} records behind, not {number}"
            return records, ms
        pause.wait(TICK_SECONDS)


def test_board_and_command_agree_about_times_that_are_made_up(tmp_path: Path) -> None:
    records, base_ms = 10_000, int(time.time() * 1e3) - 10_000
    with broker_beside(tmp_path, topics={TOPIC: PARTITIONS}, defaults=SETTINGS) as broker:
        source = Source(broker.bootstrap)
        for number in range(records):
            source.write(base_ms + number)
        source.flush()
        asked = Groups(Connection(bootstrap=broker.bootstrap))
        places = [Place(topic=TOPIC, partition=index) for index in range(PARTITIONS)]
        asked.commit(GROUP, dict.fromkeys(places, 0))
        running = broker.running
        with Inspection(running.host, running.ready.inspection_port, SECRET) as inspection:
            board = LagBoard([inspection])

            before_ms = time.time() * 1e3
            board.refresh()
            after_ms = time.time() * 1e3

            lags = board.lags()
            assert total(lags)[0] == records
            for lag in lags:
                assert lag.ms is not None
                first_ms = base_ms + lag.partition
                assert int(before_ms) <= first_ms + lag.ms <= after_ms + 1
            check_agreement(board, broker.bootstrap)

            # The middle, the log's start, the end, and beyond it.
            each = records // PARTITIONS
            delete_records(broker.bootstrap, 1, 100)
            asked.commit(GROUP, dict(zip(places, (each // 2, 50, each, each + 9), strict=True)))
            wait_for_records(board, each // 2 + (each - 100), time.time())
            told: list[Any] = [(lag.records, lag.is_lost) for lag in board.lags()]
            assert told == [(each // 2, False), (each - 100, True), (0, False), (0, False)]
            middle_ms = base_ms + each // 2 * PARTITIONS
            assert abs(time.time() * 1e3 - middle_ms - (board.lags()[0].ms or 0)) <= MS_OFF
            check_agreement(board, broker.bootstrap)


def delete_records(bootstrap: str, partition: int, before: int) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    [future] = client.delete_records([TopicPartition(TOPIC, partition, before)]).values()
    future.result(SECONDS)
