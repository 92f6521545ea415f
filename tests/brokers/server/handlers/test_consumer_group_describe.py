"""ConsumerGroupDescribe: consumer groups in both versions, and what is refused."""

from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from brokers.server.handlers import consumer_group_describe
from tests.brokers.coordination.groups.test_shard import GROUP, desk, enter, settle
from tests.brokers.server.handlers.test_describe_groups import ALL_OPERATIONS, NOT_ASKED
from tests.fakes.group_desk import GroupDesk
from tests.fakes.group_handlers import AWAY, GroupHandlers

__all__ = ["desk"]


def ask(handlers: GroupHandlers, *group_ids: str, version: int = 1, **said: Any) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=list(group_ids), **said)
    return handlers.ask(consumer_group_describe, request, version).groups


@pytest.mark.parametrize(("version", "member_type"), [(0, -1), (1, 1)])
def test_both_versions_show_a_group_with_its_members(
    desk: GroupDesk, version: int, member_type: int
) -> None:
    enter(desk)

    (group,) = ask(GroupHandlers(desk), GROUP, version=version)

    assert (group.error_code, group.error_message) == (ErrorCode.NONE, None)
    assert (group.group_id, group.group_state, group.assignor_name) == (GROUP, "Stable", "uniform")
    assert group.group_epoch == group.assignment_epoch >= 1
    (member,) = group.members
    assert (member.member_id, member.member_type) == ("m1", member_type)
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_id, topic.topic_name) == (desk.image.topics["orders"].id, "orders")
    assert topic.partitions == [0, 1]
    assert member.target_assignment == member.assignment
    assert group.authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", [0, 1])
def test_each_group_that_cannot_be_shown_has_an_error_of_its_own(
    desk: GroupDesk, version: int
) -> None:
    settle(desk, group="classic")
    enter(desk)
    asked = ["", "classic", "nowhere", "away", GROUP]

    groups = ask(
        GroupHandlers(desk, away={"", "away"}),
        *asked,
        version=version,
        include_authorized_operations=True,
    )

    assert [group.group_id for group in groups] == asked
    assert [group.error_code for group in groups] == [
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NONE,
    ]
    assert [group.error_message for group in groups[1:]] == [
        "Group classic is not a consumer group.",
        "Group nowhere not found.",
        AWAY.message,
        None,
    ]
    operations = [group.authorized_operations for group in groups]
    assert operations == [NOT_ASKED] * 4 + [ALL_OPERATIONS]


def test_a_request_about_too_many_groups_is_refused_for_each_of_them(desk: GroupDesk) -> None:
    enter(desk)
    group_ids = [GROUP, *map(str, range(1_000))]

    groups = ask(GroupHandlers(desk), *group_ids)

    assert [group.group_id for group in groups] == group_ids
    assert {group.error_code for group in groups} == {ErrorCode.INVALID_REQUEST}
