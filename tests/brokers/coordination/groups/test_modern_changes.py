"""A group in the making: contradictions in records, and what follows from members."""

import pytest

from brokers.coordination.groups.modern import FIRST_EPOCH, ConsumerGroup, MemberState
from brokers.coordination.groups.modern_changes import (
    Change,
    Draft,
    GroupEpoch,
    MemberSaid,
    MemberStands,
    MemberTarget,
    RegexResolved,
    Said,
    Stand,
    TargetEpoch,
)
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.coordination.groups.consumers import GROUP, WHO, recomputed

TOPIC = b"t" * 16


def said(name: str, **more: object) -> MemberSaid:
    plain: dict[str, object] = {
        "instance_id": None,
        "rack_id": None,
        "who": WHO,
        "names": ("t",),
        "regex": "",
        "assignor": None,
        "rebalance_timeout_ms": 1,
        "classic": None,
    }
    return MemberSaid(name, Said(**{**plain, **more}))  # type: ignore[arg-type]


def stands(name: str, *partitions: int) -> MemberStands:
    return MemberStands(
        name,
        Stand(
            epoch=3,
            previous_epoch=2,
            state=MemberState.STABLE,
            assigned={TOPIC: dict.fromkeys(partitions, 3)},
            revoking={},
        ),
    )


def made(*changes: Change) -> ConsumerGroup:
    return Draft(ConsumerGroup(id=GROUP)).take_all(changes)


def refuse(*changes: Change) -> str:
    with pytest.raises(KafkaError) as refused:
        made(*changes)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    message: str = refused.value.message
    return message


def test_a_partition_has_one_owner() -> None:
    assert "'a' has it" in refuse(stands("a", 0, 1), stands("b", 1))
    assert made(stands("a", 0), stands("a", 1), stands("b", 0)).owners == {TOPIC: {0: "b", 1: "a"}}


def test_a_member_is_deleted_behind_its_target_and_position() -> None:
    whole: list[Change] = [said("a"), MemberTarget("a", {}), stands("a", 0)]

    refuse(*whole, MemberSaid("a", None))
    refuse(*whole, MemberStands("a", None), MemberSaid("a", None))
    refuse(*whole, MemberTarget("a", None), MemberSaid("a", None))
    gone: list[Change] = [MemberStands("a", None), MemberTarget("a", None), MemberSaid("a", None)]
    assert made(*whole, *gone) == ConsumerGroup(id=GROUP)


def test_a_group_is_deleted_behind_all_that_is_in_it() -> None:
    refuse(said("a"), GroupEpoch(None))
    refuse(MemberTarget("a", {}), GroupEpoch(None))
    refuse(MemberTarget("a", {}), TargetEpoch(None))
    assert made(GroupEpoch(4, 5), GroupEpoch(None)).epoch == FIRST_EPOCH


def test_missing_value_can_be_deleted() -> None:
    group = made(
        MemberStands("a", None),
        MemberTarget("a", None),
        MemberSaid("a", None),
        RegexResolved("x", None),
        TargetEpoch(None),
        GroupEpoch(None),
    )

    assert group == ConsumerGroup(id=GROUP)


def test_records_of_a_member_come_in_any_order_after_compaction() -> None:
    assert made(stands("a", 0), said("a")) == made(said("a"), stands("a", 0))


def test_derived_values_follow_each_change_of_members() -> None:
    changes: list[Change] = [
        said("a", instance_id="i", regex="x", assignor="range", names=("t", "u")),
        stands("a", 0, 1),
        said("b", names=("u",)),
        said("a", instance_id="i", assignor="uniform"),
        stands("b", 2),
        stands("a"),
        MemberStands("b", None),
        MemberSaid("b", None),
    ]
    draft = Draft(ConsumerGroup(id=GROUP))
    groups = []
    for change in changes:
        draft.take(change)
        groups.append(draft.group())
        assert groups[-1] == recomputed(groups[-1])

    # A value that was given out does not change any more.
    assert [len(group.members) for group in groups] == [1, 1, 2, 2, 2, 2, 2, 1]
    assert groups[1].owners == {TOPIC: {0: "a", 1: "a"}}
