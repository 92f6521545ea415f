"""Lag in records and in time, as anyone can find it out over the wire."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from gateway.kafka.connection import Connection
from gateway.kafka.lag import lags
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, PartitionLag
from tests.builders.cleaning import clean_now, rows_of
from tests.fakes.broker_thread import broker_beside
from tests.fakes.group_service import GroupService, MadeUpGroup, served

pytestmark = pytest.mark.slow

RECORDS = 20
MIB = 2**20
NOW_S = 1_700_000_000.0
NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def started(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[GroupService, Connection]]:
    service = GroupService()
    folder = tmp_path_factory.mktemp("broker")
    with (
        served(service),
        broker_beside(folder, topics={"orders": 3, "clicks": 2, "short": 1}) as broker,
    ):
        connection = Connection(bootstrap=broker.bootstrap, timeout_s=10)
        for topic in ("orders", "clicks"):
            producer = TopicWriter(connection, topic)
            for number in range(RECORDS):
                # Second n before now is written as record RECORDS - n.
                written_ms = NOW_MS - (RECORDS - number) * 1000
                producer.send(NewRecord(value=b"x", partition=0, timestamp_ms=written_ms))
            producer.flush()
        yield service, connection


def measured(
    started: tuple[GroupService, Connection], *names: str, **groups: MadeUpGroup
) -> dict[tuple[str, str, int], PartitionLag]:
    service, connection = started
    service.groups = dict(groups)
    found = lags(connection, names, now_s=lambda: NOW_S)
    return {(lag.group, lag.place.topic, lag.place.partition): lag for lag in found}


def test_lag_is_counted_in_records_and_since_the_next_one_was_written(
    started: tuple[GroupService, Connection],
) -> None:
    found = measured(
        started,
        g=MadeUpGroup(offsets={("orders", 0): 15, ("clicks", 0): 0, ("orders", 1): 0}),
    )

    behind = found["g", "orders", 0]
    assert (behind.committed, behind.end, behind.records, behind.ms) == (15, 20, 5, 5_000)
    assert (found["g", "clicks", 0].records, found["g", "clicks", 0].ms) == (20, 20_000)
    assert (found["g", "orders", 1].records, found["g", "orders", 1].ms) == (0, 0)


def test_a_group_at_the_end_or_beyond_it_waits_for_nothing(
    started: tuple[GroupService, Connection],
) -> None:
    found = measured(
        started,
        done=MadeUpGroup(offsets={("orders", 0): RECORDS}),
        beyond=MadeUpGroup(offsets={("orders", 0): RECORDS + 7}),
    )

    for name in ("done", "beyond"):
        lag = found[name, "orders", 0]
        assert (lag.records, lag.ms, lag.is_lost) == (0, 0, False)


def test_groups_that_stand_at_different_places_are_told_apart(
    started: tuple[GroupService, Connection],
) -> None:
    found = measured(
        started,
        **{f"g{offset}": MadeUpGroup(offsets={("orders", 0): offset}) for offset in (3, 9, 18)},
    )

    assert {lag.committed: (lag.records, lag.ms) for lag in found.values()} == {
        3: (17, 17_000),
        9: (11, 11_000),
        18: (2, 2_000),
    }


def test_only_the_groups_that_are_named_are_measured(
    started: tuple[GroupService, Connection],
) -> None:
    one = MadeUpGroup(offsets={("orders", 0): 1})

    found = measured(started, "b", a=one, b=one)

    assert [lag.group for lag in found.values()] == ["b"]


def test_a_topic_that_is_gone_hides_no_other(started: tuple[GroupService, Connection]) -> None:
    found = measured(started, g=MadeUpGroup(offsets={("gone", 0): 4, ("orders", 0): 19}))

    gone = found["g", "gone", 0]
    assert (gone.committed, gone.end, gone.records, gone.ms) == (4, None, None, None)
    assert (found["g", "orders", 0].records, found["g", "orders", 0].ms) == (1, 1_000)


def test_what_was_deleted_before_it_was_read_is_flagged(
    started: tuple[GroupService, Connection],
) -> None:
    _, connection = started
    producer = TopicWriter(connection, "short")
    for number in range(10):
        producer.send(NewRecord(value=b"x", partition=0, timestamp_ms=NOW_MS - 10 + number))
    producer.flush()
    delete_records(connection, "short", 6)

    lag = measured(started, g=MadeUpGroup(offsets={("short", 0): 2}))["g", "short", 0]

    assert (lag.committed, lag.records, lag.ms, lag.is_lost) == (2, 4, 4, True)


def test_of_a_compacted_topic_the_next_record_that_is_left_counts(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    service = GroupService()
    with served(service), broker_beside(tmp_path_factory.mktemp("broker")) as broker:
        configs = {"cleanup.policy": "compact", "segment.bytes": str(MIB)}
        broker.call(lambda: broker.running.twin.create_topic("kept", configs=configs))
        connection = Connection(bootstrap=broker.bootstrap, timeout_s=10)
        producer = TopicWriter(connection, "kept")
        for number in range(6):
            written_ms = NOW_MS - 6_000 + number * 1000
            producer.send(NewRecord(key=b"k", value=b"x" * (MIB // 2), timestamp_ms=written_ms))
            producer.flush()
        log = broker.running.context.replicas.leader("kept", 0).log
        broker.call(lambda: clean_now(log, now_ms=NOW_MS))
        [first, *_rest] = broker.call(lambda: rows_of(log))
        assert first.offset > 1

        found = measured((service, connection), g=MadeUpGroup(offsets={("kept", 0): 1}))

        lag = found["g", "kept", 0]
        assert (lag.records, lag.is_lost) == (5, False)
        assert lag.ms == NOW_MS - first.timestamp


def test_a_partition_without_a_leader_hides_no_other_and_costs_no_time(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    service = GroupService()
    with (
        served(service),
        broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": 1}) as broker,
    ):
        twin, context = broker.running.twin, broker.running.context

        def lose_a_broker() -> int:
            dead = twin.register_now(host="127.0.0.1", port=1).broker_id
            topic = twin.create_topic("half", partitions=2)
            twin.kill(dead)
            return next(
                index for index, state in enumerate(topic.partitions) if state.leader == dead
            )

        lost = broker.call(lose_a_broker)
        broker.wait(context.wait_applied(twin.image.version))
        places = {("half", lost): 3, ("half", 1 - lost): 0, ("orders", 0): 0}
        connection = Connection(bootstrap=broker.bootstrap, timeout_s=10)
        began = time.monotonic()

        found = measured((service, connection), g=MadeUpGroup(offsets=places))

        assert time.monotonic() - began < connection.timeout_s / 2
        without = found["g", "half", lost]
        assert (without.committed, without.end, without.records, without.ms) == (
            *(3, None, None),
            None,
        )
        assert [found["g", *place].records for place in places] == [None, 0, 0]


def test_no_group_has_no_lag(started: tuple[GroupService, Connection]) -> None:
    assert measured(started) == {}


def delete_records(connection: Connection, topic: str, before: int) -> None:
    client = AdminClient({"bootstrap.servers": connection.bootstrap})
    [future] = client.delete_records([TopicPartition(topic, 0, before)]).values()
    future.result(10)
