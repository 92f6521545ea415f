"""From parts of an admin request to outcomes, and from outcomes to the fields of a response."""

from collections.abc import Iterator

import pytest

from brokers.cluster.proposals import CreateTopic, DeleteTopic, Outcome
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from brokers.server.admin_outcomes import MAX_ACTIONS, error_fields, refusal, repeated
from brokers.server.handlers import delete_topics
from tests.fakes.asking import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    with Desk() as opened:
        yield opened


def test_only_what_stands_more_than_once_is_repeated() -> None:
    assert repeated(["a", "b", "a", "c", "c", "c"]) == {"a", "c"}
    assert repeated([]) == frozenset()


def test_success_has_no_message() -> None:
    assert error_fields(Outcome()) == (ErrorCode.NONE, None)


def test_a_refusal_is_told_as_it_is() -> None:
    told = error_fields(refusal(ErrorCode.INVALID_CONFIG, "why"))

    assert told == (ErrorCode.INVALID_CONFIG, "why")


@pytest.mark.parametrize(
    "error",
    [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.NOT_CONTROLLER],
)
def test_trouble_between_broker_and_store_sends_the_client_elsewhere(error: ErrorCode) -> None:
    code, message = error_fields(Outcome(error=error))

    assert code is ErrorCode.NOT_CONTROLLER
    assert code.retriable
    assert message


def test_what_was_refused_already_is_never_proposed(desk: Desk) -> None:
    desk.twin.create_topic("orders")
    desk.follow()
    states = [DeleteTopicState(), DeleteTopicState(name="orders")]

    answer = desk.ask(delete_topics, 6, DeleteTopicsRequest(topics=states, timeout_ms=1000))

    assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST, 0]
    assert [each.action for each in desk.store.proposals] == [DeleteTopic(name="orders")]


def test_more_changes_than_the_limit_are_refused_unseen(desk: Desk) -> None:
    desk.twin.propose_now(CreateTopic(name="t0"))
    desk.follow()
    states = [DeleteTopicState(name=f"t{number}") for number in range(MAX_ACTIONS + 1)]

    answer = desk.ask(delete_topics, 6, DeleteTopicsRequest(topics=states, timeout_ms=1000))

    assert {each.error_code for each in answer.responses} == {ErrorCode.POLICY_VIOLATION}
    assert desk.store.proposals == []
    assert "t0" in desk.twin.image.topics
