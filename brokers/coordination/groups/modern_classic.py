"""Handles members of the classic protocol in a group of the consumer protocol.

Such a member neither waits for others nor assigns: its join takes it one step towards its target,
as a heartbeat does for the others, and its sync returns its partitions then. Its generation is its
epoch. Pure; `mixed_states` has the effects of requests on the group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups.classic import (
    CONSUMER_TYPE,
    Way,
    join_refused,
    sync_refused,
)
from brokers.coordination.groups.classic_join import (
    KNOWS_IDS,
    Joining,
    excess_of,
    rebalance_timeout_of,
    ways_of,
)
from brokers.coordination.groups.classic_leave import answer_of
from brokers.coordination.groups.migration import assignment_bytes, downgraded, may_downgrade
from brokers.coordination.groups.mixed_states import MEETINGS, MixedEvent
from brokers.coordination.groups.modern import (
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from brokers.coordination.groups.modern_desk import (
    CLASSIC_JOIN,
    CLASSIC_SYNC,
    SESSION,
    Place,
    Step,
)
from brokers.coordination.groups.modern_heartbeat import (
    assign_if_due,
    is_assignment_due,
    is_full,
    reconcile_member,
    take_up,
)
from brokers.coordination.groups.modern_leave import fence
from brokers.coordination.groups.subscription import Subscription, decode_subscription
from brokers.coordination.groups.values import TopicPartitions
from brokers.coordination.shard import CancelTimer, Outcome, SetTimer, Timer, TimerKey
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from brokers.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from brokers.protocol.messages.leave_group import MemberIdentity
from brokers.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# Of a member in a record that lists no protocol, which no join writes.
_NO_PROTOCOL: Final = ("", b"")


def join(group: ConsumerGroup, joining: Joining, place: Place, now_ms: int) -> Outcome[Any]:
    """Take a member one step towards its target; the group has members.

    The last member of the consumer protocol may be the one that comes back as a classic one, under
    its instance id: then the group becomes a classic one.
    """
    request = joining.request
    wrong = excess_of(request)
    if wrong is not None:
        return Outcome(response=join_refused(wrong, request.member_id))
    ways = ways_of(request)
    subscription = decode_subscription(ways[0].metadata) if ways else None
    event = _event_of_join(group, joining, ways, subscription, place)
    error = MEETINGS[event].error
    if event is MixedEvent.JOIN_WITHOUT_ID:
        return Outcome(response=join_refused(error, joining.new_id()))
    if error is not ErrorCode.NONE:
        return Outcome(response=join_refused(error, request.member_id))
    assert subscription is not None, "a join that cannot be read is refused"
    step = Step(group, place)
    member = _entered(step, joining)
    told = _told(member, joining, ways, subscription)
    has_changed = take_up(step, member, told, place, now_ms)
    owned = _owned(subscription, place.image)
    former = group.instances.get(request.group_instance_id or "")
    is_last = former is not None and group.members[former].classic is None
    if is_last and may_downgrade(tuple(step.group.members.values()), place.settings):
        moved = _came_back(step, told, owned, place, now_ms, has_changed=has_changed)
        if moved is not None:
            return moved
    assign_if_due(step, place, now_ms)
    reconciled = reconcile_member(step, step.group.members[told.id], owned, place)
    step.timers += (
        CancelTimer(TimerKey(CLASSIC_JOIN, group.id, told.id)),
        _session(group, reconciled),
        SetTimer(TimerKey(CLASSIC_SYNC, group.id, told.id), _rebalance_ms(reconciled)),
    )
    return step.outcome(group, _joined(reconciled, reconciled.epoch))


def sync(
    group: ConsumerGroup, request: SyncGroupRequest, place: Place, now_ms: int
) -> Outcome[Any]:
    """Answer with the member's current partitions, which it may read from then on."""
    event = _event_of_sync(group, request, place, now_ms)
    error = MEETINGS[event].error
    if event is MixedEvent.SYNC_BEHIND:
        member = group.members[request.member_id]
        return Outcome(response=sync_refused(error), timers=(_join_due(group, member),))
    if error is not ErrorCode.NONE:
        return Outcome(response=sync_refused(error))
    member = group.members[request.member_id]
    _name, metadata = _first_protocol(member)
    return Outcome(
        timers=(
            CancelTimer(TimerKey(CLASSIC_SYNC, group.id, member.id)),
            _session(group, member),
        ),
        response=SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=assignment_bytes(member.assigned, metadata, place.image),
        ),
    )


def heartbeat(
    group: ConsumerGroup, request: HeartbeatRequest, place: Place, now_ms: int
) -> Outcome[Any]:
    """Handle a heartbeat, which changes only timers, so it waits for no record."""
    event = _event_of_call(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    timers: tuple[Timer, ...] = ()
    if event is None:
        member = group.members[request.member_id]
        is_behind = _has_to_join(group, member, place, now_ms)
        event = MixedEvent.HEARTBEAT_BEHIND if is_behind else MixedEvent.HEARTBEAT
        timers = (_session(group, member), *((_join_due(group, member),) if is_behind else ()))
    return Outcome(response=HeartbeatResponse(error_code=MEETINGS[event].error), timers=timers)


def leave(
    group: ConsumerGroup, identities: Sequence[MemberIdentity], place: Place, now_ms: int
) -> Outcome[Any]:
    """Remove all named members that exist, regardless of their protocol.

    An administrator names static members by their instances alone, as in a classic group.
    """
    results: list[tuple[MemberIdentity, ErrorCode]] = []
    leaving: dict[str, ConsumerMember] = {}
    for identity in identities:
        event, member_id = _event_of_leave(group, identity)
        results.append((identity, MEETINGS[event].error))
        if event is MixedEvent.LEAVE:
            leaving[member_id] = group.members[member_id]
    answer = answer_of(results)
    if not leaving:
        return Outcome(response=answer)
    return fence(group, tuple(leaving.values()), place, now_ms, answer)


# -- events of requests --------------------------------------------------------------------------


def _event_of_join(
    group: ConsumerGroup,
    joining: Joining,
    ways: Sequence[Way],
    subscription: Subscription | None,
    place: Place,
) -> MixedEvent:
    request = joining.request
    member_id, instance_id = request.member_id, request.group_instance_id
    if is_full(group, member_id, place.settings):
        return MixedEvent.JOIN_FULL
    if not _supports(group, request, ways):
        return MixedEvent.JOIN_MISFIT
    if not member_id and instance_id is None and joining.version >= KNOWS_IDS:
        return MixedEvent.JOIN_WITHOUT_ID
    if member_id and instance_id is not None:
        known = group.instances.get(instance_id)
        if known is None:
            return MixedEvent.JOIN_UNKNOWN
        if known != member_id:
            return MixedEvent.JOIN_FENCED
    return MixedEvent.JOIN_UNREADABLE if subscription is None else MixedEvent.JOIN


def _supports(group: ConsumerGroup, request: JoinGroupRequest, ways: Sequence[Way]) -> bool:
    """Tell whether it shares a protocol with all classic members, who may be alone some day."""
    if request.protocol_type != CONSUMER_TYPE:
        return False
    everybody = group.classic_count
    return any(group.supporters.get(way.name, 0) == everybody for way in ways)


def _event_of_call(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> MixedEvent | None:
    """Return what is wrong with a sync or a heartbeat; None if nothing is."""
    if instance_id is not None:
        known = group.instances.get(instance_id)
        if known is None:
            return MixedEvent.UNKNOWN
        if known != member_id:
            return MixedEvent.FENCED
    member = group.members.get(member_id)
    if member is None:
        return MixedEvent.UNKNOWN
    if member.classic is None:
        return MixedEvent.OTHER_PROTOCOL
    return None if generation == member.epoch else MixedEvent.GENERATION


def _event_of_sync(
    group: ConsumerGroup, request: SyncGroupRequest, place: Place, now_ms: int
) -> MixedEvent:
    wrong = _event_of_call(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    if wrong is not None:
        return wrong
    member = group.members[request.member_id]
    name, _metadata = _first_protocol(member)
    if request.protocol_type not in {None, CONSUMER_TYPE} or request.protocol_name not in {
        None,
        name,
    }:
        return MixedEvent.SYNC_MISFIT
    # A member that has to revoke partitions learns it from its assignment.
    is_giving_up = member.state is MemberState.UNREVOKED_PARTITIONS
    if not is_giving_up and _is_behind(group, member, place, now_ms):
        return MixedEvent.SYNC_BEHIND
    return MixedEvent.SYNC


def _event_of_leave(group: ConsumerGroup, identity: MemberIdentity) -> tuple[MixedEvent, str]:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None:
        known = group.instances.get(instance_id)
        if known is None:
            return MixedEvent.LEAVE_UNKNOWN, ""
        if member_id not in {"", known}:
            return MixedEvent.LEAVE_FENCED, ""
        return MixedEvent.LEAVE, known
    if member_id not in group.members:
        return MixedEvent.LEAVE_UNKNOWN, ""
    return MixedEvent.LEAVE, member_id


def _is_behind(group: ConsumerGroup, member: ConsumerMember, place: Place, now_ms: int) -> bool:
    """Tell whether there is a newer assignment for the member, or it could ask for one.

    While the group has to wait for its next assignment, joining would bring nothing new.
    """
    return member.epoch < group.assignment_epoch or is_assignment_due(group, place, now_ms)


def _has_to_join(group: ConsumerGroup, member: ConsumerMember, place: Place, now_ms: int) -> bool:
    if member.state is MemberState.UNREVOKED_PARTITIONS or _is_behind(group, member, place, now_ms):
        return True
    # If all members are classic, only this check notices that topics have changed.
    if group.is_metadata_stale and group.classic_count == len(group.members):
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member)


def _waits(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Tell whether another member still has a partition of the member's target."""
    for topic_id, numbers in group.targets.get(member.id, {}).items():
        owners, assigned = group.owners.get(topic_id, {}), member.assigned.get(topic_id, {})
        if any(number in owners and number not in assigned for number in numbers):
            return True
    return False


# -- effects -------------------------------------------------------------------------------------


def _entered(step: Step, joining: Joining) -> ConsumerMember:
    """Return the joining member before the join; new, or in a static member's place."""
    request = joining.request
    member_id, instance_id = request.member_id, request.group_instance_id
    known = None if instance_id is None else step.group.instances.get(instance_id)
    if not member_id:
        member_id = joining.new_id()
        if known is not None:
            return step.exchange(step.group.members[known], member_id)
    return step.group.members.get(member_id) or ConsumerMember(id=member_id)


def _told(
    member: ConsumerMember, joining: Joining, ways: Sequence[Way], subscription: Subscription
) -> ConsumerMember:
    request = joining.request
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        who=joining.who,
        names=tuple(sorted(subscription.topics)),
        regex="",  # classic clients match topics themselves
        rebalance_timeout_ms=rebalance_timeout_of(request),
        classic=ClassicSide(
            session_timeout_ms=request.session_timeout_ms,
            protocols=tuple((way.name, way.metadata) for way in ways),
        ),
    )


def _came_back(
    step: Step,
    told: ConsumerMember,
    owned: TopicPartitions,
    place: Place,
    now_ms: int,
    *,
    has_changed: bool,
) -> Outcome[Any] | None:
    """Make the group classic, since its last member has come back so, if one batch can."""
    member = step.group.members[told.id]
    if not has_changed:
        member = reconcile_member(step, member, owned, place)
    group = step.group
    left = tuple(group.members.values())
    # A classic member may read its target at once: no other member may have any of it.
    is_settled = group.epoch == group.assignment_epoch and all(map(group.is_settled, left))
    response = _joined(member, group.epoch)
    return downgraded(step, left, place, now_ms, response, rebalances=has_changed or not is_settled)


def _joined(member: ConsumerMember, generation: int) -> JoinGroupResponse:
    """Name no leader and no other member: the coordinator assigns."""
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=CONSUMER_TYPE,
        protocol_name=_first_protocol(member)[0],
        leader="",
        member_id=member.id,
    )


def _first_protocol(member: ConsumerMember) -> tuple[str, bytes]:
    side = member.classic
    assert side is not None, f"member {member.id!r} does not speak the classic protocol"
    return side.protocols[0] if side.protocols else _NO_PROTOCOL


def _owned(subscription: Subscription, image: ClusterImage) -> TopicPartitions:
    topics = image.topics
    named: Mapping[str, frozenset[int]] = subscription.owned
    return {topics[name].id: numbers for name, numbers in named.items() if name in topics}


def _rebalance_ms(member: ConsumerMember) -> int:
    return max(member.rebalance_timeout_ms, 0)


def _session(group: ConsumerGroup, member: ConsumerMember) -> SetTimer:
    side = member.classic
    assert side is not None, f"member {member.id!r} does not speak the classic protocol"
    return SetTimer(TimerKey(SESSION, group.id, member.id), side.session_timeout_ms)


def _join_due(group: ConsumerGroup, member: ConsumerMember) -> SetTimer:
    """Remove the member unless it joins in time; asking again does not extend that."""
    key = TimerKey(CLASSIC_JOIN, group.id, member.id)
    return SetTimer(key, _rebalance_ms(member), only_if_absent=True)
