"""ElectLeaders: which partitions need no election, and which could have none."""

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import pytest

from brokers.cluster.image import NO_LEADER
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from brokers.server.handlers import elect_leaders
from brokers.server.handlers.elect_leaders import MAX_NAMED
from tests.fakes.asking import Desk

VERSIONS = range(3)
PREFERRED, UNCLEAN = 0, 1
NOT_NEEDED, UNKNOWN = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as opened:
        opened.twin.create_topic("orders", partitions=2)
        opened.follow()
        yield opened


def ask(desk: Desk, version: int, kind: int, *topics: TopicPartitions) -> ElectLeadersResponse:
    request = ElectLeadersRequest(election_type=kind, topic_partitions=list(topics) or None)
    answer = desk.ask(elect_leaders, version, request)
    assert isinstance(answer, ElectLeadersResponse)
    return answer


def codes(answer: ElectLeadersResponse) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, part.partition_id): part.error_code
        for topic in answer.replica_election_results
        for part in topic.partition_result
    }


def lose_leader(desk: Desk, topic: str, index: int) -> None:
    """The broker of a partition is away."""
    image = desk.context.image
    parts = list(image.topics[topic].partitions)
    parts[index] = replace(parts[index], leader=NO_LEADER)
    changed = replace(image.topics[topic], partitions=tuple(parts))
    desk.context.image = replace(image, topics=MappingProxyType({topic: changed}))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_who_leads_already_is_not_elected(desk: Desk, version: int, kind: int) -> None:
    answer = ask(
        desk,
        version,
        kind if version else PREFERRED,
        TopicPartitions(topic="orders", partitions=[0, 7]),
        TopicPartitions(topic="nobody", partitions=[0]),
    )

    assert codes(answer) == {
        ("orders", 0): NOT_NEEDED,
        ("orders", 7): UNKNOWN,
        ("nobody", 0): UNKNOWN,
    }


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_of_all_partitions_those_are_told_that_nobody_can_lead(
    desk: Desk, kind: int, code: ErrorCode
) -> None:
    assert [topic.topic for topic in ask(desk, 2, kind).replica_election_results] == ["orders"]
    assert codes(ask(desk, 2, kind)) == {}

    lose_leader(desk, "orders", 1)

    assert codes(ask(desk, 2, kind)) == {("orders", 1): code}


def test_a_type_of_election_that_is_none_is_refused(desk: Desk) -> None:
    assert ask(desk, 2, 7).error_code == ErrorCode.INVALID_REQUEST


def test_a_broker_that_has_not_joined_says_nothing_of_topics(desk: Desk) -> None:
    desk.context.is_serving = False

    answer = ask(desk, 2, PREFERRED, TopicPartitions(topic="nobody", partitions=[0]))

    assert (answer.error_code, codes(answer)) == (ErrorCode.NOT_CONTROLLER, {})


def test_more_partitions_than_an_answer_should_name_close_the_connection(desk: Desk) -> None:
    many = TopicPartitions(topic="orders", partitions=[0] * MAX_NAMED)

    with pytest.raises(AssertionError, match=f"{MAX_NAMED} are allowed"):
        ask(desk, 2, PREFERRED, many)
