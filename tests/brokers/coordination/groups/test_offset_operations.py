"""Who may commit, and what may be deleted."""

from typing import Any

import pytest

from brokers.coordination.groups import offset_operations
from brokers.coordination.groups.describe import described, listed
from brokers.coordination.groups.offset_expiry import expire_offsets
from brokers.coordination.groups.values import Committed
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.consumer_group_heartbeat import TopicPartitions
from tests.brokers.coordination.groups.test_shard import (
    DELETED,
    DONE,
    GROUP,
    beat,
    code,
    commit,
    committing,
    desk,
    enter,
    settle,
)
from tests.fakes.group_desk import GroupDesk

__all__ = ["desk"]
PLACE = ("orders", 0)


def test_commit_without_a_member_needs_a_group_without_members(desk: GroupDesk) -> None:
    assert commit(desk, PLACE) is DONE
    assert desk.shard.offsets.of(GROUP)[PLACE] == Committed(
        7, 1, "note", desk.clock.now_ms(), topic_id=desk.image.topics[PLACE[0]].id
    )

    settle(desk)
    assert code(commit(desk, PLACE)) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_commit_with_a_generation_of_a_missing_group_is_refused(
    desk: GroupDesk, version: int, error: ErrorCode
) -> None:
    refused = commit(desk, PLACE, generation=3, member_id="m", version=version)

    assert code(refused) is error
    assert not desk.shard.offsets.of(GROUP)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({}, None),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_of_a_classic_group_commits_in_its_generation(
    desk: GroupDesk, changed: dict[str, Any], error: ErrorCode | None
) -> None:
    member_id = settle(desk)

    answer = commit(desk, PLACE, **{"member_id": member_id, "generation": 1, **changed})

    assert (answer is DONE) if error is None else (code(answer) is error)


@pytest.mark.parametrize(
    ("changed", "is_heard"),
    [({}, True), ({"generation": 2}, False), ({"member_id": "stranger"}, False)],
)
def test_a_commit_that_the_disk_does_not_let_happen_is_a_sign_of_life_of_a_member(
    desk: GroupDesk, changed: dict[str, Any], is_heard: bool
) -> None:
    member_id = settle(desk)
    who = {"member_id": member_id, "generation": 1, **changed}
    operation = offset_operations.commit(committing(desk, (PLACE,), **who))

    assert operation.heard is not None
    timer = operation.heard(desk.shard)

    assert (timer is not None) is is_heard
    if timer is not None:
        assert timer.key in desk.timers
        assert timer.after_ms > 0


def test_a_member_of_a_consumer_group_commits_in_its_epoch(desk: GroupDesk) -> None:
    epoch = enter(desk).member_epoch

    assert commit(desk, PLACE, member_id="m1", generation=epoch) is DONE
    assert code(commit(desk, PLACE, member_id="m1", generation=epoch + 1)) is (
        ErrorCode.STALE_MEMBER_EPOCH
    )
    assert code(commit(desk, PLACE, member_id="m2", generation=epoch)) is (
        ErrorCode.UNKNOWN_MEMBER_ID
    )
    old = commit(desk, PLACE, member_id="m1", generation=epoch, version=8)
    assert code(old) is ErrorCode.UNSUPPORTED_VERSION


def test_a_commit_that_was_on_its_way_holds_for_what_is_still_the_members(desk: GroupDesk) -> None:
    before = enter(desk, "m1").member_epoch
    enter(desk, "m2")
    kept = beat(desk, "m1", before).assignment.topic_partitions[0].partitions
    owned = [TopicPartitions(topic_id=desk.image.topics["orders"].id, partitions=kept)]
    after = beat(desk, "m1", before, topic_partitions=owned).member_epoch
    assert after > before
    (mine,), (theirs,) = kept, {0, 1} - set(kept)

    assert commit(desk, ("orders", mine), member_id="m1", generation=before) is DONE
    lost = commit(desk, ("orders", theirs), member_id="m1", generation=before)
    assert code(lost) is ErrorCode.STALE_MEMBER_EPOCH


def test_consumer_group_can_be_deleted_once_it_is_empty(desk: GroupDesk) -> None:
    epoch = enter(desk).member_epoch
    commit(desk, PLACE, member_id="m1", generation=epoch)
    assert code(desk.ask(offset_operations.delete_group(GROUP, DELETED))) is (
        ErrorCode.NON_EMPTY_GROUP
    )
    beat(desk, "m1", -1)

    assert desk.ask(offset_operations.delete_group(GROUP, DELETED)) is DELETED

    assert desk.shard.group(GROUP) is None
    assert not desk.shard.offsets.of(GROUP)
    desk.check()
    assert code(desk.ask(offset_operations.delete_group(GROUP, DELETED))) is (
        ErrorCode.GROUP_ID_NOT_FOUND
    )


def test_a_group_that_only_has_offsets_is_deleted(desk: GroupDesk) -> None:
    commit(desk, PLACE, ("other", 0))

    assert desk.ask(offset_operations.delete_group(GROUP, DELETED)) is DELETED
    assert not desk.shard.offsets.of(GROUP)


def test_a_group_outlives_its_last_offset(desk: GroupDesk) -> None:
    commit(desk, PLACE)
    topic, index = PLACE
    delete = offset_operations.delete_offsets(GROUP, {topic: [index]}, frozenset())

    desk.ask(delete)

    assert [(group.group_id, group.group_state) for group in listed(desk.shard)] == [
        (GROUP, "Empty")
    ]
    assert described(desk.shard, GROUP, 6).group_state == "Empty"
    assert code(desk.ask(delete).topics[0].partitions[0]) is ErrorCode.NONE
    assert desk.ask(offset_operations.delete_group(GROUP, DELETED)) is DELETED
    assert list(listed(desk.shard)) == []
    desk.check()


def test_a_group_without_offsets_goes_with_the_search_for_expired_ones(desk: GroupDesk) -> None:
    commit(desk, PLACE)
    topic, index = PLACE
    desk.ask(offset_operations.delete_offsets(GROUP, {topic: [index]}, frozenset()))

    desk.ask(expire_offsets(GROUP))

    assert list(listed(desk.shard)) == []
    desk.check()


@pytest.mark.parametrize("group_id", [GROUP, "g" * 4_096])
def test_a_group_with_more_offsets_than_a_batch_takes_goes_in_portions(
    desk: GroupDesk, group_id: str
) -> None:
    places = [(topic, index) for topic in ("orders", "other") for index in range(700)]
    for start in range(0, len(places), 100):
        commit(desk, *places[start : start + 100], group=group_id)
    before = len(desk.records)
    operation = offset_operations.delete_group(group_id, DELETED)

    first = operation.run(desk.shard, 0, 1)
    assert first is not None
    assert 0 < sum(len(record.key) for record in first.records) < 1_000_000
    assert first.then is operation
    assert desk.ask(operation) is DELETED

    # And the group's own tombstone.
    assert len(desk.records) - before == len(places) + 1
    assert group_id not in desk.shard.offsets
    desk.check()


def test_offsets_of_topics_that_are_read_stay(desk: GroupDesk) -> None:
    member_id = settle(desk)
    commit(desk, PLACE, ("other", 0), member_id=member_id, generation=1)
    wanted = {"orders": [0], "other": [0, 5], "nowhere": [0]}
    unknown = frozenset({("nowhere", 0), ("other", 5)})

    answer = desk.ask(offset_operations.delete_offsets(GROUP, wanted, unknown))

    codes = {
        (topic.name, part.partition_index): code(part)
        for topic in answer.topics
        for part in topic.partitions
    }
    assert codes == {
        ("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("other", 0): ErrorCode.NONE,
        ("other", 5): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert set(desk.shard.offsets.of(GROUP)) == {PLACE}


def test_offsets_of_no_group_are_not_deleted(desk: GroupDesk) -> None:
    answer = desk.ask(offset_operations.delete_offsets("nobody", {"orders": [0]}, frozenset()))

    assert code(answer) is ErrorCode.GROUP_ID_NOT_FOUND
