"""Changes of consumer groups as records, both ways."""

import pytest

from brokers.coordination.groups.modern import ClassicSide, MemberState, ResolvedRegex
from brokers.coordination.groups.modern_changes import (
    Change,
    GroupEpoch,
    MemberSaid,
    MemberStands,
    MemberTarget,
    OldMetadata,
    RegexResolved,
    Said,
    Stand,
    TargetEpoch,
)
from brokers.coordination.groups.modern_records import change_of, write
from brokers.coordination.groups.record_messages import (
    ConsumerGroupCurrentMemberAssignmentValue,
    CurrentTopicPartitions,
)
from brokers.coordination.groups.records import (
    CurrentMemberKey,
    GroupKey,
    OffsetKey,
    PartitionMetadataKey,
    decode_key,
    record_of,
)
from brokers.coordination.shard import Record
from tests.brokers.coordination.groups.consumers import WHO

TOPIC = b"t" * 16
SAID = Said(
    instance_id="i",
    rack_id="r",
    who=WHO,
    names=("a", "b"),
    regex="x.*",
    assignor="range",
    rebalance_timeout_ms=5,
    classic=ClassicSide(session_timeout_ms=6, protocols=(("range", b"\x00"), ("sticky", b""))),
)
STAND = Stand(
    epoch=7,
    previous_epoch=6,
    state=MemberState.UNREVOKED_PARTITIONS,
    assigned={TOPIC: {0: 3, 2: 5}},
    revoking={TOPIC: {1: 4}},
)


@pytest.mark.parametrize(
    "change",
    [
        GroupEpoch(3, -5),
        GroupEpoch(None),
        OldMetadata(is_there=False),
        MemberSaid("m", SAID),
        MemberSaid("m", None),
        TargetEpoch(3, 1_700_000_000_000),
        TargetEpoch(None),
        MemberTarget("m", {TOPIC: frozenset({0, 9})}),
        MemberTarget("m", {}),
        MemberTarget("m", None),
        MemberStands("m", STAND),
        MemberStands("m", None),
        RegexResolved("x.*", ResolvedRegex(frozenset({"x1", "x2"}), 4, 5)),
        RegexResolved("x.*", None),
    ],
)
def test_a_change_comes_back_from_its_bytes(change: Change) -> None:
    record = write("g", change)
    key = decode_key(record.key)
    assert key is not None
    assert not isinstance(key, OffsetKey)

    assert change_of(key, Record(record.key, record.value)) == change
    assert change_of(key, record) is change


def stands(topic: CurrentTopicPartitions, *, member_epoch: int = 8) -> Change | None:
    key = CurrentMemberKey("g", "m")
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member_epoch, state=5, assigned_partitions=[topic]
    )
    return change_of(key, record_of(key, value))


def test_without_epochs_of_partitions_the_member_has_its_own_for_all() -> None:
    change = stands(CurrentTopicPartitions(topic_id=TOPIC, partitions=[1, 2]))

    assert isinstance(change, MemberStands)
    assert change.stand is not None
    assert change.stand.assigned == {TOPIC: {1: 8, 2: 8}}
    assert change.stand.state is MemberState.UNKNOWN


@pytest.mark.parametrize("epochs", [[], [1], [1, 2, 3]])
@pytest.mark.parametrize(("member_epoch", "expected"), [(8, 8), (-2, 0)])
def test_epochs_that_do_not_fit_the_partitions_are_the_members(
    epochs: list[int], member_epoch: int, expected: int
) -> None:
    topic = CurrentTopicPartitions(topic_id=TOPIC, partitions=[1, 2], assignment_epochs=epochs)

    change = stands(topic, member_epoch=member_epoch)

    assert isinstance(change, MemberStands)
    assert change.stand is not None
    assert change.stand.assigned == {TOPIC: {1: expected, 2: expected}}


def test_topic_metadata_record_of_an_older_kafka_is_only_noted() -> None:
    there = Record(b"", b"anything")

    assert change_of(PartitionMetadataKey("g"), there) == OldMetadata(is_there=True)
    assert change_of(GroupKey("g"), there) is None
