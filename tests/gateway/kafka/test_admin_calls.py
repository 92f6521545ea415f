"""What all questions and changes have in common: when they are asked again, and how they fail."""

import pytest

from gateway.kafka.admin_calls import READ_ATTEMPTS, AdminCalls
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure, Kind, failure


@pytest.fixture
def calls() -> AdminCalls:
    # Nothing is sent there.
    return AdminCalls(Connection(bootstrap="127.0.0.1:1"))


@pytest.mark.parametrize(
    ("name", "times", "attempts"),
    [
        ("BROKER_NOT_AVAILABLE", READ_ATTEMPTS - 1, READ_ATTEMPTS),
        ("BROKER_NOT_AVAILABLE", READ_ATTEMPTS, READ_ATTEMPTS),
        ("GROUP_ID_NOT_FOUND", 1, 1),
    ],
)
def test_a_question_is_asked_again_where_the_connection_broke_and_not_for_ever(
    calls: AdminCalls, name: str, times: int, attempts: int
) -> None:
    asked: list[Deadline] = []

    def ask(deadline: Deadline) -> str:
        asked.append(deadline)
        if len(asked) <= times:
            raise failure(name, "somewhere")
        return "answer"

    if times < attempts:
        assert calls.read(ask) == "answer"
    else:
        with pytest.raises(KafkaFailure, match=name):
            calls.read(ask)

    assert len(asked) == attempts
    assert len(set(asked)) == 1


def test_what_cannot_be_sent_is_the_callers_mistake(calls: AdminCalls) -> None:
    with pytest.raises(KafkaFailure, match="Expected at least one group") as caught:
        calls.send(lambda: calls.client.describe_consumer_groups([]), "no groups")

    assert caught.value.kind is Kind.USAGE


def test_a_property_that_does_not_exist_is_a_usage_failure() -> None:
    with pytest.raises(KafkaFailure, match=r"no\.such") as caught:
        AdminCalls(Connection(bootstrap="127.0.0.1:1", properties={"no.such": "1"}))

    assert caught.value.kind is Kind.USAGE
