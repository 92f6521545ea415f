"""CreatePartitions: more of them, never fewer."""

from collections.abc import Iterator

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from brokers.server.handlers import create_partitions
from tests.fakes.asking import Desk

VERSIONS = range(4)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk(brokers=2) as opened:
        opened.twin.create_topic("orders", partitions=2)
        opened.follow()
        yield opened


def wanted(
    name: str = "orders", count: int = 4, brokers: list[list[int]] | None = None
) -> CreatePartitionsTopic:
    assignments = None
    if brokers is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=each) for each in brokers]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def ask(
    desk: Desk, version: int, *topics: CreatePartitionsTopic, validate_only: bool = False
) -> list[CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(
        topics=list(topics), timeout_ms=1000, validate_only=validate_only
    )
    results = desk.ask(create_partitions, version, request).results
    assert isinstance(results, list)
    return results


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_are_added(desk: Desk, version: int) -> None:
    (result,) = ask(desk, version, wanted())

    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    assert len(desk.twin.image.topics["orders"].partitions) == 4


@pytest.mark.parametrize("version", VERSIONS)
def test_a_trial_adds_nothing(desk: Desk, version: int) -> None:
    (result,) = ask(desk, version, wanted(), validate_only=True)

    assert result.error_code == ErrorCode.NONE
    assert len(desk.twin.image.topics["orders"].partitions) == 2


def test_the_new_ones_can_be_assigned_by_hand(desk: Desk) -> None:
    (result,) = ask(desk, 3, wanted(brokers=[[2], [2]]))

    partitions = desk.twin.image.topics["orders"].partitions
    assert result.error_code == ErrorCode.NONE
    assert [state.replicas for state in partitions[2:]] == [(2,), (2,)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (wanted("nobody"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wanted(count=2), ErrorCode.INVALID_PARTITIONS),
        (wanted(count=1), ErrorCode.INVALID_PARTITIONS),
        (wanted(count=0), ErrorCode.INVALID_PARTITIONS),
        (wanted(brokers=[[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wanted(brokers=[[1], [9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_the_cluster_refuses_is_told_with_a_reason(
    desk: Desk, version: int, topic: CreatePartitionsTopic, error: ErrorCode
) -> None:
    (result,) = ask(desk, version, topic)

    assert result.error_code == error
    assert result.error_message
    assert len(desk.twin.image.topics["orders"].partitions) == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_named_twice_is_left_alone(desk: Desk, version: int) -> None:
    results = ask(desk, version, wanted(count=3), wanted(count=4))

    assert [(result.name, result.error_code) for result in results] == [
        ("orders", ErrorCode.INVALID_REQUEST)
    ]
    assert len(desk.twin.image.topics["orders"].partitions) == 2
