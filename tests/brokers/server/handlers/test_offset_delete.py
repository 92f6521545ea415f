"""OffsetDelete: which offsets go, and what is refused."""

from typing import Any

import pytest

from brokers.coordination.groups import classic_operations
from brokers.coordination.groups.values import Who
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from brokers.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from brokers.server.handlers import offset_delete
from tests.brokers.coordination.groups.test_shard import GROUP, commit, desk, enter, settle
from tests.fakes.group_desk import GroupDesk
from tests.fakes.group_handlers import GroupHandlers

__all__ = ["desk"]
Wanted = list[tuple[str, list[int]]]


def asking(wanted: Wanted, group_id: str = GROUP) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
            )
            for name, indexes in wanted
        ],
    )


def ask(handlers: GroupHandlers, wanted: Wanted, group_id: str = GROUP) -> Any:
    """The code at the top, and that of each partition."""
    answer = handlers.ask(offset_delete, asking(wanted, group_id), 0)
    return answer.error_code, {
        (topic.name, part.partition_index): part.error_code
        for topic in answer.topics
        for part in topic.partitions
    }


def test_what_no_member_reads_goes_and_the_rest_is_told(desk: GroupDesk) -> None:
    epoch = enter(desk).member_epoch
    commit(desk, ("orders", 0), ("other", 0), member_id="m1", generation=epoch)
    wanted: Wanted = [("orders", [0]), ("other", [0, 1, -1]), ("nowhere", [0])]

    top, parts = ask(GroupHandlers(desk), wanted)

    assert top == ErrorCode.NONE
    assert parts == {
        ("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("other", 0): ErrorCode.NONE,
        ("other", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("other", -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert set(desk.shard.offsets.of(GROUP)) == {("orders", 0)}


def test_a_partition_without_an_offset_is_no_error(desk: GroupDesk) -> None:
    commit(desk, ("orders", 0))
    wanted: Wanted = [("orders", [1]), ("orders", [0])]

    top, parts = ask(GroupHandlers(desk), wanted)

    assert (top, parts) == (
        ErrorCode.NONE,
        {("orders", 0): ErrorCode.NONE, ("orders", 1): ErrorCode.NONE},
    )
    assert not desk.shard.offsets.of(GROUP)


def test_members_that_do_not_say_what_they_read_keep_all(desk: GroupDesk) -> None:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="connect",
        protocols=[JoinGroupRequestProtocol(name="any", metadata=b"")],
    )
    desk.ask(classic_operations.join(request, 3, Who("", "")))
    desk.pass_time(0)

    assert ask(GroupHandlers(desk), [("orders", [0])]) == (ErrorCode.NON_EMPTY_GROUP, {})


@pytest.mark.parametrize(
    ("group_id", "code"),
    [
        ("", ErrorCode.INVALID_GROUP_ID),
        ("x" * 5_000, ErrorCode.INVALID_GROUP_ID),
        ("nowhere", ErrorCode.GROUP_ID_NOT_FOUND),
        ("away", ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_group_that_is_refused_answers_with_its_code_alone(
    desk: GroupDesk, group_id: str, code: ErrorCode
) -> None:
    settle(desk)

    assert ask(GroupHandlers(desk, away={"away"}), [("other", [0])], group_id) == (code, {})


def test_the_answer_comes_once_it_is_safe(desk: GroupDesk) -> None:
    commit(desk, ("other", 0))
    handlers = GroupHandlers(desk)

    with handlers.waiting():
        line = handlers.start(offset_delete, asking([("other", [0])]), 0)
        assert line.answers == []

    assert len(line.answers) == 1
