"""A shard of groups: what it takes in, what it asks for by itself, and what a load brings back."""

from dataclasses import replace
from typing import Any

import pytest

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups import (
    classic_operations,
    modern_operations,
    offset_operations,
)
from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.offset_operations import Committing
from brokers.coordination.groups.records import committed_record
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.states import ClassicState
from brokers.coordination.groups.values import NO_TOPIC_ID, Committed, Who
from brokers.coordination.shard import PARKED, Record
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from brokers.protocol.messages.delete_groups import DeleteGroupsResponse
from brokers.protocol.messages.heartbeat import HeartbeatRequest
from brokers.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from brokers.protocol.messages.leave_group import MemberIdentity
from brokers.protocol.messages.offset_commit import OffsetCommitResponse
from brokers.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.builders import clusters
from tests.builders.classic_groups import CODES
from tests.fakes.group_desk import GroupDesk, group_id_of

WHO = Who("client", "/127.0.0.1")
GROUP = "readers"
DAY_MS = 86_400_000
DONE = OffsetCommitResponse()
DELETED = DeleteGroupsResponse()
# A subscription to the topic "orders", as consumers write it.
SUBSCRIPTION = b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"


def cluster(**topics: int) -> ClusterImage:
    return clusters.image([clusters.topic(name, partitions=n) for name, n in topics.items()])


@pytest.fixture
def desk() -> GroupDesk:
    settings = GroupSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=0)
    return GroupDesk(cluster(orders=2, other=1), settings)


def join(desk: GroupDesk, member_id: str = "", *, group: str = GROUP, version: int = 9) -> Any:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )
    return desk.ask(classic_operations.join(request, version, WHO))


def settle(desk: GroupDesk, *, group: str = GROUP) -> str:
    """A classic group of one member, stable."""
    member_id = join(desk, group=group).member_id
    assert join(desk, member_id, group=group) is PARKED
    desk.pass_time(0)
    assert not desk.parked
    joined = desk.shard.group(group)
    assert isinstance(joined, ClassicGroup)
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")],
    )
    assert desk.ask(classic_operations.sync(request)).assignment == b"all"
    return str(member_id)


def beat(desk: GroupDesk, member_id: str, epoch: int, **said: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, **said
    )
    return desk.ask(modern_operations.heartbeat(request, WHO))


def enter(desk: GroupDesk, member_id: str = "m1", *names: str) -> Any:
    return beat(
        desk,
        member_id,
        0,
        subscribed_topic_names=list(names or ("orders",)),
        topic_partitions=[],
        rebalance_timeout_ms=60_000,
    )


def committing(
    desk: GroupDesk, places: tuple[tuple[str, int], ...], group: str = GROUP, **who: Any
) -> Committing:
    committed = {
        place: Committed(
            7,
            1,
            "note",
            desk.clock.now_ms(),
            who.get("expire_ms", -1),
            who.get("topic_id", desk.image.topics[place[0]].id),
        )
        for place in places
    }
    return Committing(
        group_id=group,
        generation=who.get("generation", -1),
        member_id=who.get("member_id", ""),
        instance_id=None,
        version=who.get("version", 9),
        committed=committed,
        topic_ids={name: desk.image.topics[name].id for name, _index in places},
        answer=DONE,
    )


def commit(desk: GroupDesk, *places: tuple[str, int], group: str = GROUP, **who: Any) -> Any:
    return desk.ask(offset_operations.commit(committing(desk, places, group, **who)))


def code(answer: Any) -> ErrorCode:
    return answer.code if isinstance(answer, KafkaError) else CODES[answer.error_code]


def test_a_classic_group_comes_back_from_its_record(desk: GroupDesk) -> None:
    member_id = settle(desk)
    assert commit(desk, ("orders", 0), ("orders", 1), member_id=member_id, generation=1) is DONE

    desk.check()
    loaded = desk.shard = desk.loaded()
    group = loaded.group(GROUP)
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.generation) == (ClassicState.STABLE, 1)
    assert set(loaded.offsets.of(GROUP)) == {("orders", 0), ("orders", 1)}
    timers = [timer for outcome in desk.started() for timer in outcome.timers]
    assert [timer.key.part for timer in timers] == [member_id], "its session begins anew"


def test_a_consumer_group_comes_back_from_its_records(desk: GroupDesk) -> None:
    first = enter(desk, "m1")
    enter(desk, "m2")
    assert first.assignment.topic_partitions[0].partitions == [0, 1]
    beat(desk, "m1", first.member_epoch)

    desk.check()
    desk.shard = desk.loaded()
    timers = [timer for outcome in desk.started() for timer in outcome.timers]
    kinds = {(timer.key.kind, timer.key.part) for timer in timers}
    assert kinds >= {("session", "m1"), ("session", "m2"), ("rebalance", "m1")}


def test_silence_ends_membership_in_groups_of_both_protocols(desk: GroupDesk) -> None:
    settle(desk, group="classic")
    enter(desk)

    desk.pass_time(3_600_000)

    classic, modern = desk.shard.group("classic"), desk.shard.group(GROUP)
    assert isinstance(classic, ClassicGroup)
    assert isinstance(modern, ConsumerGroup)
    assert not classic.members
    assert not modern.members
    assert desk.timers == {}
    desk.check()


def test_a_heartbeat_keeps_a_member(desk: GroupDesk) -> None:
    member_id = settle(desk)
    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member_id)

    for _ in range(5):
        desk.pass_time(9_000)
        assert code(desk.ask(classic_operations.heartbeat(request))) is ErrorCode.NONE


def test_members_of_one_protocol_are_not_those_of_the_other(desk: GroupDesk) -> None:
    enter(desk)
    sync = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m1")
    heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m1")

    assert code(desk.ask(classic_operations.sync(sync))) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(desk.ask(classic_operations.heartbeat(heartbeat))) is ErrorCode.UNKNOWN_MEMBER_ID
    # To leave is the same for both.
    left = desk.ask(classic_operations.leave(GROUP, [MemberIdentity(member_id="m1")]))
    assert code(left.members[0]) is ErrorCode.NONE


def test_a_group_without_members_changes_its_protocol(desk: GroupDesk) -> None:
    member_id = settle(desk)
    assert code(enter(desk)) is ErrorCode.GROUP_ID_NOT_FOUND, "its assignment is not a consumer's"
    desk.ask(classic_operations.leave(GROUP, [MemberIdentity(member_id=member_id)]))

    assert enter(desk).member_epoch == 2
    assert isinstance(desk.shard.group(GROUP), ConsumerGroup)
    desk.check()

    beat(desk, "m1", -1)
    settle(desk)
    assert isinstance(desk.shard.group(GROUP), ClassicGroup)
    desk.check()


def test_offsets_go_with_their_topics(desk: GroupDesk) -> None:
    commit(desk, ("orders", 0), ("other", 0))
    commit(desk, ("other", 0), group="more")

    desk.change(clusters.without(desk.image, "other"))

    assert set(desk.shard.offsets.of(GROUP)) == {("orders", 0)}
    assert not desk.shard.offsets.of("more")
    desk.check()


def test_a_group_that_was_loaded_looks_at_its_topics_again(desk: GroupDesk) -> None:
    epoch = enter(desk).member_epoch
    desk.image = cluster(orders=4, other=1)  # as it was while nobody coordinated the group
    desk.shard = desk.loaded()

    answer = beat(desk, "m1", epoch)

    assert answer.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]


def test_an_image_that_comes_while_a_join_is_on_its_way_is_not_missed(desk: GroupDesk) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m1",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["new"],
        topic_partitions=[],
    )
    operation = modern_operations.heartbeat(request, WHO).otherwise
    assert operation is not None
    outcome = operation.run(desk.shard, desk.clock.now_ms(), 1)
    assert outcome is not None
    desk.change(cluster(orders=2, other=1, new=3))
    desk.take(outcome, 1)

    answer = beat(desk, "m1", desk.answers[1].member_epoch)

    assert answer.assignment.topic_partitions[0].partitions == [0, 1, 2]


def test_unused_groups_are_deleted(desk: GroupDesk) -> None:
    join(desk, group="asked-for-an-id")
    epoch = enter(desk).member_epoch
    assert epoch
    beat(desk, "m1", -1)
    desk.pass_time(DAY_MS)

    desk.chores()

    assert not list(desk.shard.groups())
    desk.check()


def test_a_commit_that_met_the_deletion_of_its_topic_does_not_stay(desk: GroupDesk) -> None:
    deleted = desk.image.topics["other"].id
    desk.change(clusters.without(desk.image, "other"))
    value = Committed(777, -1, "", desk.clock.now_ms(), topic_id=deleted)
    record = committed_record(GROUP, "other", 0, value)
    late = Record(record.key, record.value)
    desk.shard.replay(late, 0)
    desk.records.append(late)

    desk.chores()

    assert not desk.shard.offsets.of(GROUP)
    desk.check()


@pytest.mark.parametrize("topic_id", [NO_TOPIC_ID, clusters.topic_id("other")])
def test_offsets_on_a_topic_that_an_old_copy_of_the_store_lacks_are_kept(
    desk: GroupDesk, topic_id: bytes
) -> None:
    """The store is put back to an old copy under running brokers, and then the newer one again."""
    commit(desk, ("other", 0), topic_id=topic_id)
    newer = desk.image
    old = cluster(orders=2)

    desk.change(old)
    desk.chores()
    desk.change(newer)
    desk.chores()

    assert set(desk.shard.offsets.of(GROUP)) == {("other", 0)}
    assert set(desk.loaded().offsets.of(GROUP)) == {("other", 0)}
    desk.check()


def test_a_deletion_of_a_former_topic_that_comes_late_costs_no_offset_without_an_id(
    desk: GroupDesk,
) -> None:
    """With the newer copy of the store come deletions from before this topic was created."""
    commit(desk, ("other", 0), topic_id=NO_TOPIC_ID)
    former = replace(clusters.topic("other"), id=clusters.topic_id("former"))
    tombstone = clusters.without(clusters.with_topics(cluster(orders=2), former), "other")
    newer = clusters.with_topics(tombstone, clusters.topic("other"))

    desk.change(cluster(orders=2))
    desk.change(newer)

    assert set(desk.shard.offsets.of(GROUP)) == {("other", 0)}


def test_offsets_of_an_unknown_topic_expire_like_others(desk: GroupDesk) -> None:
    commit(desk, ("other", 0))
    desk.change(cluster(orders=2))

    desk.pass_time(7 * DAY_MS - 1)
    desk.chores()
    assert desk.shard.offsets.of(GROUP)
    desk.pass_time(1)
    desk.chores()
    assert not desk.shard.offsets.of(GROUP)


def test_a_deletion_that_no_coordinator_saw_is_made_up_for(desk: GroupDesk) -> None:
    commit(desk, ("other", 0), ("orders", 0))
    commit(desk, ("other", 0), group="written-before-ids", topic_id=NO_TOPIC_ID)
    after = clusters.without(desk.image, "other")
    again = replace(clusters.topic("other"), id=clusters.topic_id("another"))
    desk.image = clusters.with_topics(after, again)
    desk.shard = desk.loaded()

    desk.chores()

    assert set(desk.shard.offsets.of(GROUP)) == {("orders", 0)}
    assert desk.shard.offsets.of("written-before-ids"), "nothing says on which topic it was"
    desk.check()


@pytest.mark.parametrize("topic_id", [NO_TOPIC_ID, clusters.topic_id("orders")])
def test_offsets_on_a_deleted_topic_go_with_it(desk: GroupDesk, topic_id: bytes) -> None:
    commit(desk, ("orders", 0), ("orders", 1), topic_id=topic_id)
    commit(desk, ("other", 0))

    desk.change(clusters.without(desk.image, "orders"))

    assert set(desk.shard.offsets.of(GROUP)) == {("other", 0)}
    desk.check()


def test_a_record_of_another_kind_of_group_is_passed_over(desk: GroupDesk) -> None:
    desk.shard.replay(Record(b"\0\x0b\0\1g", b"\0\0"), 0)

    assert not list(desk.shard.groups())


def test_a_record_that_contradicts_the_others_is_refused(desk: GroupDesk) -> None:
    settle(desk)
    desk.records.clear()
    enter_elsewhere = GroupDesk(desk.image, desk.settings)
    enter(enter_elsewhere)

    foreign = enter_elsewhere.records[0]
    with pytest.raises(KafkaError, match="has 1 members of the classic protocol"):
        desk.shard.replay(Record(foreign.key, foreign.value), 0)


def test_waiting_client_is_answered_when_the_shard_is_unloaded(desk: GroupDesk) -> None:
    settle(desk)
    newcomer = join(desk).member_id
    assert join(desk, newcomer) is PARKED

    (reply,) = desk.shard.unloaded()

    assert code(reply.answer) is ErrorCode.NOT_COORDINATOR
    assert {reply.ticket} == desk.parked


def test_unused_offsets_expire_with_their_group(desk: GroupDesk) -> None:
    member_id = settle(desk)
    commit(desk, ("orders", 0), member_id=member_id, generation=1)
    desk.ask(classic_operations.leave(GROUP, [MemberIdentity(member_id=member_id)]))
    commit(desk, ("orders", 0), group="simple")

    desk.pass_time(7 * DAY_MS - 1)
    desk.chores()
    assert desk.shard.offsets.of(GROUP)
    assert desk.shard.offsets.of("simple")

    desk.pass_time(1)
    desk.chores()
    assert not list(desk.shard.offsets.groups())
    assert not list(desk.shard.groups())
    desk.check()


def test_an_offset_on_a_new_topic_is_not_taken_for_one_on_a_topic_that_is_gone(
    desk: GroupDesk,
) -> None:
    commit(desk, ("orders", 0))
    (due,) = desk.shard.chores(desk.clock.now_ms())
    before, desk.image = desk.image, cluster(orders=2, other=1, fresh=1)

    # The cluster has changed; what that asks for in the shard still waits for its turn.
    asked = desk.shard.image_changed(before, desk.image, desk.clock.now_ms())
    assert commit(desk, ("fresh", 0)) is DONE
    desk.do(due)

    assert set(desk.shard.offsets.of(GROUP)) == {("orders", 0), ("fresh", 0)}
    assert not [operation for operation in asked if operation is not None]


@pytest.mark.parametrize("topic_id", [NO_TOPIC_ID, clusters.topic_id("orders")])
def test_a_topic_that_comes_again_keeps_what_is_committed_since(
    desk: GroupDesk, topic_id: bytes
) -> None:
    commit(desk, ("orders", 0), ("orders", 1), group="old", topic_id=topic_id)
    before = desk.image
    again = replace(before.topics["orders"], id=clusters.topic_id("another"))
    desk.image = clusters.with_topics(clusters.without(before, "orders"), again)
    asked = desk.shard.image_changed(before, desk.image, desk.clock.now_ms())
    desk.clock.advance(1)
    commit(desk, ("orders", 1), group="old", topic_id=again.id if any(topic_id) else topic_id)

    for operation in asked:
        if operation is not None:
            desk.do(operation)

    assert set(desk.shard.offsets.of("old")) == {("orders", 1)}


def test_offsets_of_subscribed_topics_do_not_expire(desk: GroupDesk) -> None:
    member_id = settle(desk)
    commit(desk, ("orders", 0), ("other", 0), member_id=member_id, generation=1)
    request = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member_id)
    for _ in range(8):
        desk.clock.advance(DAY_MS)
        desk.ask(classic_operations.heartbeat(request))

    desk.chores()

    assert set(desk.shard.offsets.of(GROUP)) == {("orders", 0)}


def test_a_commit_with_a_time_of_its_own_goes_then(desk: GroupDesk) -> None:
    commit(desk, ("orders", 0), expire_ms=desk.clock.now_ms() + 1_000)

    desk.pass_time(999)
    desk.chores()
    assert desk.shard.offsets.of(GROUP)
    desk.pass_time(1)
    desk.chores()
    assert not desk.shard.offsets.of(GROUP)


def test_group_id_identifies_a_group(desk: GroupDesk) -> None:
    settle(desk, group="a")
    settle(desk, group="b")

    assert sorted(group_id_of(group) for group in desk.shard.groups()) == ["a", "b"]


def test_expressions_are_matched_again_for_new_topics_only(desk: GroupDesk) -> None:
    def comes() -> int:
        """How much is to be matched once the member was heard of."""
        group = desk.shard.group(GROUP)
        assert isinstance(group, ConsumerGroup)
        beat(desk, "m1", group.members["m1"].epoch, topic_partitions=[])
        return len(desk.jobs)

    joins = {"topic_partitions": [], "rebalance_timeout_ms": 60_000}
    beat(desk, "m1", 0, subscribed_topic_regex="o.*", **joins)
    desk.run_jobs()
    desk.clock.advance(11_000)

    desk.change(later(cluster(orders=3, other=1), 8))
    assert comes() == 0, "a topic that grows has the same name"
    desk.change(later(cluster(orders=3, other=1, odds=1), 9))
    assert comes() == 1


def later(image: ClusterImage, version: int) -> ClusterImage:
    return replace(image, position=replace(image.position, version=version))
