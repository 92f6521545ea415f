"""DeleteTopics: by name in all versions, by id in the last."""

from collections.abc import Iterator

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from brokers.protocol.schema import ZERO_UUID
from brokers.server.handlers import delete_topics
from tests.fakes.asking import Desk

VERSIONS = range(1, 7)
NO_TOPIC = b"\xee" * 16


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as opened:
        opened.twin.create_topic("orders")
        opened.twin.create_topic("payments")
        opened.follow()
        yield opened


def by_name(desk: Desk, version: int, *names: str) -> list[DeletableTopicResult]:
    request = DeleteTopicsRequest(timeout_ms=1000)
    if version < 6:
        request.topic_names = list(names)
    else:
        request.topics = [DeleteTopicState(name=name) for name in names]
    results = desk.ask(delete_topics, version, request).responses
    assert isinstance(results, list)
    return results


def by_state(desk: Desk, *topics: tuple[str | None, bytes]) -> list[DeletableTopicResult]:
    states = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics]
    results = desk.ask(
        delete_topics, 6, DeleteTopicsRequest(topics=states, timeout_ms=1000)
    ).responses
    assert isinstance(results, list)
    return results


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_deleted_by_name(desk: Desk, version: int) -> None:
    topic_id = desk.twin.image.topics["orders"].id

    (result,) = by_name(desk, version, "orders")

    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    assert result.topic_id == (topic_id if version >= 6 else ZERO_UUID)
    assert list(desk.twin.image.topics) == ["payments"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_name_that_is_none_is_unknown(desk: Desk, version: int) -> None:
    (result,) = by_name(desk, version, "nobody")

    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (result.name, result.topic_id) == ("nobody", ZERO_UUID)
    assert (result.error_message is not None) == (version >= 5)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_named_twice_is_left_alone_and_answered_once(desk: Desk, version: int) -> None:
    results = by_name(desk, version, "orders", "payments", "orders")

    assert [(result.name, result.error_code) for result in results] == [
        ("orders", ErrorCode.INVALID_REQUEST),
        ("payments", ErrorCode.NONE),
    ]
    assert list(desk.twin.image.topics) == ["orders"]


def test_a_topic_is_deleted_by_id(desk: Desk) -> None:
    topic_id = desk.twin.image.topics["orders"].id

    (result,) = by_state(desk, (None, topic_id))

    assert (result.name, result.topic_id, result.error_code) == ("orders", topic_id, 0)
    assert list(desk.twin.image.topics) == ["payments"]


def test_an_id_that_is_none_is_unknown(desk: Desk) -> None:
    (result,) = by_state(desk, (None, NO_TOPIC))

    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert (result.name, result.topic_id) == (None, NO_TOPIC)


def test_a_topic_needs_a_name_or_an_id_and_not_both(desk: Desk) -> None:
    topic_id = desk.twin.image.topics["orders"].id

    results = by_state(desk, (None, ZERO_UUID), ("orders", topic_id))

    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert len(desk.twin.image.topics) == 2


def test_a_topic_by_its_name_and_by_its_id_is_named_twice(desk: Desk) -> None:
    topic_id = desk.twin.image.topics["orders"].id

    results = by_state(desk, ("orders", ZERO_UUID), (None, topic_id))

    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert len(desk.twin.image.topics) == 2


@pytest.mark.parametrize("version", VERSIONS)
def test_deleting_can_be_switched_off(version: int) -> None:
    with Desk(defaults={"delete.topic.enable": "false"}) as desk:
        (result,) = by_name(desk, version, "orders")

    expected = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
    assert result.error_code == expected
