"""DescribeGroups: classic groups in every version, and what is refused."""

from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_groups import DescribeGroupsRequest
from brokers.server.handlers import describe_groups, group_descriptions
from tests.brokers.coordination.groups.test_shard import (
    GROUP,
    SUBSCRIPTION,
    commit,
    desk,
    enter,
    settle,
)
from tests.fakes.group_desk import GroupDesk
from tests.fakes.group_handlers import AWAY, GroupHandlers

__all__ = ["desk"]
NOT_ASKED = -(2**31)
# Read, delete, describe, describe and alter configs, as Kafka's numbers for them.
ALL_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11


def ask(handlers: GroupHandlers, *group_ids: str, version: int = 6, **said: Any) -> Any:
    request = DescribeGroupsRequest(groups=list(group_ids), **said)
    return handlers.ask(describe_groups, request, version).groups


@pytest.mark.parametrize("version", range(7))
def test_every_version_shows_a_group_with_its_members(desk: GroupDesk, version: int) -> None:
    member_id = settle(desk)

    (group,) = ask(GroupHandlers(desk), GROUP, version=version)

    assert (group.error_code, group.error_message) == (ErrorCode.NONE, None)
    assert (group.group_id, group.group_state) == (GROUP, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.member_metadata) == (member_id, SUBSCRIPTION)
    assert member.member_assignment == b"all"
    assert group.authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_is_none_is_dead(desk: GroupDesk, version: int) -> None:
    enter(desk)

    groups = ask(GroupHandlers(desk), "nowhere", GROUP, version=version)

    assert [group.group_id for group in groups] == ["nowhere", GROUP]
    for group in groups:
        assert group.group_state == "Dead"
        is_told = version >= 6
        assert group.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.NONE)
        assert bool(group.error_message) is is_told


@pytest.mark.parametrize("version", [5, 6])
def test_a_group_that_is_elsewhere_is_an_error_of_its_own(desk: GroupDesk, version: int) -> None:
    settle(desk)

    away, here = ask(GroupHandlers(desk, away={"away"}), "away", GROUP, version=version)

    assert (away.error_code, away.group_state) == (ErrorCode.NOT_COORDINATOR, "")
    assert away.error_message == (AWAY.message if version == 6 else None)
    assert (here.error_code, here.group_state) == (ErrorCode.NONE, "Stable")


def test_operations_are_told_to_who_asks_for_them(desk: GroupDesk) -> None:
    commit(desk, ("orders", 0), group="")
    asked = {"include_authorized_operations": True}
    handlers = GroupHandlers(desk)

    simple, unknown = ask(handlers, "", "nowhere", **asked)
    _simple, dead = ask(handlers, "", "nowhere", version=5, **asked)

    assert (simple.group_state, simple.authorized_operations) == ("Empty", ALL_OPERATIONS)
    assert unknown.authorized_operations == NOT_ASKED
    assert dead.authorized_operations == ALL_OPERATIONS


def test_no_group_is_asked_for_and_none_is_shown(desk: GroupDesk) -> None:
    assert ask(GroupHandlers(desk)) == []


def test_a_request_about_too_many_groups_is_refused_for_each_of_them(desk: GroupDesk) -> None:
    settle(desk)
    group_ids = [GROUP, *map(str, range(1_000))]

    groups = ask(GroupHandlers(desk), *group_ids)

    assert [group.group_id for group in groups] == group_ids
    assert {group.error_code for group in groups} == {ErrorCode.INVALID_REQUEST}
    assert "1001 groups" in groups[0].error_message


def test_what_does_not_fit_in_an_answer_is_refused(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_descriptions, "MAX_ANSWER_BYTES", 200)
    settle(desk)

    groups = ask(GroupHandlers(desk), GROUP, GROUP, GROUP)

    codes = [group.error_code for group in groups]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert "200 bytes" in groups[2].error_message
