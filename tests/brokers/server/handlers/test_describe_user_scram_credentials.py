"""DescribeUserScramCredentials: nobody has any, whoever is asked for."""

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from brokers.server.handlers import describe_user_scram_credentials
from brokers.server.handlers.describe_user_scram_credentials import MAX_USERS
from tests.fakes.asking import Desk


def ask(names: list[str] | None) -> DescribeUserScramCredentialsResponse:
    users = None if names is None else [UserName(name=name) for name in names]
    with Desk() as desk:
        request = DescribeUserScramCredentialsRequest(users=users)
        answer = desk.ask(describe_user_scram_credentials, 0, request)
    assert isinstance(answer, DescribeUserScramCredentialsResponse)
    return answer


@pytest.mark.parametrize("names", [None, []])
def test_all_users_are_none(names: list[str] | None) -> None:
    assert ask(names) == DescribeUserScramCredentialsResponse()


def test_a_user_by_name_is_not_found_and_one_named_twice_is_told_once() -> None:
    answer = ask(["a", "b", "a"])

    assert answer.error_code == ErrorCode.NONE
    assert [(each.user, each.error_code) for each in answer.results] == [
        ("a", ErrorCode.DUPLICATE_RESOURCE),
        ("b", ErrorCode.RESOURCE_NOT_FOUND),
    ]


def test_too_many_users_are_refused_together() -> None:
    answer = ask([str(number) for number in range(MAX_USERS + 1)])

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.results == []
