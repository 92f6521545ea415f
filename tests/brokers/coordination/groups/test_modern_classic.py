"""Classic members in a group of the consumer protocol: one step at a time, and in time."""

import pytest

from brokers.coordination.groups.modern import MemberState
from brokers.coordination.groups.modern_desk import CLASSIC_JOIN, CLASSIC_SYNC, SESSION
from brokers.coordination.groups.settings import MigrationPolicy
from brokers.coordination.shard import TimerKey
from brokers.protocol.errors import ErrorCode
from tests.builders import mixed_groups as mixed
from tests.builders.clusters import topic_id
from tests.builders.mixed_groups import GROUP, REBALANCE_MS, SESSION_MS, cluster, desk_of
from tests.builders.mixed_groups import subscription as subscribed
from tests.fakes.group_desk import GroupDesk

ORDERS = topic_id("orders")
ALL = {"classic": {"orders": [0, 1, 2, 3]}}


def with_one_of_each() -> tuple[GroupDesk, str]:
    """A classic member that reads all, and "modern", which waits for its share."""
    desk = desk_of(cluster(orders=4))
    member_id = mixed.settle(desk, ALL)["classic"]
    mixed.enter(desk, "modern")
    return desk, member_id


def due(desk: GroupDesk, kind: str, member_id: str) -> int | None:
    at_ms = desk.timers.get(TimerKey(kind, GROUP, member_id))
    return None if at_ms is None else at_ms - desk.clock.now_ms()


def test_an_eager_member_gives_up_all_and_gets_its_share_at_once() -> None:
    desk, member_id = with_one_of_each()
    assert mixed.heartbeat(desk, member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    joined = mixed.join(desk, member_id)
    given = mixed.sync(desk, member_id, joined.generation_id)

    assert (joined.generation_id, joined.protocol_type, joined.protocol_name) == (
        2,
        "consumer",
        "range",
    )
    assert (joined.leader, joined.members, joined.member_id) == ("", [], member_id)
    mine = mixed.assigned(given)["orders"]
    assert len(mine) == 2
    assert (given.protocol_type, given.protocol_name) == ("consumer", "range")
    told = mixed.beat(desk, "modern", 2)
    assert sorted(told.assignment.topic_partitions[0].partitions + mine) == [0, 1, 2, 3]
    assert mixed.heartbeat(desk, member_id, 2) is ErrorCode.NONE
    desk.check()


def test_a_cooperative_member_reads_on_until_it_has_given_up_what_it_must() -> None:
    desk, member_id = with_one_of_each()
    owns_all = {"range": subscribed(["orders"], {"orders": range(4)})}

    first = mixed.join(desk, member_id, protocols=owns_all)

    assert first.generation_id == 1, "not before it has let go"
    assert mixed.member_of(desk, member_id).state is MemberState.UNREVOKED_PARTITIONS
    kept = mixed.assigned(mixed.sync(desk, member_id, 1))["orders"]
    assert len(kept) == 2
    assert mixed.beat(desk, "modern", 2).assignment is None, "they are not free yet"
    assert mixed.heartbeat(desk, member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    owns_kept = {"range": subscribed(["orders"], {"orders": kept})}
    second = mixed.join(desk, member_id, protocols=owns_kept)
    assert second.generation_id == 2
    assert mixed.assigned(mixed.sync(desk, member_id, 2)) == {"orders": kept}
    assert len(mixed.beat(desk, "modern", 2).assignment.topic_partitions[0].partitions) == 2
    desk.check()


def test_classic_member_rejoins_once_its_partitions_are_free() -> None:
    desk = desk_of(cluster(orders=2))
    mixed.enter(desk, "modern")
    joined = mixed.join(desk, "late")
    assert mixed.assigned(mixed.sync(desk, "late", joined.generation_id)) == {}
    assert mixed.member_of(desk, "late").state is MemberState.UNRELEASED_PARTITIONS
    assert mixed.heartbeat(desk, "late", joined.generation_id) is ErrorCode.NONE

    mixed.beat(desk, "modern", 2, owned={ORDERS: [0, 1]})
    mixed.beat(desk, "modern", 2, owned=mixed.member_of(desk, "modern").assigned)

    epoch = mixed.member_of(desk, "late").epoch
    assert mixed.heartbeat(desk, "late", epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = mixed.join(desk, "late")
    assert len(mixed.assigned(mixed.sync(desk, "late", joined.generation_id))["orders"]) == 1
    desk.check()


def test_a_newcomer_without_an_id_is_sent_back_for_one_and_nothing_is_kept() -> None:
    desk, _ = with_one_of_each()
    records = len(desk.records)

    answer = mixed.join(desk)

    assert mixed.code(answer) is ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("client-")
    assert len(desk.records) == records
    assert mixed.code(mixed.join(desk, answer.member_id)) is ErrorCode.NONE
    desk.check()


@pytest.mark.parametrize(("version", "instance_id"), [(3, None), (9, "i")])
def test_others_get_their_id_with_the_answer(version: int, instance_id: str | None) -> None:
    desk, _ = with_one_of_each()

    answer = mixed.join(desk, version=version, instance_id=instance_id)

    assert mixed.code(answer) is ErrorCode.NONE
    assert mixed.member_of(desk, answer.member_id).instance_id == instance_id


def test_subscription_of_a_member_is_kept_for_a_downgrade() -> None:
    desk, member_id = with_one_of_each()
    protocols = {
        "range": subscribed(["orders", "more"], rack_id="r1"),
        "sticky": subscribed(["orders", "more"]),
    }

    mixed.join(desk, member_id, protocols=protocols, session_ms=7_000, rebalance_ms=8_000)

    member = mixed.member_of(desk, member_id)
    assert member.classic is not None
    assert member.classic.session_timeout_ms == 7_000
    assert member.classic.protocols == tuple(protocols.items())
    assert (member.names, member.rack_id) == (("more", "orders"), "r1")
    assert member.rebalance_timeout_ms == 8_000
    desk.check()


def test_the_session_is_the_members_own_and_ends_it() -> None:
    desk, member_id = with_one_of_each()
    mixed.join(desk, member_id)
    mixed.sync(desk, member_id, 2)
    assert due(desk, SESSION, member_id) == SESSION_MS

    desk.pass_time(SESSION_MS - 1)
    assert mixed.heartbeat(desk, member_id, 2) is ErrorCode.NONE
    assert due(desk, SESSION, member_id) == SESSION_MS
    desk.pass_time(SESSION_MS)

    assert set(mixed.modern_group(desk).members) == {"modern"}
    assert not any(key.part == member_id for key in desk.timers)
    desk.check()


def test_a_member_that_does_not_join_in_time_is_out_however_often_it_asks() -> None:
    desk, member_id = with_one_of_each()

    for _ in range(REBALANCE_MS // 5_000):
        mixed.heartbeat(desk, member_id, 1)
        desk.pass_time(5_000)

    assert set(mixed.modern_group(desk).members) == {"modern"}


def test_a_member_that_does_not_sync_in_time_is_out() -> None:
    desk, member_id = with_one_of_each()
    mixed.heartbeat(desk, member_id, 1)
    mixed.join(desk, member_id)
    assert due(desk, CLASSIC_JOIN, member_id) is None
    assert due(desk, CLASSIC_SYNC, member_id) == REBALANCE_MS

    for _ in range(REBALANCE_MS // 5_000):
        mixed.heartbeat(desk, member_id, 2)
        desk.pass_time(5_000)

    assert set(mixed.modern_group(desk).members) == {"modern"}


def test_a_sync_in_time_keeps_the_member() -> None:
    desk, member_id = with_one_of_each()
    mixed.join(desk, member_id)

    mixed.sync(desk, member_id, 2)

    assert due(desk, CLASSIC_SYNC, member_id) is None
    assert due(desk, SESSION, member_id) == SESSION_MS


def test_member_that_changes_its_protocol_loses_the_timers_of_the_other() -> None:
    desk, member_id = with_one_of_each()
    mixed.heartbeat(desk, member_id, 1)
    mixed.join(desk, member_id)

    mixed.enter(desk, member_id)

    assert mixed.member_of(desk, member_id).classic is None
    assert {key.kind for key in desk.timers if key.part == member_id} == {SESSION}


def test_a_static_member_of_the_consumer_protocol_is_replaced_by_a_classic_one() -> None:
    desk = desk_of(cluster(orders=2))
    mixed.enter(desk, "a")
    mixed.enter(desk, "old", instance_id="i")
    mixed.beat(desk, "a", 2, owned={ORDERS: [0, 1]})
    mixed.beat(desk, "a", 2, owned=mixed.member_of(desk, "a").assigned)
    mixed.beat(desk, "old", mixed.member_of(desk, "old").epoch, instance_id="i")
    had = mixed.member_of(desk, "old").assigned
    assert had

    joined = mixed.join(desk, instance_id="i")

    assert set(mixed.modern_group(desk).members) == {"a", joined.member_id}
    given = mixed.sync(desk, joined.member_id, joined.generation_id, instance_id="i")
    assert mixed.assigned(given) == {"orders": sorted(had[ORDERS])}
    stale = mixed.beat(desk, "old", 3, instance_id="i")
    assert mixed.code(stale) is ErrorCode.FENCED_INSTANCE_ID
    desk.check()


def test_members_leave_together_with_one_new_epoch() -> None:
    desk = desk_of(cluster(orders=4), migration_policy=MigrationPolicy.UPGRADE)
    ids = mixed.settle(
        desk, {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}}, instances={"b": "i"}
    )
    mixed.enter(desk, "modern")
    mixed.enter(desk, "static", instance_id="j")
    epoch = mixed.modern_group(desk).epoch

    # As an administrator's client puts members out: static ones by their instance alone.
    codes = mixed.leave(
        desk, ("", "i"), ("", "j"), ("nobody", None), ("", "k"), ("", None), ("modern", None)
    )

    assert codes == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert set(mixed.modern_group(desk).members) == {ids["a"]}
    assert mixed.modern_group(desk).epoch == epoch + 1
    desk.check()


def test_no_classic_member_rejoins_while_the_assignment_is_delayed() -> None:
    desk = desk_of(cluster(orders=4), assignment_interval_ms=1_000)
    member_id = mixed.settle(desk, ALL)["classic"]
    mixed.enter(desk, "modern")
    joined = mixed.join(desk, member_id)
    mixed.sync(desk, member_id, joined.generation_id)

    mixed.enter(desk, "more")

    group = mixed.modern_group(desk)
    assert group.epoch > group.assignment_epoch
    assert mixed.heartbeat(desk, member_id, joined.generation_id) is ErrorCode.NONE
    desk.clock.advance(1_000)
    told = mixed.heartbeat(desk, member_id, joined.generation_id)
    assert told is ErrorCode.REBALANCE_IN_PROGRESS
    joined = mixed.join(desk, member_id)
    assert joined.generation_id == mixed.modern_group(desk).epoch
    given = mixed.sync(desk, member_id, joined.generation_id)
    assert mixed.code(given) is ErrorCode.NONE


def test_classic_members_among_themselves_learn_of_new_partitions() -> None:
    desk = desk_of(cluster(orders=2), migration_policy=MigrationPolicy.UPGRADE)
    member_id = mixed.settle(desk, {"classic": {"orders": [0, 1]}})["classic"]
    mixed.enter(desk, "modern")
    mixed.beat(desk, "modern", -1)
    joined = mixed.join(desk, member_id)
    mixed.sync(desk, member_id, joined.generation_id)
    assert mixed.heartbeat(desk, member_id, joined.generation_id) is ErrorCode.NONE

    desk.change(cluster(orders=3))

    told = mixed.heartbeat(desk, member_id, joined.generation_id)
    assert told is ErrorCode.REBALANCE_IN_PROGRESS
    joined = mixed.join(desk, member_id)
    given = mixed.sync(desk, member_id, joined.generation_id)
    assert mixed.assigned(given) == {"orders": [0, 1, 2]}
    # Once is enough: an eager member gives up all for each join.
    told = mixed.heartbeat(desk, member_id, joined.generation_id)
    assert told is ErrorCode.NONE


def test_commits_of_classic_members_are_checked_by_their_generation() -> None:
    desk, member_id = with_one_of_each()
    place = ("orders", 0)
    joined = mixed.join(desk, member_id)
    mixed.sync(desk, member_id, joined.generation_id)
    mine = sorted(mixed.member_of(desk, member_id).assigned[ORDERS])
    theirs = next(number for number in range(4) if number not in mine)

    assert mixed.commit(desk, member_id, 2, place, version=2) is ErrorCode.NONE
    assert mixed.commit(desk, member_id, 3, place) is ErrorCode.ILLEGAL_GENERATION
    # In an older generation, it may commit only partitions that it has had throughout.
    assert mixed.commit(desk, member_id, 1, ("orders", mine[0])) is ErrorCode.NONE
    assert mixed.commit(desk, member_id, 1, ("orders", theirs)) is ErrorCode.ILLEGAL_GENERATION
    assert mixed.commit(desk, "modern", 9, place) is ErrorCode.STALE_MEMBER_EPOCH
    assert mixed.commit(desk, "modern", 2, place, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert mixed.commit(desk, "nobody", 2, place) is ErrorCode.UNKNOWN_MEMBER_ID


def test_classic_members_keep_their_sessions_after_a_load() -> None:
    desk, member_id = with_one_of_each()
    owns_all = {"range": subscribed(["orders"], {"orders": range(4)})}
    mixed.join(desk, member_id, protocols=owns_all)
    assert mixed.member_of(desk, member_id).state is MemberState.UNREVOKED_PARTITIONS

    desk.shard = desk.loaded()
    timers = [timer for outcome in desk.started() for timer in outcome.timers]

    assert {(timer.key.kind, timer.key.part) for timer in timers} == {
        (SESSION, member_id),
        (SESSION, "modern"),
    }
    assert mixed.heartbeat(desk, member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
