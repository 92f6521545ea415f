"""A group that changes its protocol: obstacles, written records, and what members keep."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from brokers.coordination.groups.classic import ClassicMember, Way
from brokers.coordination.groups.migration import assignment_bytes, may_downgrade
from brokers.coordination.groups.mixed_states import Obstacle
from brokers.coordination.groups.modern import (
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from brokers.coordination.groups.records import (
    ConsumerGroupKey,
    CurrentMemberKey,
    GroupKey,
    MemberKey,
    RegexKey,
    TargetKey,
    TargetMemberKey,
    decode_key,
)
from brokers.coordination.groups.settings import GroupSettings, MigrationPolicy
from brokers.coordination.groups.states import ClassicState
from brokers.coordination.groups.subscription import decode_assignment, encode_assignment
from brokers.coordination.shard import PARKED
from brokers.protocol.errors import ErrorCode
from tests.builders import mixed_groups as mixed
from tests.builders.clusters import topic_id
from tests.builders.mixed_groups import GROUP, cluster, desk_of, subscription
from tests.fakes.group_desk import GroupDesk

ORDERS = topic_id("orders")
HALVES = {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}}


def written_since(desk: GroupDesk, before: int) -> list[tuple[Any, bool]]:
    """The keys of the records, and whether each deletes."""
    return [(decode_key(record.key), record.value is None) for record in desk.records[before:]]


# -- to the consumer protocol --------------------------------------------------------------------


def test_a_group_takes_a_member_of_the_consumer_protocol_in_while_it_reads() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, HALVES)

    answer = mixed.enter(desk, "new")

    group = mixed.modern_group(desk)
    assert answer.member_epoch == group.epoch == 2
    assert not answer.assignment.topic_partitions, "all partitions are being read"
    for name, share in HALVES.items():
        member = group.members[ids[name]]
        assert member.assigned == {ORDERS: dict.fromkeys(share["orders"], 1)}
        assert (member.epoch, member.previous_epoch, member.state) == (1, 1, MemberState.STABLE)
        assert member.classic is not None
        assert member.names == ("orders",)
        assert member.who == mixed.WHO
    desk.check()


def test_the_records_of_an_upgrade_come_in_kafkas_order() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, HALVES)
    before = len(desk.records)

    mixed.enter(desk, "new")

    a, b = ids["a"], ids["b"]
    assert written_since(desk, before)[:9] == [
        (GroupKey(GROUP), True),
        (MemberKey(GROUP, a), False),
        (MemberKey(GROUP, b), False),
        (ConsumerGroupKey(GROUP), False),
        (TargetMemberKey(GROUP, a), False),
        (TargetMemberKey(GROUP, b), False),
        (TargetKey(GROUP), False),
        (CurrentMemberKey(GROUP, a), False),
        (CurrentMemberKey(GROUP, b), False),
    ]
    assert written_since(desk, before)[9:11] == [
        (MemberKey(GROUP, "new"), False),
        (ConsumerGroupKey(GROUP), False),
    ]


def test_everybody_has_its_own_session_after_an_upgrade() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, HALVES)

    mixed.enter(desk, "new")

    sessions = {key.part: due for key, due in desk.timers.items() if key.kind == "session"}
    now_ms = desk.clock.now_ms()
    assert sessions == {
        ids["a"]: now_ms + mixed.SESSION_MS,
        ids["b"]: now_ms + mixed.SESSION_MS,
        "new": now_ms + desk.settings.consumer_session_timeout_ms,
    }
    assert {key.kind for key in desk.timers} == {"session"}


def test_waiting_join_is_sent_back_at_an_upgrade() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, HALVES)
    assert mixed.join(desk, ids["a"]) is PARKED

    mixed.enter(desk, "new")

    assert not desk.parked
    refused = desk.answers[max(ticket for ticket in desk.answers if ticket) - 1]
    assert mixed.code(refused) is ErrorCode.REBALANCE_IN_PROGRESS
    assert refused.member_id == ids["a"]


def test_waiting_sync_is_sent_back_at_an_upgrade_and_keeps_its_partitions() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, HALVES)
    for name in ids.values():
        mixed.join(desk, name)
    follower = next(known for known in ids.values() if known != mixed.classic_group(desk).leader)
    assert mixed.sync(desk, follower, 2) is PARKED

    mixed.enter(desk, "new")

    assert not desk.parked
    assert {mixed.code(answer) for answer in desk.answers.values() if answer is not None} >= {
        ErrorCode.REBALANCE_IN_PROGRESS
    }
    # Members have the assignment of the last generation that was sent out.
    assert mixed.member_of(desk, ids["a"]).assigned == {ORDERS: {0: 2, 1: 2}}
    desk.check()


def test_a_group_in_its_first_rebalance_has_members_without_partitions() -> None:
    desk = desk_of(cluster(orders=4), initial_rebalance_delay_ms=3_000)
    member_id = mixed.join(desk).member_id
    assert mixed.join(desk, member_id) is PARKED

    mixed.enter(desk, "new")

    member = mixed.member_of(desk, member_id)
    assert (member.epoch, dict(member.assigned)) == (1, {})
    assert mixed.modern_group(desk).epoch == 2
    assert not desk.parked
    desk.check()


def test_a_broken_off_rebalance_counts_what_members_say_they_have() -> None:
    desk = desk_of(cluster(orders=4))
    keeps = {"range": subscription(["orders"], {"orders": [0, 1]}, generation=1)}
    boasts = {"range": subscription(["orders"], {"orders": [1, 2]}, generation=-1)}
    ids = mixed.settle(desk, HALVES)
    mixed.join(desk, ids["a"], protocols=keeps)
    mixed.join(desk, ids["b"], protocols=boasts)
    # Before any member has its assignment, another one joins: the former assignments are dropped.
    late = mixed.join(desk).member_id
    assert mixed.join(desk, late) is PARKED
    assert not mixed.classic_group(desk).assignments

    mixed.enter(desk, "new")

    assert mixed.member_of(desk, ids["a"]).assigned == {ORDERS: {0: 2, 1: 2}}
    assert mixed.member_of(desk, ids["b"]).assigned == {ORDERS: {2: 2}}, "1 has been claimed"
    assert not mixed.member_of(desk, late).assigned
    desk.check()


def test_a_partition_that_a_leader_gave_to_two_goes_to_the_first() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, {"a": {"orders": [0, 1]}, "b": {"orders": [1, 2], "gone": [0]}})

    mixed.enter(desk, "new")

    held = {known: set(mixed.member_of(desk, known).assigned[ORDERS]) for known in ids.values()}
    assert sorted(map(len, held.values())) == [1, 2]
    assert set.union(*held.values()) == {0, 1, 2}
    desk.check()


def test_a_static_classic_member_comes_back_with_the_consumer_protocol() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, {"a": {"orders": [0, 1, 2, 3]}}, instances={"a": "i"})

    answer = mixed.enter(desk, "new", instance_id="i")

    group = mixed.modern_group(desk)
    assert set(group.members) == {"new"}
    assert group.classic_count == 0
    assert group.members["new"].classic is None
    assert [sorted(t.partitions) for t in answer.assignment.topic_partitions] == [[0, 1, 2, 3]]
    assert ids["a"] not in {key.part for key in desk.timers}
    desk.check()


@pytest.mark.parametrize("obstacle", list(Obstacle))
def test_refused_upgrade_gives_its_reason_and_changes_nothing(
    obstacle: Obstacle,
) -> None:
    settings: dict[str, Any] = {}
    if obstacle is Obstacle.DISABLED:
        settings["migration_policy"] = MigrationPolicy.DOWNGRADE
    elif obstacle is Obstacle.TOO_LARGE:
        settings["consumer_max_size"] = 1
    desk = desk_of(cluster(orders=4), **settings)
    if obstacle is Obstacle.OTHER_TYPE:
        member_id = mixed.join(desk, protocol_type="connect").member_id
        mixed.join(desk, member_id, protocol_type="connect")
    elif obstacle is Obstacle.MALFORMED:
        member_id = mixed.join(desk, protocols={"range": b"\0"}).member_id
        mixed.join(desk, member_id, protocols={"range": b"\0"})
    else:
        ids = mixed.settle(desk, HALVES)
        if obstacle is Obstacle.CUSTOM:
            own = encode_assignment({"orders": frozenset({0})}, 1)[:-4] + b"\0\0\0\1x"
            mixed.join(desk, ids["a"])
            mixed.join(desk, ids["b"])
            leader = mixed.classic_group(desk).leader
            assert leader is not None
            mixed.sync(desk, leader, 2, {ids["a"]: own})
    before, records = mixed.classic_group(desk), len(desk.records)

    refused = mixed.enter(desk, "new")

    assert refused.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.message == (
        f"Cannot upgrade classic group {GROUP} to consumer group because {obstacle.value}"
    )
    assert mixed.classic_group(desk) is before
    assert len(desk.records) == records


def test_an_assignment_that_cannot_be_read_is_in_the_way_too() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, HALVES)
    mixed.join(desk, ids["a"])
    mixed.join(desk, ids["b"])
    leader = mixed.classic_group(desk).leader
    assert leader is not None
    mixed.sync(desk, leader, 2, {leader: b"all"})

    refused = mixed.enter(desk, "new")

    assert refused.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert Obstacle.MALFORMED.value in refused.message


def test_an_id_that_was_given_out_does_not_hold_a_group() -> None:
    desk = desk_of(cluster(orders=4))
    pending = mixed.join(desk).member_id

    answer = mixed.enter(desk, "new")

    assert answer.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert set(mixed.modern_group(desk).members) == {"new"}
    assert pending not in {key.part for key in desk.timers}
    # A member that has been given an id joins with it, like any other.
    assert mixed.code(mixed.join(desk, pending)) is ErrorCode.NONE
    desk.check()


# -- back ----------------------------------------------------------------------------------------


def mixed_desk(**settings: Any) -> tuple[GroupDesk, dict[str, str]]:
    """Two classic members, and "new" of the consumer protocol, all where they should be."""
    desk = desk_of(cluster(orders=4), **settings)
    ids = mixed.settle(desk, HALVES)
    mixed.enter(desk, "new")
    for _ in range(2):
        for member_id in ids.values():
            answer = mixed.join(desk, member_id)
            assert mixed.code(answer) is ErrorCode.NONE
            mixed.sync(desk, member_id, answer.generation_id)
    new = mixed.beat(desk, "new", mixed.member_of(desk, "new").epoch)
    assert mixed.code(new) is ErrorCode.NONE
    assert mixed.modern_group(desk).state.value == "Stable"
    return desk, ids


def test_a_group_is_classic_again_when_its_last_other_member_leaves() -> None:
    desk, ids = mixed_desk()
    epoch = mixed.modern_group(desk).epoch
    before = len(desk.records)

    assert mixed.code(mixed.beat(desk, "new", -1)) is ErrorCode.NONE

    group = mixed.classic_group(desk)
    assert group.state is ClassicState.PREPARING
    assert (group.generation, group.protocol) == (epoch, "range")
    assert set(group.members) == set(ids.values())
    assert group.leader in group.members
    members = [*ids.values(), "new"]
    assert written_since(desk, before) == [
        *((CurrentMemberKey(GROUP, member_id), True) for member_id in members),
        *((TargetMemberKey(GROUP, member_id), True) for member_id in members),
        (TargetKey(GROUP), True),
        *((MemberKey(GROUP, member_id), True) for member_id in members),
        (ConsumerGroupKey(GROUP), True),
        (GroupKey(GROUP), False),
    ]
    assert {key.kind for key in desk.timers} == {"session", "join"}
    assert "new" not in {key.part for key in desk.timers}
    # After a crash at this moment the group is stable, with the target assignment of each member.
    loaded = desk.loaded().group(GROUP)
    assert loaded is not None
    assert loaded.state is ClassicState.STABLE
    assert {mixed.heartbeat(desk, known, epoch) for known in ids.values()} == {
        ErrorCode.REBALANCE_IN_PROGRESS
    }


def held(desk: GroupDesk, member_id: str) -> dict[str, frozenset[int]]:
    """What a classic group says that a member has."""
    found = decode_assignment(mixed.classic_group(desk).assignments[member_id])
    assert found is not None
    assert found.version == 3
    return dict(found.partitions)


def test_the_assignment_after_a_downgrade_is_what_each_member_has() -> None:
    desk, ids = mixed_desk()
    targets = mixed.modern_group(desk).targets

    mixed.beat(desk, "new", -1)

    for member_id in ids.values():
        assert held(desk, member_id) == {"orders": targets[member_id][ORDERS]}


def test_a_member_that_had_to_give_up_partitions_has_them_after_a_downgrade() -> None:
    desk = desk_of(cluster(orders=4))
    member_id = mixed.settle(desk, {"a": {"orders": [0, 1, 2, 3]}})["a"]
    mixed.enter(desk, "new", instance_id="i")
    owns = {"range": subscription(["orders"], {"orders": range(4)})}
    mixed.join(desk, member_id, protocols=owns)
    assert mixed.member_of(desk, member_id).state is MemberState.UNREVOKED_PARTITIONS

    back = mixed.join(desk, instance_id="i")

    assert held(desk, member_id) == {"orders": frozenset(range(4))}
    assert held(desk, back.member_id) == {}
    # A member that waits does not get them either if the group changes twice.
    mixed.enter(desk, "again", instance_id="i")
    assert not mixed.member_of(desk, "again").assigned


def carry_on(desk: GroupDesk, member_ids: Iterable[str]) -> None:
    """Classic members do what they are told, until the group is no longer theirs to ask."""
    for member_id in member_ids:
        group = desk.shard.group(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        epoch = group.members[member_id].epoch
        if mixed.heartbeat(desk, member_id, epoch) is ErrorCode.REBALANCE_IN_PROGRESS:
            answer = mixed.join(desk, member_id)
            mixed.sync(desk, member_id, answer.generation_id)


def test_silence_of_the_last_other_member_makes_the_group_classic() -> None:
    desk, ids = mixed_desk()

    for _ in range(6):
        desk.pass_time(8_000)
        carry_on(desk, ids.values())

    assert set(mixed.classic_group(desk).members) == set(ids.values())


def test_a_member_that_does_not_let_go_makes_the_group_classic() -> None:
    desk, ids = mixed_desk()
    new = mixed.member_of(desk, "new")
    names = ["other"]
    mixed.beat(desk, "new", new.epoch, owned=new.assigned, subscribed_topic_names=names)
    assert mixed.member_of(desk, "new").state is MemberState.UNREVOKED_PARTITIONS

    for _ in range(4):
        desk.pass_time(8_000)
        carry_on(desk, ids.values())

    assert set(mixed.classic_group(desk).members) == set(ids.values())


@pytest.mark.parametrize(
    "settings",
    [
        {"migration_policy": MigrationPolicy.UPGRADE},
        {"max_size": 1},
    ],
)
def test_a_group_that_may_not_be_classic_stays_as_it_is(settings: dict[str, Any]) -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, HALVES)
    mixed.enter(desk, "new")
    desk.settings = desk.shard.settings = replace(desk.settings, **settings)

    mixed.beat(desk, "new", -1)

    group = mixed.modern_group(desk)
    assert set(group.members) == set(ids.values())
    assert group.classic_count == 2
    desk.check()


def test_group_without_members_is_not_converted() -> None:
    desk = desk_of(cluster(orders=4))
    mixed.enter(desk, "new")

    mixed.beat(desk, "new", -1)

    assert not mixed.modern_group(desk).members


def test_the_last_static_member_comes_back_with_the_classic_protocol() -> None:
    desk = desk_of(cluster(orders=4))
    mixed.enter(desk, "old", instance_id="i")
    before = len(desk.records)

    answer = mixed.join(desk, instance_id="i")

    group = mixed.classic_group(desk)
    assert mixed.code(answer) is ErrorCode.NONE
    assert (answer.leader, answer.members, answer.protocol_name) == ("", [], "range")
    assert group.state is ClassicState.STABLE, "nothing changes for anybody"
    assert group.generation == answer.generation_id
    given = mixed.sync(desk, answer.member_id, answer.generation_id, instance_id="i")
    assert mixed.assigned(given) == {"orders": [0, 1, 2, 3]}
    # Replaced first, then all of it deleted, under the id of the newcomer.
    keys = written_since(desk, before)
    assert keys[:3] == [
        (CurrentMemberKey(GROUP, "old"), True),
        (TargetMemberKey(GROUP, "old"), True),
        (MemberKey(GROUP, "old"), True),
    ]
    assert keys[-6:] == [
        (CurrentMemberKey(GROUP, answer.member_id), True),
        (TargetMemberKey(GROUP, answer.member_id), True),
        (TargetKey(GROUP), True),
        (MemberKey(GROUP, answer.member_id), True),
        (ConsumerGroupKey(GROUP), True),
        (GroupKey(GROUP), False),
    ]
    assert mixed.heartbeat(desk, answer.member_id, answer.generation_id) is ErrorCode.NONE
    desk.check()


def test_a_static_member_with_another_subscription_makes_the_group_rebalance() -> None:
    desk = desk_of(cluster(orders=4, other=1))
    mixed.enter(desk, "old", instance_id="i")

    answer = mixed.join(
        desk, instance_id="i", protocols={"range": subscription(["orders", "other"])}
    )

    assert mixed.classic_group(desk).state is ClassicState.PREPARING
    given = mixed.sync(desk, answer.member_id, answer.generation_id, instance_id="i")
    assert mixed.code(given) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_that_waits_for_partitions_makes_the_group_rebalance() -> None:
    desk = desk_of(cluster(orders=4))
    mixed.settle(desk, {"a": {"orders": [0, 1, 2, 3]}})
    mixed.enter(desk, "old", instance_id="i")
    assert mixed.member_of(desk, "old").state is MemberState.UNRELEASED_PARTITIONS

    answer = mixed.join(desk, instance_id="i")

    # Its target is still read by another member, so it has to wait until all have joined.
    assert mixed.code(answer) is ErrorCode.NONE
    assert mixed.classic_group(desk).state is ClassicState.PREPARING


def test_expressions_go_with_the_group() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, HALVES)
    mixed.beat(desk, "new", 0, owned={}, rebalance_timeout_ms=60_000, subscribed_topic_regex="or.*")
    desk.run_jobs()
    assert set(mixed.modern_group(desk).regexes) == {"or.*"}
    before = len(desk.records)

    mixed.beat(desk, "new", -1)

    assert (RegexKey(GROUP, "or.*"), True) in written_since(desk, before)
    assert set(mixed.classic_group(desk).members) == set(ids.values())
    assert desk.loaded().group(GROUP) is not None


# -- values --------------------------------------------------------------------------------------


def side(*names: str) -> ConsumerMember:
    protocols = tuple((name, b"") for name in names)
    classic = ClassicSide(session_timeout_ms=1, protocols=protocols)
    return ConsumerMember(id="-".join(names), classic=classic)


def test_members_that_agree_on_nothing_do_not_make_a_classic_group() -> None:
    settings = GroupSettings()

    assert may_downgrade([side("range", "sticky"), side("sticky")], settings)
    assert not may_downgrade([side("range"), side("sticky")], settings)
    assert not may_downgrade([side("range"), ConsumerMember(id="c")], settings)
    assert not may_downgrade([], settings)


def test_an_assignment_is_written_in_the_version_of_its_reader() -> None:
    image = cluster(orders=4)

    for version, expected in ((0, 0), (1, 1), (3, 3), (9, 3)):
        written = assignment_bytes({ORDERS: [1]}, subscription([], version=version), image)
        found = decode_assignment(written)
        assert found is not None
        assert (found.version, found.partitions) == (expected, {"orders": frozenset({1})})
    unread = decode_assignment(assignment_bytes({topic_id("gone"): [1]}, b"", image))
    assert unread is not None
    assert (unread.version, unread.partitions) == (0, {})


def test_a_member_that_was_read_from_a_record_has_what_was_written() -> None:
    desk = desk_of(cluster(orders=4))
    ids = mixed.settle(desk, HALVES)
    desk.shard = desk.loaded()

    mixed.enter(desk, "new")

    member = mixed.member_of(desk, ids["a"])
    assert member.classic is not None
    assert [name for name, _ in member.classic.protocols] == ["range"]
    known = ClassicMember(
        member_id="",
        client_id="",
        client_host="",
        session_timeout_ms=0,
        rebalance_timeout_ms=0,
        ways=tuple(Way(name, metadata) for name, metadata in member.classic.protocols),
    )
    assert known.metadata("range") == subscription(["orders"])
