"""What a heartbeat of the consumer protocol brings about, rule by rule."""

from dataclasses import replace
from typing import Any

import pytest

from brokers.coordination.groups.modern import ConsumerGroup, GroupState, MemberState
from brokers.coordination.groups.modern_changes import (
    GroupEpoch,
    MemberSaid,
    MemberStands,
    MemberTarget,
    OldMetadata,
    RegexResolved,
    TargetEpoch,
)
from brokers.coordination.groups.modern_desk import REBALANCE, SESSION, as_stale
from brokers.coordination.groups.modern_heartbeat import heard, steady
from brokers.coordination.shard import CancelTimer, SetTimer, TimerKey
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.brokers.coordination.groups.consumers import GROUP, WHO, Desk, changes_of, cluster
from tests.builders.clusters import topic_id

APPLES = topic_id("apples")


def kinds(desk: Desk) -> list[type]:
    return [type(change) for change in changes_of(desk.outcome)]


def refused(desk: Desk, member_id: str, epoch: int, **said: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        desk.beat(member_id, epoch, **said)
    code: ErrorCode = error.value.code
    return code


def told(response: Any) -> dict[bytes, list[int]]:
    return {each.topic_id: each.partitions for each in response.assignment.topic_partitions}


def test_the_first_member_gets_everything_in_one_batch() -> None:
    desk = Desk(cluster(apples=2))

    response = desk.join("a", "apples", "missing", "apples")

    assert (response.member_id, response.member_epoch) == ("a", 2)
    assert response.heartbeat_interval_ms == 5_000
    assert told(response) == {APPLES: [0, 1]}
    assert kinds(desk) == [MemberSaid, GroupEpoch, MemberTarget, TargetEpoch, MemberStands]
    assert desk.member("a").names == ("apples", "missing")
    assert SetTimer(TimerKey(SESSION, GROUP, "a"), 45_000) in desk.outcome.timers
    assert desk.group is not None
    assert desk.group.state is GroupState.STABLE


def test_a_member_without_an_id_is_given_one() -> None:
    assert Desk(cluster(apples=1)).join("", "apples").member_id == "made-0"


def test_heartbeat_of_a_settled_member_writes_and_sends_nothing() -> None:
    desk = Desk(cluster(apples=2))
    desk.join("a", "apples")

    response = desk.beat("a", 2, owned={APPLES: [0, 1]})

    assert response.assignment is None
    assert desk.outcome.records == desk.outcome.soft == ()
    assert desk.outcome.timers == (SetTimer(TimerKey(SESSION, GROUP, "a"), 45_000),)


# The epoch of the first assignment of a group, whose own first epoch is 1.
FIRST_ASSIGNED = 2


@pytest.mark.parametrize(
    ("said", "is_heard"),
    [
        ({}, True),
        ({"subscribed_topic_names": ["pears"]}, True),
        ({"member_epoch": 7}, False),
        ({"member_epoch": -1}, False),
        ({"member_epoch": -2}, False),
        ({"member_id": "b"}, False),
    ],
)
def test_a_heartbeat_that_the_disk_does_not_let_happen_is_a_sign_of_life_of_a_member(
    said: dict[str, Any], is_heard: bool
) -> None:
    desk = Desk(cluster(apples=2))
    desk.join("a", "apples")
    plain: dict[str, Any] = {"group_id": GROUP, "member_id": "a", "member_epoch": FIRST_ASSIGNED}
    request = ConsumerGroupHeartbeatRequest(**{**plain, **said})

    session = SetTimer(TimerKey(SESSION, GROUP, "a"), 45_000)
    assert heard(desk.group, request, desk.place) == (session if is_heard else None)
    assert heard(None, request, desk.place) is None


@pytest.mark.parametrize(
    "said",
    [
        {"subscribed_topic_names": []},
        {"subscribed_topic_regex": "a"},
        {"server_assignor": "range"},
        {"rack_id": "r"},
        {"rebalance_timeout_ms": 7},
        {"instance_id": "i"},
        {"member_epoch": 0},
        {"member_id": "b"},
    ],
)
def test_heartbeat_with_a_change_is_processed(said: dict[str, Any]) -> None:
    desk = Desk(cluster(apples=2))
    desk.join("a", "apples")
    plain: dict[str, Any] = {"group_id": GROUP, "member_id": "a", "member_epoch": 2}

    quiet = ConsumerGroupHeartbeatRequest(**plain)
    loud = ConsumerGroupHeartbeatRequest(**{**plain, **said})

    assert steady(desk.group, quiet, WHO, desk.place, 1) is not None
    assert steady(desk.group, loud, WHO, desk.place, 1) is None
    assert steady(desk.group, quiet, replace(WHO, host="/::1"), desk.place, 1) is None
    assert steady(None, quiet, WHO, desk.place, 1) is None


def test_full_heartbeat_gets_the_assignment_again() -> None:
    desk = Desk(cluster(apples=2))
    desk.join("a", "apples")

    response = desk.beat(
        "a", 2, owned={}, rebalance_timeout_ms=60_000, subscribed_topic_names=["apples"]
    )

    assert told(response) == {APPLES: [0, 1]}
    assert desk.outcome.records == ()


def test_partitions_pass_from_one_member_to_the_next_when_they_are_let_go() -> None:
    desk = Desk(cluster(apples=2))
    desk.join("a", "apples")

    assert told(desk.join("b", "apples")) == {}
    assert desk.member("b").state is MemberState.UNRELEASED_PARTITIONS
    response = desk.beat("a", 2)
    assert (response.member_epoch, told(response)) == (2, {APPLES: [0]})
    assert SetTimer(TimerKey(REBALANCE, GROUP, "a"), 60_000) in desk.outcome.timers
    desk.beat("a", 2, owned={APPLES: [0, 1]})
    assert not [timer for timer in desk.outcome.timers if timer.key.kind == REBALANCE]
    assert desk.beat("b", 3).assignment is None
    assert desk.beat("a", 2, owned={APPLES: [0]}).member_epoch == 3
    assert CancelTimer(TimerKey(REBALANCE, GROUP, "a")) in desk.outcome.timers
    assert told(desk.beat("b", 3)) == {APPLES: [1]}
    assert desk.group is not None
    assert desk.group.state is GroupState.STABLE


def test_a_crowd_is_assigned_at_most_once_in_an_interval() -> None:
    desk = Desk(cluster(apples=2), assignment_interval_ms=1_000)
    desk.join("a", "apples")
    desk.clock.advance(999)

    response = desk.join("b", "apples")

    assert kinds(desk) == [MemberSaid, GroupEpoch, MemberStands]
    assert (response.member_epoch, told(response)) == (2, {})
    assert desk.group is not None
    assert desk.group.state is GroupState.ASSIGNING
    desk.clock.advance(1)
    desk.beat("b", 2)
    assert kinds(desk) == [MemberTarget, MemberTarget, TargetEpoch, MemberStands]


def test_a_group_that_is_not_there_is_not_found() -> None:
    assert refused(Desk(cluster()), "a", 1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused(Desk(cluster()), "a", -1) is ErrorCode.GROUP_ID_NOT_FOUND


def test_full_consumer_group_refuses_a_new_member() -> None:
    desk = Desk(cluster(apples=1), consumer_max_size=1)
    desk.join("a", "apples")

    assert desk.join("a", "apples").member_epoch == 2
    assert refused(desk, "b", 0) is ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize(
    ("epoch", "owned", "is_fenced"),
    [
        (4, None, True),
        (3, None, False),
        (0, None, False),
        (2, None, True),
        (2, {}, False),
        (2, {APPLES: [0]}, False),
        (2, {APPLES: [1]}, True),
        (2, {b"other": [0]}, True),
    ],
)
def test_epochs_fence(epoch: int, owned: Any, is_fenced: bool) -> None:
    desk = Desk(cluster(apples=2))
    desk.join("a", "apples")
    desk.join("b", "apples")
    desk.beat("a", 2)
    desk.beat("a", 2, owned={APPLES: [0]})
    assert (desk.member("a").epoch, desk.member("a").previous_epoch) == (3, 2)

    if is_fenced:
        assert refused(desk, "a", epoch, owned=owned) is ErrorCode.FENCED_MEMBER_EPOCH
    else:
        assert desk.beat("a", epoch, owned=owned).member_epoch == 3


def test_an_unknown_member_must_join() -> None:
    desk = Desk(cluster(apples=1))
    desk.join("a", "apples", instance_id="i")

    assert refused(desk, "b", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(desk, "a", 1, instance_id="j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(desk, "b", 1, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert refused(desk, "b", 0, instance_id="i") is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_comes_back_takes_its_partitions_over() -> None:
    desk = Desk(cluster(apples=2))
    desk.join("a", "apples", instance_id="i")
    desk.beat("a", -2, instance_id="i")

    response = desk.join("b", "apples", instance_id="i")

    assert kinds(desk)[:6] == [
        MemberStands,
        MemberTarget,
        MemberSaid,
        MemberSaid,
        MemberTarget,
        MemberStands,
    ]
    assert (response.member_epoch, told(response)) == (2, {APPLES: [0, 1]})
    assert desk.group is not None
    assert (set(desk.group.members), desk.group.epoch) == ({"b"}, 2)
    assert CancelTimer(TimerKey(SESSION, GROUP, "a")) in desk.outcome.timers


def test_another_subscription_is_a_new_epoch() -> None:
    desk = Desk(cluster(apples=2, pears=1))
    desk.join("a", "apples")

    desk.beat("a", 2, subscribed_topic_names=["pears"], owned={APPLES: [0, 1]})

    assert kinds(desk) == [MemberSaid, GroupEpoch, MemberTarget, TargetEpoch, MemberStands]
    assert desk.member("a").state is MemberState.UNREVOKED_PARTITIONS


def test_grown_topic_is_assigned_at_the_next_heartbeat() -> None:
    desk = Desk(cluster(apples=1, pears=1))
    desk.join("a", "apples")

    desk.show(cluster(apples=1, pears=2))
    assert desk.beat("a", 2).assignment is None
    assert desk.outcome.records == ()
    desk.show(cluster(apples=2, pears=2))
    assert told(desk.beat("a", 2)) == {APPLES: [0, 1]}


def test_change_of_topics_marks_a_group_without_a_record() -> None:
    desk = Desk(cluster(apples=1))
    desk.join("a", "apples")
    assert desk.group is not None

    desk.take(as_stale(desk.group))

    assert desk.group.is_metadata_stale
    assert desk.outcome.records == ()


def test_the_description_of_topics_by_an_older_kafka_goes_with_the_next_epoch() -> None:
    desk = Desk(cluster(apples=1))
    desk.group = desk.replayed = ConsumerGroup(id=GROUP, epoch=5, has_old_metadata=True)

    desk.join("a", "apples")

    assert OldMetadata in kinds(desk)
    assert not desk.group.has_old_metadata
    assert desk.group.epoch == 6


def test_the_assignor_that_most_ask_for_is_taken() -> None:
    desk = Desk(cluster(apples=3))
    desk.join("a", "apples", server_assignor="range")
    desk.join("b", "apples", server_assignor="range")
    desk.join("c", "apples", server_assignor="uniform")

    assert desk.group is not None
    assert desk.group.assignor == "range"


def test_an_expression_is_matched_by_a_job_and_then_assigned() -> None:
    desk = Desk(cluster(apples=1, apricots=1, pears=1))

    response = desk.join("a", regex="ap.*")
    assert (response.member_epoch, told(response)) == (1, {})
    desk.run_jobs()
    assert kinds(desk) == [RegexResolved, GroupEpoch]

    assert set(told(desk.beat("a", 1))) == {APPLES, topic_id("apricots")}
    # Whoever comes with a known expression waits for nothing, and the last to go takes it along.
    desk.join("b", regex="ap.*")
    assert desk.outcome.jobs == ()
    desk.beat("a", -1)
    assert RegexResolved not in kinds(desk)
    desk.beat("b", -1)
    assert RegexResolved in kinds(desk)
    assert desk.group is not None
    assert desk.group.regexes == {}


def test_a_wrong_expression_is_refused_and_changes_nothing() -> None:
    desk = Desk(cluster(apples=1))

    with pytest.raises(KafkaError) as error:
        desk.join("a", regex="(")

    assert error.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert desk.group is None


def test_expressions_are_matched_again_after_a_delay_when_topics_changed() -> None:
    desk = Desk(cluster(apples=1))
    desk.join("a", regex="ap.*")
    desk.run_jobs()
    desk.beat("a", 1)
    newer = cluster(apples=1, apricots=1)
    desk.place = replace(
        desk.place, image=replace(newer, position=replace(newer.position, version=8))
    )

    desk.beat("a", 2)
    assert desk.outcome.jobs == ()
    desk.clock.advance(10_001)
    desk.beat("a", 2)
    assert desk.outcome.jobs == (), "no topic was created since"
    desk.place = replace(desk.place, topics_version=8)
    desk.beat("a", 2)
    assert len(desk.outcome.jobs) == 1
    desk.run_jobs()
    desk.beat("a", 2)
    assert set(desk.assigned("a")) == {APPLES, topic_id("apricots")}


def test_a_known_member_may_always_join_again_and_has_what_it_had() -> None:
    desk = Desk(cluster(apples=2))
    epoch = desk.join("a", "apples").member_epoch

    answer = desk.join("a", "apples")

    assert answer.member_epoch == epoch
    assert answer.assignment is not None
    assert answer.assignment.topic_partitions[0].partitions == [0, 1]
    assert desk.outcome.records == ()
