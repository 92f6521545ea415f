"""Descriptions of groups for clients."""

from dataclasses import replace
from typing import Any

import pytest

from brokers.coordination.groups import classic_operations, describe, modern_operations
from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.describe import Filters
from brokers.coordination.groups.modern import ClassicSide, ConsumerGroup, MemberState
from brokers.coordination.groups.values import Who
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from brokers.protocol.messages.list_groups import ListedGroup
from tests.brokers.coordination.groups.test_shard import (
    GROUP,
    SUBSCRIPTION,
    cluster,
    commit,
    desk,
    enter,
    join,
    settle,
)
from tests.builders import mixed_groups as mixed
from tests.fakes.group_desk import GroupDesk
from tests.fakes.group_handlers import joining

__all__ = ["desk"]
ME = Who("me", "/10.0.0.1")


def listed(desk: GroupDesk) -> dict[str, tuple[str, str, str]]:
    found = list(describe.listed(desk.shard))
    assert len({group.group_id for group in found}) == len(found)
    return {
        group.group_id: (group.protocol_type, group.group_state, group.group_type)
        for group in found
    }


def test_groups_of_all_kinds_are_listed_once(desk: GroupDesk) -> None:
    member_id = settle(desk, group="classic")
    commit(desk, ("orders", 0), group="classic", member_id=member_id, generation=1)
    join(desk, group="asked for an id")
    epoch = enter(desk).member_epoch
    commit(desk, ("orders", 0), member_id="m1", generation=epoch)
    commit(desk, ("orders", 0), group="simple")

    assert listed(desk) == {
        "classic": ("consumer", "Stable", "classic"),
        "asked for an id": ("", "Empty", "classic"),
        GROUP: ("consumer", "Stable", "consumer"),
        "simple": ("", "Empty", "classic"),
    }


def test_a_group_that_changes_while_it_is_listed_is_listed_once(desk: GroupDesk) -> None:
    commit(desk, ("orders", 0), group="simple")
    settle(desk)

    listing = describe.listed(desk.shard)
    first = next(listing)
    settle(desk, group="simple")

    assert [first.group_id, *(group.group_id for group in listing)] == [GROUP, "simple"]


@pytest.mark.parametrize(
    ("states", "types", "passes"),
    [
        ([], [], True),
        (["Stable"], [], True),
        (["empty", "STABLE"], [], True),
        (["Empty"], [], False),
        ([], ["CLASSIC"], True),
        ([], ["consumer"], False),
        ([], ["unheard of"], False),
        (["stable"], ["Classic", "share"], True),
        (["dead"], ["classic"], False),
    ],
)
def test_filters_ask_for_any_of_the_states_and_any_of_the_types_in_any_case(
    states: list[str], types: list[str], passes: bool
) -> None:
    group = ListedGroup(
        group_id="g", protocol_type="consumer", group_state="Stable", group_type="classic"
    )

    assert Filters.of(states, types).let_through(group) is passes


def test_a_stable_group_shows_what_its_members_want_and_have(desk: GroupDesk) -> None:
    member_id = settle(desk)

    group = describe.described(desk.shard, GROUP, 0)

    assert (group.error_code, group.error_message) == (ErrorCode.NONE, None)
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (member,) = group.members
    assert (member.member_id, member.group_instance_id) == (member_id, None)
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION, b"all")
    assert describe.size_of(group) > len(SUBSCRIPTION) + len(b"all")


def test_a_group_that_rebalances_shows_what_its_members_had(desk: GroupDesk) -> None:
    member_id = settle(desk)
    other = join(desk).member_id
    join(desk, other)

    group = describe.described(desk.shard, GROUP, 6)

    assert (group.group_state, group.protocol_type) == ("PreparingRebalance", "consumer")
    assert group.protocol_data == ""
    shown = {member.member_id: member for member in group.members}
    assert shown[member_id].member_metadata == b""
    assert shown[member_id].member_assignment == b"all"
    assert shown[other].member_assignment == b""


def test_a_static_member_shows_its_instance(desk: GroupDesk) -> None:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        group_instance_id="one",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )
    desk.ask(classic_operations.join(request, 9, ME))

    (member,) = describe.described(desk.shard, GROUP, 6).members

    assert member.group_instance_id == "one"
    assert (member.client_id, member.client_host) == ("me", "/10.0.0.1")


def test_a_group_that_has_offsets_alone_is_empty(desk: GroupDesk) -> None:
    commit(desk, ("orders", 0))

    group = describe.described(desk.shard, GROUP, 6)

    assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Empty")
    assert (group.protocol_type, group.protocol_data, group.members) == ("", "", [])


def test_missing_classic_group_is_dead_and_not_found_since_version_6(desk: GroupDesk) -> None:
    enter(desk)

    for group_id in (GROUP, "nowhere"):
        old = describe.described(desk.shard, group_id, 5)
        assert (old.error_code, old.error_message) == (ErrorCode.NONE, None)
        assert (old.group_state, old.protocol_type, old.members) == ("Dead", "", [])
    shown = [describe.described(desk.shard, group_id, 6) for group_id in (GROUP, "nowhere")]
    assert {group.error_code for group in shown} == {ErrorCode.GROUP_ID_NOT_FOUND}
    assert {group.group_state for group in shown} == {"Dead"}
    assert [group.error_message for group in shown] == [
        f"Group {GROUP} is not a classic group.",
        "Group nowhere not found.",
    ]


def partitions_of(assignment: Any) -> list[tuple[str, list[int]]]:
    return [(topic.topic_name, topic.partitions) for topic in assignment.topic_partitions]


def test_a_consumer_group_shows_what_members_have_and_will_have(desk: GroupDesk) -> None:
    epoch = enter(desk, "m1").member_epoch
    enter(desk, "m2")

    group = describe.described_consumer(desk.shard, GROUP)

    assert (group.group_id, group.group_state, group.assignor_name) == (
        GROUP,
        "Reconciling",
        "uniform",
    )
    assert group.group_epoch == group.assignment_epoch == epoch + 1
    shown = {member.member_id: member for member in group.members}
    m1, m2 = shown["m1"], shown["m2"]
    assert partitions_of(m1.assignment) == [("orders", [0, 1])]
    assert m1.member_epoch == epoch
    assert partitions_of(m2.assignment) == []
    (_, mine), (_, theirs) = (
        *partitions_of(m1.target_assignment),
        *partitions_of(m2.target_assignment),
    )
    assert sorted(mine + theirs) == [0, 1]
    assert (m1.subscribed_topic_names, m1.subscribed_topic_regex) == (["orders"], "")
    assert (m1.client_id, m1.client_host, m1.member_type) == ("client", "/127.0.0.1", 1)
    assert (m1.instance_id, m1.rack_id) == (None, None)
    assert describe.size_of_consumer(group) > 0


def test_the_assignor_is_the_one_that_members_ask_for(desk: GroupDesk) -> None:
    request = joining(GROUP, "m1", "orders")
    request.server_assignor, request.instance_id, request.rack_id = "range", "one", "r1"
    desk.ask(modern_operations.heartbeat(request, ME))

    group = describe.described_consumer(desk.shard, GROUP)

    assert group.assignor_name == "range"
    (member,) = group.members
    assert (member.instance_id, member.rack_id) == ("one", "r1")
    assert (member.client_id, member.client_host) == ("me", "/10.0.0.1")


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, 1),
        ({"classic": ClassicSide(session_timeout_ms=10_000, protocols=())}, 0),
        ({"state": MemberState.UNKNOWN}, -1),
    ],
)
def test_a_member_is_of_the_protocol_that_it_speaks(
    desk: GroupDesk, changed: dict[str, Any], kind: int
) -> None:
    enter(desk, "m1")
    group = desk.shard.group(GROUP)
    assert isinstance(group, ConsumerGroup)
    member = replace(group.members["m1"], **changed)
    desk.shard.apply(GroupBecame(GROUP, replace(group, members={"m1": member})))

    (shown,) = describe.described_consumer(desk.shard, GROUP).members

    assert shown.member_type == kind


def test_a_topic_that_is_gone_has_no_name_and_is_left_out(desk: GroupDesk) -> None:
    enter(desk, "m1", "orders", "other")
    desk.change(cluster(other=1))

    (member,) = describe.described_consumer(desk.shard, GROUP).members

    assert partitions_of(member.assignment) == [("other", [0])]
    assert partitions_of(member.target_assignment) == [("other", [0])]
    assert member.subscribed_topic_names == ["orders", "other"]


def test_missing_consumer_group_is_not_found_with_a_message(desk: GroupDesk) -> None:
    settle(desk)
    commit(desk, ("orders", 0), group="simple")

    sentences = {}
    for group_id in (GROUP, "simple", "nowhere"):
        with pytest.raises(KafkaError) as refused:
            describe.described_consumer(desk.shard, group_id)
        assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        sentences[group_id] = refused.value.message
    assert sentences == {
        GROUP: f"Group {GROUP} is not a consumer group.",
        "simple": "Group simple is not a consumer group.",
        "nowhere": "Group nowhere not found.",
    }


def test_a_group_of_both_protocols_is_one_of_the_consumer_protocol_to_who_asks() -> None:
    desk = mixed.desk_of(mixed.cluster(orders=2))
    classic = mixed.settle(desk, {"a": {"orders": [0, 1]}})["a"]
    mixed.enter(desk, "modern")

    assert listed(desk) == {GROUP: ("consumer", "Reconciling", "consumer")}
    assert describe.described(desk.shard, GROUP, 6).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    members = describe.described_consumer(desk.shard, GROUP).members
    kinds = {member.member_id: member.member_type for member in members}
    assert kinds == {classic: 0, "modern": 1}
    shown = next(member for member in members if member.member_id == classic)
    assert partitions_of(shown.assignment) == [("orders", [0, 1])]
    assert len(partitions_of(shown.target_assignment)[0][1]) == 1
