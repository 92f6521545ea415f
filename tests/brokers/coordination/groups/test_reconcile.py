"""Every row of the way from what a member has to what it should have."""

from dataclasses import replace
from typing import Any

import pytest

from brokers.coordination.groups.modern import ConsumerMember, MemberState
from brokers.coordination.groups.reconcile import Aim, reconcile
from brokers.protocol.errors import ErrorCode, KafkaError

A, B = b"a" * 16, b"b" * 16
STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS


def member(**given: Any) -> ConsumerMember:
    return ConsumerMember(**{"id": "me", "epoch": 4, "previous_epoch": 3, **given})


def aim(**given: Any) -> Aim:
    plain = {"epoch": 5, "target": {}, "subscribed": {A, B}, "owned": None, "owners": {}}
    return Aim(**{**plain, **given})


def target(**topics: set[int]) -> dict[bytes, frozenset[int]]:
    return {name.encode() * 16: frozenset(numbers) for name, numbers in topics.items()}


def test_a_stable_member_at_the_epoch_of_the_target_stays_the_same_object() -> None:
    settled = member(epoch=5, assigned={A: {0: 5}})

    assert reconcile(settled, aim(target=target(a={0, 1}))) is settled


def test_free_partitions_are_given_with_the_epoch_of_the_target() -> None:
    moved = reconcile(member(assigned={A: {0: 2}}), aim(target=target(a={0, 1})))

    assert moved == member(epoch=5, previous_epoch=4, assigned={A: {0: 2, 1: 5}})


def test_partitions_are_revoked_before_the_epoch_advances() -> None:
    moved = reconcile(member(assigned={A: {0: 2, 1: 3}}), aim(target=target(a={1}, b={0})))

    assert moved == member(state=UNREVOKED, assigned={A: {1: 3}}, revoking={A: {0: 2}})


def test_partition_that_the_member_no_longer_owns_is_not_revoked() -> None:
    moved = reconcile(
        member(assigned={A: {0: 2, 1: 3}}), aim(target=target(a={1}), owned=target(a={1}))
    )

    assert moved == member(epoch=5, previous_epoch=4, assigned={A: {1: 3}})


@pytest.mark.parametrize("owned", [None, target(a={0, 1})])
def test_a_member_stays_until_it_has_let_go(owned: Any) -> None:
    revoking = member(state=UNREVOKED, assigned={A: {1: 3}}, revoking={A: {0: 2}})

    assert reconcile(revoking, aim(target=target(a={1}), owned=owned)) is revoking


def test_a_member_that_has_let_go_moves_on() -> None:
    revoking = member(state=UNREVOKED, assigned={A: {1: 3}}, revoking={A: {0: 2}})

    moved = reconcile(revoking, aim(target=target(a={1}), owned=target(a={1})))

    assert moved == member(epoch=5, previous_epoch=4, assigned={A: {1: 3}})


def test_member_may_get_a_partition_back_that_it_was_revoking() -> None:
    revoking = member(state=UNREVOKED, assigned={A: {1: 3}}, revoking={A: {0: 2}})

    moved = reconcile(
        revoking, aim(target=target(a={0, 1}), owned={}, owners={A: {0: "me", 1: "me"}})
    )

    assert moved == member(epoch=5, previous_epoch=4, assigned={A: {0: 5, 1: 3}})


def test_free_partitions_are_assigned_and_owned_ones_awaited() -> None:
    moved = reconcile(member(), aim(target=target(a={0, 1}), owners={A: {1: "other"}}))

    assert moved == member(epoch=5, previous_epoch=4, state=UNRELEASED, assigned={A: {0: 5}})


def test_a_member_that_can_be_given_nothing_yet_waits_in_the_new_epoch() -> None:
    moved = reconcile(member(), aim(target=target(a={1}), owners={A: {1: "other"}}))

    assert moved == member(epoch=5, previous_epoch=4, state=UNRELEASED)
    assert reconcile(moved, aim(target=target(a={1}), owners={A: {1: "other"}})) is moved


def test_a_waiting_member_gets_what_was_released_and_keeps_its_previous_epoch() -> None:
    waiting = member(epoch=5, previous_epoch=4, state=UNRELEASED)

    moved = reconcile(waiting, aim(target=target(a={1})))

    assert moved == replace(waiting, state=STABLE, assigned={A: {1: 5}})


def test_unsubscribed_topic_is_not_assigned() -> None:
    moved = reconcile(
        member(assigned={A: {0: 2}}), aim(target=target(a={0}, b={0}), subscribed={B})
    )

    assert moved == member(state=UNREVOKED, revoking={A: {0: 2}})


def test_a_settled_member_gives_up_what_it_no_longer_subscribes_to() -> None:
    settled = member(epoch=5, assigned={A: {0: 2}, B: {1: 2}})

    moved = reconcile(settled, aim(target=target(a={0}, b={1}), subscribed={B}))
    has_let_go = reconcile(
        settled, aim(target=target(a={0}, b={1}), subscribed={B}, owned=target(b={1}))
    )

    assert moved == replace(settled, state=UNREVOKED, assigned={B: {1: 2}}, revoking={A: {0: 2}})
    assert has_let_go == replace(settled, assigned={B: {1: 2}})


def test_more_is_revoked_while_the_member_still_revokes() -> None:
    revoking = member(state=UNREVOKED, assigned={A: {1: 3}, B: {0: 1}}, revoking={A: {0: 2}})

    moved = reconcile(revoking, aim(subscribed={B}))

    assert moved == replace(revoking, assigned={B: {0: 1}}, revoking={A: {0: 2, 1: 3}})


@pytest.mark.parametrize("owned", [None, target(a={0})])
def test_a_member_in_an_unknown_state_is_fenced_while_it_may_have_partitions(owned: Any) -> None:
    with pytest.raises(KafkaError) as refused:
        reconcile(member(state=MemberState(9)), aim(owned=owned))

    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_in_an_unknown_state_without_partitions_begins_again() -> None:
    moved = reconcile(member(state=MemberState.UNKNOWN), aim(owned={}, target=target(a={0})))

    assert moved == member(epoch=5, previous_epoch=4, assigned={A: {0: 5}})
