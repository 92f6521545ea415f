"""Removes a member from a consumer group: on request, or after a timeout.

Pure: group, member and time in, an outcome out. A group whose last member of the consumer protocol
leaves becomes classic, if that is allowed.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from brokers.coordination.groups import modern_desk
from brokers.coordination.groups.migration import downgraded, may_downgrade
from brokers.coordination.groups.modern import (
    LEAVES_FOR_A_WHILE,
    NOTHING_GIVEN,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from brokers.coordination.groups.modern_changes import stand_of
from brokers.coordination.groups.modern_desk import REBALANCE, Place, Step
from brokers.coordination.shard import Answer, CancelTimer, Outcome, TimerKey
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def leave(
    group: ConsumerGroup | None,
    request: ConsumerGroupHeartbeatRequest,
    place: Place,
    now_ms: int,
) -> Outcome[Any]:
    """Handle a heartbeat with one of the epochs for leaving."""
    if group is None:
        raise no_group(request.group_id)
    if request.instance_id is None:
        member = group.members.get(request.member_id)
        if member is None:
            raise unknown_member(group, request.member_id)
    else:
        member = member_of_instance(group, request.instance_id, request.member_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.member_epoch == LEAVES_FOR_A_WHILE:
        return _leave_for_a_while(group, member, place, response)
    return fence(group, [member], place, now_ms, response)


def fence(
    group: ConsumerGroup,
    members: Collection[ConsumerMember],
    place: Place,
    now_ms: int,
    response: Answer | None = None,
) -> Outcome[Any]:
    """Remove members at once, with one new epoch for all of them."""
    step = Step(group, place)
    # Compare the counts first: mostly there is no classic member, or another one stays.
    others = len(group.members) - group.classic_count
    if group.classic_count and others == sum(member.classic is None for member in members):
        gone = {member.id for member in members}
        left = [member for member in group.members.values() if member.id not in gone]
        if may_downgrade(left, place.settings):
            moved = downgraded(step, left, place, now_ms, response, rebalances=True)
            if moved is not None:
                return moved
    step.remove(*members)
    step.bump(is_needed=True)
    return step.outcome(group, response)


def expire(group: ConsumerGroup | None, key: TimerKey, place: Place, now_ms: int) -> Outcome[Any]:
    """Handle a timer of a member that has fired; ignore it if its reason is over."""
    member = None if group is None else group.members.get(key.part)
    match key.kind:
        case _ if group is None or member is None:
            return Outcome()
        case modern_desk.SESSION:
            return session_expired(group, member.id, place, now_ms)
        case modern_desk.REBALANCE:
            return rebalance_expired(group, member.id, member.epoch, place, now_ms)
        case modern_desk.CLASSIC_JOIN | modern_desk.CLASSIC_SYNC:
            return Outcome() if member.classic is None else fence(group, [member], place, now_ms)
        case _:
            return Outcome()  # of the classic group that it was


def session_expired(
    group: ConsumerGroup | None, member_id: str, place: Place, now_ms: int
) -> Outcome[Any]:
    """Remove a member that was silent for its session."""
    member = group.members.get(member_id) if group is not None else None
    return Outcome() if group is None or member is None else fence(group, [member], place, now_ms)


def rebalance_expired(
    group: ConsumerGroup | None, member_id: str, epoch: int, place: Place, now_ms: int
) -> Outcome[Any]:
    """Remove a member that has not revoked in time; `epoch` is that of the timer."""
    member = group.members.get(member_id) if group is not None else None
    if group is None or member is None or member.epoch != epoch:
        return Outcome()
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        return Outcome()
    return fence(group, [member], place, now_ms)


def _leave_for_a_while(
    group: ConsumerGroup,
    member: ConsumerMember,
    place: Place,
    response: ConsumerGroupHeartbeatResponse,
) -> Outcome[Any]:
    """Keep the partitions for a return under the instance id, until the session ends.

    Partitions under revocation become free: a member that has left reads nothing. Late commits with
    an old epoch on the kept partitions are refused.
    """
    kept = {topic: dict.fromkeys(given, 0) for topic, given in member.assigned.items()}
    away = replace(member, epoch=LEAVES_FOR_A_WHILE, assigned=kept, revoking=NOTHING_GIVEN)
    step = Step(group, place)
    step.add(stand_of(away))
    step.timers.append(CancelTimer(TimerKey(REBALANCE, group.id, member.id)))
    return step.outcome(group, response)


def member_of_instance(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """Return the static member, if the id is still its own."""
    known = group.instances.get(instance_id)
    if known is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"group {group.id!r} has no static member {instance_id!r}",
        )
    if known != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"static member {instance_id!r} is {known!r} now, no longer {member_id!r}",
        )
    return group.members[known]


def unknown_member(group: ConsumerGroup, member_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.id!r} has no member {member_id!r}"
    )


def no_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id!r}")
