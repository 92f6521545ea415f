"""CreateTopics: what becomes of each topic, and what is shown of it."""

from collections.abc import Iterator

import pytest

from brokers.cluster.image import ResourceType
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from brokers.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from brokers.protocol.schema import ZERO_UUID
from brokers.server.handlers import create_topics, metadata
from tests.fakes.asking import Desk

VERSIONS = range(2, 8)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as opened:
        opened.twin.create_topic("there.already")
        opened.follow()
        yield opened


def wanted(
    name: str = "orders", *, num_partitions: int = 2, replication_factor: int = 1
) -> CreatableTopic:
    return CreatableTopic(
        name=name, num_partitions=num_partitions, replication_factor=replication_factor
    )


def ask(
    desk: Desk, version: int, *topics: CreatableTopic, validate_only: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    results = desk.ask(create_topics, version, request).topics
    assert isinstance(results, list)
    return results


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_created_and_shown(desk: Desk, version: int) -> None:
    (result,) = ask(desk, version, wanted())

    created = desk.twin.image.topics["orders"]
    assert len(created.partitions) == 2
    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (2, 1)
        assert result.topic_config_error_code == 0
    assert result.topic_id == (created.id if version >= 7 else ZERO_UUID)


@pytest.mark.parametrize("version", VERSIONS)
def test_defaults_are_those_of_the_cluster(desk: Desk, version: int) -> None:
    (result,) = ask(desk, version, wanted(num_partitions=-1, replication_factor=-1))

    assert result.error_code == ErrorCode.NONE
    assert len(desk.twin.image.topics["orders"].partitions) == 1


def test_a_number_of_partitions_given_at_the_start_is_the_default() -> None:
    with Desk(defaults={"num.partitions": "3"}) as desk:
        ask(desk, 7, wanted(num_partitions=-1, replication_factor=-1))
        desk.ask(metadata, 12, MetadataRequest(topics=[MetadataRequestTopic(name="auto")]))

        counts = {name: len(topic.partitions) for name, topic in desk.twin.image.topics.items()}
        assert counts == {"orders": 3, "auto": 3}


def test_the_configuration_is_shown_with_its_sources(desk: Desk) -> None:
    topic = wanted()
    topic.configs = [CreatableTopicConfig(name="retention.ms", value="1000")]

    (result,) = ask(desk, 7, topic)

    assert result.configs is not None
    shown = {config.name: config for config in result.configs}
    assert len(shown) == 33
    own, other = shown["retention.ms"], shown["cleanup.policy"]
    assert (own.value, own.config_source) == ("1000", 1)
    assert (other.value, other.config_source) == ("delete", 5)
    assert not any(config.read_only or config.is_sensitive for config in result.configs)
    assert desk.twin.image.configs_of(ResourceType.TOPIC, "orders") == {"retention.ms": "1000"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_trial_is_answered_as_if_it_were_done(desk: Desk, version: int) -> None:
    (result,) = ask(desk, version, wanted(), validate_only=True)

    assert result.error_code == ErrorCode.NONE
    assert "orders" not in desk.twin.image.topics
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (2, 1)
        assert result.configs


REFUSED = [
    (wanted("there.already"), ErrorCode.TOPIC_ALREADY_EXISTS),
    (wanted("there_already"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (wanted(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (wanted("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (wanted("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (wanted(num_partitions=0), ErrorCode.INVALID_PARTITIONS),
    (wanted(replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
    (wanted(replication_factor=3), ErrorCode.INVALID_REPLICATION_FACTOR),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("topic", "error"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_the_cluster_refuses_is_told_with_a_reason(
    desk: Desk, version: int, topic: CreatableTopic, error: ErrorCode
) -> None:
    (result,) = ask(desk, version, topic)

    assert (result.name, result.error_code) == (topic.name, error)
    assert result.error_message
    assert result.topic_id == ZERO_UUID


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("key", "value"), [("no.such.key", "1"), ("retention.ms", "soon"), ("retention.ms", None)]
)
def test_a_bad_configuration_is_refused(
    desk: Desk, version: int, key: str, value: str | None
) -> None:
    topic = wanted()
    topic.configs = [CreatableTopicConfig(name=key, value=value)]

    (result,) = ask(desk, version, topic)

    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert key in (result.error_message or "")


def assigned(
    *pairs: tuple[int, list[int]], num_partitions: int = -1, replication_factor: int = -1
) -> CreatableTopic:
    topic = wanted(num_partitions=num_partitions, replication_factor=replication_factor)
    topic.assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in pairs
    ]
    return topic


def test_replicas_can_be_assigned_by_hand_in_any_order() -> None:
    with Desk(brokers=3) as desk:
        (result,) = ask(desk, 7, assigned((2, [3]), (0, [1]), (1, [2])))

        partitions = desk.twin.image.topics["orders"].partitions
        assert result.error_code == ErrorCode.NONE
        assert [state.replicas for state in partitions] == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (assigned((0, [1]), (0, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (2, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((-1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [9])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), num_partitions=1), ErrorCode.INVALID_REQUEST),
        (assigned((0, [1]), replication_factor=1), ErrorCode.INVALID_REQUEST),
    ],
)
def test_assignments_that_make_no_topic_are_refused(
    desk: Desk, topic: CreatableTopic, error: ErrorCode
) -> None:
    (result,) = ask(desk, 7, topic)

    assert result.error_code == error
    assert result.error_message


def test_topics_succeed_or_fail_one_by_one_and_in_order(desk: Desk) -> None:
    results = ask(
        desk, 7, wanted("b"), wanted("there.already"), wanted("twice"), wanted("a"), wanted("twice")
    )

    assert [(result.name, result.error_code) for result in results] == [
        ("b", ErrorCode.NONE),
        ("there.already", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("twice", ErrorCode.INVALID_REQUEST),
        ("a", ErrorCode.NONE),
    ]
    assert set(desk.twin.image.topics) == {"a", "b", "there.already"}


@pytest.mark.parametrize("version", VERSIONS)
def test_no_topics_are_answered_by_none(desk: Desk, version: int) -> None:
    assert ask(desk, version) == []
    assert desk.store.proposals == []


def test_a_broker_that_has_not_joined_sends_the_client_elsewhere(desk: Desk) -> None:
    desk.context.is_serving = False

    (result,) = ask(desk, 7, wanted())

    assert result.error_code == ErrorCode.NOT_CONTROLLER
    assert result.error_message


def test_a_broker_whose_epoch_is_old_sends_the_client_elsewhere(desk: Desk) -> None:
    desk.context.broker_epoch -= 1

    (result,) = ask(desk, 7, wanted())

    assert result.error_code == ErrorCode.NOT_CONTROLLER


def test_a_store_that_is_away_is_a_timeout(desk: Desk) -> None:
    desk.store.fault = ConnectionError("away")

    (result,) = ask(desk, 7, wanted())

    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "could not be changed: away; it may still happen" in (result.error_message or "")
