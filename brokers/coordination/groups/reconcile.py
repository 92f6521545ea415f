"""Moves a member from its current to its target assignment, one step per heartbeat.

Uses one member, its target and the owners of partitions; no group and no record. A member first
revokes the partitions that it must not keep, then moves to the epoch of the target, then gets those
that others have revoked. A partition is never assigned while it has an owner.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from brokers.coordination.groups.modern import (
    NOTHING_GIVEN,
    ConsumerMember,
    Given,
    MemberState,
)
from brokers.coordination.groups.values import TopicPartitions
from brokers.protocol.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """The input of a step, beside the member."""

    epoch: int  # of the target
    target: TopicPartitions
    subscribed: Collection[bytes]  # topic ids
    # The partitions that the member reports; None if it reported none, and may have them all.
    owned: TopicPartitions | None
    owners: Mapping[bytes, Mapping[int, str]]


def reconcile(member: ConsumerMember, aim: Aim) -> ConsumerMember:
    """Move the member one step further; return the same object if there is no step to take."""
    match member.state:
        case MemberState.STABLE:
            stays = member.epoch == aim.epoch
        case MemberState.UNREVOKED_PARTITIONS:
            stays = _still_has(aim, member.revoking)
        case MemberState.UNRELEASED_PARTITIONS:
            stays = False
        case MemberState.UNKNOWN:
            if aim.owned is None or any(aim.owned.values()):
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    f"member {member.id!r} is in a state of a newer version: it must give up all "
                    "its partitions and join again",
                )
            stays = False
    moved = _strip(member, aim) if stays else _compute(member, aim)
    return member if moved == member else moved


def _strip(member: ConsumerMember, aim: Aim) -> ConsumerMember:
    """Remove topics that are no longer subscribed to; the member's state stays as it is."""
    lost = {topic: given for topic, given in member.assigned.items() if topic not in aim.subscribed}
    if not lost:
        return member
    assigned = {topic: given for topic, given in member.assigned.items() if topic not in lost}
    revoking = {topic: dict(given) for topic, given in member.revoking.items()}
    for topic, given in lost.items():
        revoking.setdefault(topic, {}).update(given)
    if not _still_has(aim, revoking):
        return replace(member, assigned=assigned)
    state = MemberState.UNREVOKED_PARTITIONS
    return replace(member, state=state, assigned=assigned, revoking=revoking)


def _compute(member: ConsumerMember, aim: Aim) -> ConsumerMember:
    kept: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    is_unreleased = False
    gets: dict[bytes, list[int]] = {}
    for topic in {*aim.target, *member.assigned}:
        assigned = member.assigned.get(topic, {})
        target = aim.target.get(topic, frozenset()) if topic in aim.subscribed else frozenset()
        if keep := {number: epoch for number, epoch in assigned.items() if number in target}:
            kept[topic] = keep
        if revoke := {number: epoch for number, epoch in assigned.items() if number not in target}:
            revoking[topic] = revoke
        wanted = [number for number in sorted(target) if number not in keep]
        released = _released(member, aim, topic, wanted)
        is_unreleased |= len(released) < len(wanted)
        if released:
            gets[topic] = released
    if revoking and _still_has(aim, revoking):
        return replace(
            member, state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking
        )
    for topic, numbers in gets.items():
        kept.setdefault(topic, {}).update(dict.fromkeys(numbers, aim.epoch))
    waits = MemberState.UNRELEASED_PARTITIONS
    return replace(
        member,
        state=waits if is_unreleased else MemberState.STABLE,
        epoch=aim.epoch,
        previous_epoch=member.previous_epoch if member.epoch == aim.epoch else member.epoch,
        assigned=kept,
        revoking=NOTHING_GIVEN,
    )


def _released(member: ConsumerMember, aim: Aim, topic: bytes, wanted: Iterable[int]) -> list[int]:
    """Return those without another owner. A member gets back at once what it was revoking."""
    owners = aim.owners.get(topic, {})
    return [number for number in wanted if owners.get(number, member.id) == member.id]


def _still_has(aim: Aim, revoking: Given) -> bool:
    if aim.owned is None:
        return True
    return any(
        number in given for topic, given in revoking.items() for number in aim.owned.get(topic, ())
    )


def is_within(owned: TopicPartitions, assigned: Given) -> bool:
    """Tell whether all partitions that the member reports were assigned to it."""
    return all(
        number in assigned.get(topic, ()) for topic, numbers in owned.items() for number in numbers
    )


def follows_subscription(member: ConsumerMember, subscribed: Collection[bytes]) -> bool:
    """Tell whether all topics of the member's partitions are still subscribed to."""
    return all(topic in subscribed for topic in member.assigned)
