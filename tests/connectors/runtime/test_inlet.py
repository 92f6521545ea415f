"""Reads of assigned partitions, and commits without membership."""

from collections.abc import Iterator

import pytest

from connectors.runtime.inlet import ClusterInlet
from connectors.sdk.records import TopicPartition
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.groups import Groups
from gateway.kafka.producer import Producer
from gateway.kafka.values import NewRecord, Place, Record
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow

# A look takes a tenth of a second.
LOOKS = 100
A0 = TopicPartition(topic="a", partition=0)
B1 = TopicPartition(topic="b", partition=1)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"a": 1, "b": 2}) as broker:
        connection = Connection(bootstrap=broker.bootstrap)
        producer = Producer(connection)
        for number in range(5):
            for place in (A0, B1):
                record = NewRecord(value=b"%d" % number, partition=place.partition)
                producer.send(place.topic, record, lambda _: None)
        producer.flush()
        yield connection


def taken(client: ClusterInlet, count: int) -> list[Record]:
    found: list[Record] = []
    for _ in range(LOOKS):
        found += client.take(most=100, wait_s=0.1)
        if len(found) >= count:
            break
    return found


def test_partitions_are_read_from_their_offsets_on(connection: Connection) -> None:
    client = ClusterInlet(connection, "g1", reset="earliest")
    client.begin({A0: 3, B1: 4})

    found = taken(client, 3)
    client.close()

    assert sorted((r.topic, r.partition, r.offset) for r in found) == [
        ("a", 0, 3),
        ("a", 0, 4),
        ("b", 1, 4),
    ]


def test_the_ends_that_were_reached_are_known(connection: Connection) -> None:
    client = ClusterInlet(connection, "g0", reset="earliest")
    # The other partition of this topic has no records.
    empty = TopicPartition(topic="b", partition=0)
    client.begin({A0: 3, empty: 0})
    before = set(client.ended())

    for _ in range(LOOKS):
        client.take(most=100, wait_s=0.1)
        if len(client.ended()) == 2:
            break
    client.close()

    assert before == set()
    assert client.ended() == {A0, empty}


def test_committed_offsets_belong_to_the_group(connection: Connection) -> None:
    groups = Groups(connection)
    # Waits until the coordinator has loaded the group.
    assert groups.offsets(["g2"])["g2"] == {}
    client = ClusterInlet(connection, "g2", reset="earliest")
    client.begin({A0: 0})

    client.commit({A0: 2})
    client.close()

    assert groups.offsets(["g2"])["g2"] == {Place(topic="a", partition=0): 2}


def test_a_partition_can_be_read_again(connection: Connection) -> None:
    client = ClusterInlet(connection, "g3", reset="earliest")
    client.begin({A0: 0})
    first = taken(client, 5)

    client.seek(A0, 3)
    again = taken(client, 2)
    client.close()

    assert [record.offset for record in first] == [0, 1, 2, 3, 4]
    assert [record.offset for record in again] == [3, 4]


def test_missing_offset_without_a_reset_policy_is_a_failure(connection: Connection) -> None:
    client = ClusterInlet(connection, "g4", reset="error")
    client.begin({A0: 1000})

    with pytest.raises(KafkaFailure):
        taken(client, 1)

    client.close()
