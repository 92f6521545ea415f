"""Topics and configs over the wire, asked of a broker of ours."""

from collections.abc import Iterator

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import (
    ConfigEdit,
    EditKind,
    NewRecord,
    NewTopic,
    Position,
    PositionKind,
    ResourceKind,
)
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow

TOPIC = ResourceKind.TOPIC
BROKER_ID = 1


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": 3}) as broker:
        yield Connection(bootstrap=broker.bootstrap)


@pytest.fixture
def admin(connection: Connection) -> Admin:
    return Admin(connection)


def set_on(admin: Admin, topic: str) -> dict[str, str | None]:
    return {
        config.key: config.value for config in admin.configs(TOPIC, topic) if not config.is_default
    }


def test_a_topic_is_listed_with_its_partitions_and_replicas(admin: Admin) -> None:
    found = {topic.name: topic for topic in admin.topics()}

    assert (found["orders"].partitions, found["orders"].replication_factor) == (3, 1)
    assert not found["orders"].is_internal


def test_a_topic_is_described_down_to_its_leaders(admin: Admin) -> None:
    [topic] = admin.describe(["orders"])

    assert [partition.index for partition in topic.partitions] == [0, 1, 2]
    assert {partition.leader for partition in topic.partitions} == {BROKER_ID}
    assert {partition.isr for partition in topic.partitions} == {(BROKER_ID,)}
    assert topic.replication_factor == 1


def test_a_topic_lives_from_creation_to_deletion(admin: Admin) -> None:
    admin.create([NewTopic(name="brief", partitions=2, configs={"retention.ms": "1000"})])

    assert set_on(admin, "brief") == {"retention.ms": "1000"}
    admin.delete(["brief"])
    assert "brief" not in {topic.name for topic in admin.topics()}


def test_asking_for_a_topic_does_not_make_it(admin: Admin) -> None:
    with pytest.raises(KafkaFailure, match="topic nobody: the cluster does not know it") as caught:
        admin.describe(["nobody"])

    assert caught.value.kind is Kind.NOT_FOUND
    assert "nobody" not in {topic.name for topic in admin.topics()}


def test_a_dry_run_is_checked_and_makes_nothing(admin: Admin) -> None:
    admin.create([NewTopic(name="never")], is_dry_run=True)

    with pytest.raises(KafkaFailure, match="INVALID_CONFIG"):
        admin.create([NewTopic(name="never", configs={"no.such": "1"})], is_dry_run=True)
    assert "never" not in {topic.name for topic in admin.topics()}


@pytest.mark.parametrize(
    ("topic", "name", "kind"),
    [
        (NewTopic(name="orders"), "TOPIC_ALREADY_EXISTS", Kind.CONFLICT),
        (NewTopic(name="no good"), "INVALID_TOPIC_EXCEPTION", Kind.FAILED),
        (
            NewTopic(name="wide", replication_factor=3),
            "INVALID_REPLICATION_FACTOR",
            Kind.FAILED,
        ),
        (NewTopic(name="none", partitions=0), "INVALID_PARTITIONS", Kind.FAILED),
        (NewTopic(name="odd", configs={"retention.ms": "x"}), "INVALID_CONFIG", Kind.FAILED),
    ],
)
def test_a_topic_that_is_refused_says_why_by_kafkas_name(
    admin: Admin, topic: NewTopic, name: str, kind: Kind
) -> None:
    with pytest.raises(KafkaFailure) as caught:
        admin.create([topic])

    assert (caught.value.name, caught.value.kind) == (name, kind)
    assert caught.value.value == f"topic {topic.name}"


def test_a_topic_gets_more_partitions_and_never_fewer(admin: Admin) -> None:
    admin.create([NewTopic(name="growing", partitions=1)])

    admin.add_partitions("growing", 4)

    [topic] = admin.describe(["growing"])
    assert len(topic.partitions) == 4
    with pytest.raises(KafkaFailure, match="INVALID_PARTITIONS"):
        admin.add_partitions("growing", 3)


def test_configs_change_one_at_a_time(admin: Admin) -> None:
    admin.create([NewTopic(name="told", configs={"retention.ms": "1", "segment.ms": "60000"})])

    admin.alter_configs(
        TOPIC,
        "told",
        [
            ConfigEdit(key="retention.ms", value="2"),
            ConfigEdit(key="segment.ms", kind=EditKind.DELETE),
            ConfigEdit(key="cleanup.policy", kind=EditKind.APPEND, value="compact"),
        ],
    )

    assert set_on(admin, "told") == {"retention.ms": "2", "cleanup.policy": "delete,compact"}


def test_a_change_of_configs_can_be_checked_alone(admin: Admin) -> None:
    edits = [ConfigEdit(key="retention.ms", value="5")]

    admin.alter_configs(TOPIC, "orders", edits, is_dry_run=True)

    assert set_on(admin, "orders") == {}


def test_a_broker_that_does_not_exist_fails_at_once(admin: Admin) -> None:
    with pytest.raises(KafkaFailure, match=r"broker 77: there is no such broker \(known: 1\)"):
        admin.configs(ResourceKind.BROKER, "77")


def test_a_brokers_configs_are_named_with_their_source(admin: Admin) -> None:
    found = {config.key: config for config in admin.configs(ResourceKind.BROKER, "1")}

    assert found["node.id"].value == "1"
    assert found["node.id"].source == "STATIC_BROKER_CONFIG"
    assert found["node.id"].is_read_only


def test_a_place_in_a_partition_becomes_an_offset(connection: Connection, admin: Admin) -> None:
    admin.create([NewTopic(name="placed", partitions=2)])
    producer = TopicWriter(connection, "placed")
    for number in range(5):
        producer.send(NewRecord(value=b"x", partition=0, timestamp_ms=1_000 + number))
    producer.flush()

    def place(kind: PositionKind, value: int = 0) -> dict[int, int]:
        return admin.offsets("placed", [0, 1], Position(kind=kind, value=value))

    assert place(PositionKind.BEGINNING) == {0: 0, 1: 0}
    assert place(PositionKind.END) == {0: 5, 1: 0}
    assert place(PositionKind.OFFSET, 3) == {0: 3, 1: 3}
    assert place(PositionKind.TAIL, 2) == {0: 3, 1: 0}
    assert place(PositionKind.TAIL, 99) == {0: 0, 1: 0}
    assert place(PositionKind.TIME, 1_002) == {0: 2, 1: 0}
    assert place(PositionKind.TIME, 9_999) == {0: 5, 1: 0}


def test_a_partition_that_does_not_exist_is_named(admin: Admin) -> None:
    with pytest.raises(KafkaFailure, match="topic orders, partition 9") as caught:
        admin.offsets("orders", [9], Position(kind=PositionKind.END))

    assert caught.value.kind is Kind.NOT_FOUND


def test_topics_that_exist_are_found_among_others(admin: Admin) -> None:
    found = admin.find(["orders", "nothing", "a topic of no such name", "orders"])

    assert list(found) == ["orders"]
    assert [partition.index for partition in found["orders"].partitions] == [0, 1, 2]
    assert admin.find([]) == {}
