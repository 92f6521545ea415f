"""What a pattern can mean, against what a caller may read."""

from typing import Any

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.access.token_scopes import Scope, grants_of
from gateway.kafka.topic_pattern import TopicPattern
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume.bodies import subscription_of
from gateway.rest.consume.rights import readable
from tests.fakes.asgi import scope_of

CLUSTER = "cluster-1"
PATTERN = TopicPattern("ord.*")


async def silent(*_message: object) -> Any:
    raise AssertionError("rights are known without the client")


def call(*patterns: str) -> Call:
    rights = Rights([grant for one in patterns for grant in grants_of(Scope.READ, one)])
    caller = Caller(kind=CallerKind.TOKEN, name="reader", rights=rights, number=1)
    scope = scope_of("GET", "/", {})
    return Call(scope, silent, silent, caller=caller, cluster_id=CLUSTER, parameters={})


def test_a_pattern_means_the_topics_that_its_caller_may_read() -> None:
    names = readable(call("orders-*", "odd"), PATTERN)

    assert names.among(["orders-1", "orders", "odd", "secret"]) == ["orders-1", "odd"]


def test_a_pattern_of_a_caller_that_may_read_nothing_is_refused() -> None:
    with pytest.raises(ApiError, match="matches no topic") as caught:
        readable(call(), PATTERN)

    assert caught.value.code is Code.NOT_ALLOWED


@pytest.mark.parametrize(
    "pattern",
    ["a{1,255}{1,255}{1,255}", "pub\\.a{1,255}{1,255}", "(", "x" * 1_001, "", r"(a)\1"],
)
def test_a_pattern_that_costs_too_much_is_refused_before_it_is_used(pattern: str) -> None:
    with pytest.raises(ApiError, match="topic_pattern: ") as caught:
        subscription_of({"topic_pattern": pattern})

    assert caught.value.code is Code.UNPROCESSABLE
