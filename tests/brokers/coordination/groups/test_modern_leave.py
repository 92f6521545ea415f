"""How members go, and what they leave behind."""

import pytest

from brokers.coordination.groups.modern import GroupState, MemberState
from brokers.coordination.groups.modern_changes import (
    GroupEpoch,
    MemberSaid,
    MemberStands,
    MemberTarget,
)
from brokers.coordination.groups.modern_desk import REBALANCE, SESSION
from brokers.coordination.groups.modern_leave import rebalance_expired, session_expired
from brokers.coordination.shard import CancelTimer, Outcome, TimerKey
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.coordination.groups.consumers import GROUP, Desk, changes_of, cluster
from tests.builders.clusters import topic_id

APPLES = topic_id("apples")


def desk_of_one() -> Desk:
    desk = Desk(cluster(apples=2))
    desk.join("a", "apples", instance_id="i")
    return desk


def test_a_member_that_leaves_is_deleted_in_order_and_the_group_has_a_new_epoch() -> None:
    desk = desk_of_one()

    response = desk.beat("a", -1, instance_id="i")

    assert (response.member_id, response.member_epoch) == ("a", -1)
    assert changes_of(desk.outcome)[:3] == [
        MemberStands("a", None),
        MemberTarget("a", None),
        MemberSaid("a", None),
    ]
    assert [type(change) for change in changes_of(desk.outcome)[3:]] == [GroupEpoch]
    assert CancelTimer(TimerKey(SESSION, GROUP, "a")) in desk.outcome.timers
    assert CancelTimer(TimerKey(REBALANCE, GROUP, "a")) in desk.outcome.timers
    assert desk.group is not None
    assert desk.group.state is GroupState.EMPTY


def test_a_static_member_that_leaves_for_a_while_keeps_its_partitions() -> None:
    desk = desk_of_one()

    response = desk.beat("a", -2, instance_id="i")

    assert (response.member_id, response.member_epoch) == ("a", -2)
    assert desk.member("a").assigned == {APPLES: {0: 0, 1: 0}}
    assert desk.member("a").is_away
    assert [type(change) for change in changes_of(desk.outcome)] == [MemberStands]


@pytest.mark.parametrize(
    ("member_id", "instance_id", "code"),
    [
        ("b", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", "j", ErrorCode.UNKNOWN_MEMBER_ID),
        ("b", "i", ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_only_a_member_can_leave(member_id: str, instance_id: str, code: ErrorCode) -> None:
    desk = desk_of_one()

    with pytest.raises(KafkaError) as refused:
        desk.beat(member_id, -1, instance_id=instance_id)

    assert refused.value.code is code


def test_a_silent_member_is_fenced_and_a_member_that_is_gone_is_not() -> None:
    desk = desk_of_one()

    desk.take(session_expired(desk.group, "a", desk.place, 0))
    assert desk.group is not None
    assert not desk.group.members
    assert session_expired(desk.group, "a", desk.place, 0) == Outcome()
    assert session_expired(None, "a", desk.place, 0) == Outcome()


def test_a_member_that_does_not_let_go_in_time_is_fenced() -> None:
    desk = desk_of_one()
    assert rebalance_expired(desk.group, "a", 2, desk.place, 0) == Outcome()
    desk.join("b", "apples")
    desk.beat("a", 2, instance_id="i")
    assert desk.member("a").state is MemberState.UNREVOKED_PARTITIONS

    assert rebalance_expired(desk.group, "a", 0, desk.place, 0) == Outcome()
    assert rebalance_expired(None, "a", 1, desk.place, 0) == Outcome()
    desk.take(rebalance_expired(desk.group, "a", 2, desk.place, 0))

    assert desk.group is not None
    assert set(desk.group.members) == {"b"}
    desk.beat("b", desk.member("b").epoch)
    assert desk.assigned("b") == {APPLES: {0, 1}}
