"""DescribeTopicPartitions: page by page, until a cursor has led through everything."""

from collections.abc import Iterator

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from brokers.server.handlers import describe_topic_partitions
from brokers.server.handlers.describe_topic_partitions import MAX_PARTITIONS
from tests.fakes.asking import Desk

TOPICS = {"beta": 3, "alpha": 2, "gamma": 4}


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as opened:
        for name, partitions in TOPICS.items():
            opened.twin.create_topic(name, partitions=partitions)
        opened.follow()
        yield opened


def ask(
    desk: Desk, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    answer = desk.ask(describe_topic_partitions, 0, request)
    assert isinstance(answer, DescribeTopicPartitionsResponse)
    return answer


def indexes(answer: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [
        (topic.name, [partition.partition_index for partition in topic.partitions])
        for topic in answer.topics
    ]


def test_no_names_are_all_topics_sorted(desk: Desk) -> None:
    answer = ask(desk)

    assert indexes(answer) == [
        ("alpha", [0, 1]),
        ("beta", [0, 1, 2]),
        ("gamma", [0, 1, 2, 3]),
    ]
    assert answer.next_cursor is None


def test_a_topic_is_described_in_full(desk: Desk) -> None:
    (topic,) = ask(desk, "beta").topics

    assert topic.topic_id == desk.twin.image.topics["beta"].id
    assert (topic.error_code, topic.is_internal) == (0, False)
    assert topic.topic_authorized_operations == 3576
    partition = topic.partitions[1]
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
    assert partition.offline_replicas == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 9])
def test_cursors_lead_through_everything_once(desk: Desk, limit: int) -> None:
    found: list[tuple[str | None, int]] = []
    cursor = None
    for _page in range(20):
        answer = ask(desk, limit=limit, cursor=cursor)
        page = [(name, index) for name, numbers in indexes(answer) for index in numbers]
        assert 0 < len(page) <= limit
        found += page
        if answer.next_cursor is None:
            break
        cursor = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)

    assert found == [(name, index) for name in sorted(TOPICS) for index in range(TOPICS[name])]


def test_a_page_that_ends_with_a_topic_names_the_next_one(desk: Desk) -> None:
    answer = ask(desk, limit=2)

    assert answer.next_cursor == Cursor(topic_name="beta", partition_index=0)


def test_the_broker_has_a_limit_of_its_own(desk: Desk) -> None:
    desk.twin.create_topic("wide", partitions=MAX_PARTITIONS + 1)
    desk.follow()

    answer = ask(desk, "wide", limit=10**6)

    assert len(answer.topics[0].partitions) == MAX_PARTITIONS
    assert answer.next_cursor == Cursor(topic_name="wide", partition_index=MAX_PARTITIONS)


def test_topics_that_are_not_there_stand_among_the_others(desk: Desk) -> None:
    answer = ask(desk, "gamma", "nobody", "a/b", "alpha")

    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("alpha", ErrorCode.NONE),
        ("gamma", ErrorCode.NONE),
        ("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_a_cursor_of_a_topic_that_was_deleted_goes_on_behind_it(desk: Desk) -> None:
    assert indexes(ask(desk, cursor=("b", 7)))[0] == ("beta", [0, 1, 2])


def test_a_cursor_beyond_the_last_partition_finds_none_of_that_topic(desk: Desk) -> None:
    answer = ask(desk, cursor=("beta", 3))

    assert indexes(answer) == [("beta", []), ("gamma", [0, 1, 2, 3])]


@pytest.mark.parametrize(
    ("names", "cursor"),
    [(("alpha",), ("alpha", -1)), (("alpha",), ("beta", 0))],
)
def test_a_request_that_contradicts_itself_is_refused_for_every_topic(
    desk: Desk, names: tuple[str, ...], cursor: tuple[str, int]
) -> None:
    answer = ask(desk, *names, cursor=cursor)

    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
    assert answer.next_cursor is None


@pytest.mark.parametrize("limit", [0, -1])
def test_whoever_asks_for_no_partitions_gets_one(desk: Desk, limit: int) -> None:
    answer = ask(desk, limit=limit)

    assert indexes(answer) == [("alpha", [0])]
    assert answer.next_cursor == Cursor(topic_name="alpha", partition_index=1)


def test_many_topics_that_are_not_there_take_more_than_one_page(desk: Desk) -> None:
    names = [f"nobody-{number:05}" for number in range(MAX_PARTITIONS + 5)]

    first = ask(desk, *names)
    assert first.next_cursor is not None
    rest = ask(desk, *names, cursor=(first.next_cursor.topic_name, 0))

    assert [topic.name for topic in (*first.topics, *rest.topics)] == names


def test_a_partition_whose_broker_is_away_has_no_leader(desk: Desk) -> None:
    desk.twin.set_fenced(1, is_fenced=True)
    desk.follow()

    partition = ask(desk, "alpha").topics[0].partitions[0]

    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.leader_id, partition.offline_replicas) == (-1, [1])
