"""ConsumerGroupHeartbeat: who may join under which id, and what is refused before any group."""

from typing import Any

import pytest

from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.values import Who
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from brokers.server.handlers import consumer_group_heartbeat
from tests.brokers.coordination.groups.test_shard import GROUP, desk
from tests.fakes.group_desk import GroupDesk
from tests.fakes.group_handlers import CLIENT, GroupHandlers, joining

__all__ = ["desk"]
URL_SAFE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def ask(handlers: GroupHandlers, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> Any:
    return handlers.ask(consumer_group_heartbeat, request, version)


def group_of(desk: GroupDesk) -> ConsumerGroup:
    group = desk.shard.group(GROUP)
    assert isinstance(group, ConsumerGroup)
    return group


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_learns_what_to_read(desk: GroupDesk, version: int) -> None:
    answer = ask(GroupHandlers(desk), joining(GROUP, "m1", "orders"), version)

    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert answer.member_id == "m1"
    assert answer.member_epoch >= 1
    assert answer.heartbeat_interval_ms == desk.settings.consumer_heartbeat_interval_ms
    (topic,) = answer.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (desk.image.topics["orders"].id, [0, 1])
    assert group_of(desk).members["m1"].who == Who(CLIENT, "/127.0.0.1")


def test_a_member_stays_and_leaves(desk: GroupDesk) -> None:
    handlers = GroupHandlers(desk)
    epoch = ask(handlers, joining(GROUP, "m1", "orders")).member_epoch

    beat = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m1", member_epoch=epoch)
    stayed = ask(handlers, beat)
    assert (stayed.error_code, stayed.member_epoch) == (ErrorCode.NONE, epoch)
    assert stayed.assignment is None

    farewell = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m1", member_epoch=-1)
    left = ask(handlers, farewell)
    assert (left.error_code, left.member_epoch) == (ErrorCode.NONE, -1)
    assert not group_of(desk).members


def test_in_version_0_a_newcomer_without_an_id_is_given_one(desk: GroupDesk) -> None:
    handlers = GroupHandlers(desk)

    given = [ask(handlers, joining(GROUP, "", "orders"), 0).member_id for _ in range(3)]

    assert set(group_of(desk).members) == set(given)
    assert len(set(given)) == 3
    assert {len(member_id) for member_id in given} == {22}
    assert URL_SAFE.issuperset("".join(given))


def test_in_version_1_a_newcomer_brings_its_id(desk: GroupDesk) -> None:
    answer = ask(GroupHandlers(desk), joining(GROUP, "", "orders"), 1)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == "MemberId can't be empty."
    assert desk.shard.group(GROUP) is None


@pytest.mark.parametrize(
    ("version", "changed", "code"),
    [
        (0, {"member_id": "", "member_epoch": 3}, ErrorCode.INVALID_REQUEST),
        (0, {"member_id": "", "member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        (1, {"group_id": ""}, ErrorCode.INVALID_REQUEST),
        (1, {"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        (1, {"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        (1, {"member_epoch": 3}, ErrorCode.GROUP_ID_NOT_FOUND),
        (1, {"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
        (1, {"group_id": "away"}, ErrorCode.NOT_COORDINATOR),
        (
            1,
            {"subscribed_topic_names": None, "subscribed_topic_regex": "("},
            ErrorCode.INVALID_REGULAR_EXPRESSION,
        ),
    ],
)
def test_what_is_refused_is_told_by_a_code_and_a_sentence(
    desk: GroupDesk, version: int, changed: dict[str, Any], code: ErrorCode
) -> None:
    request = joining(GROUP, "m1", "orders")
    for name, value in changed.items():
        setattr(request, name, value)

    answer = ask(GroupHandlers(desk, away={"away"}), request, version)

    assert answer.error_code == code
    assert answer.error_message
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)


def test_the_answer_comes_once_it_is_safe(desk: GroupDesk) -> None:
    handlers = GroupHandlers(desk)

    with handlers.waiting():
        line = handlers.start(consumer_group_heartbeat, joining(GROUP, "m1", "orders"), 1)
        assert line.answers == []

    assert [answer.member_id for answer in line.answers] == ["m1"]
