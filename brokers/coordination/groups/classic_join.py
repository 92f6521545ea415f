"""Handles JoinGroup of a classic group: joining, rejoining, and waiting for the other members.

Pure: takes the request, the time and a new id. The group of the request, and whether its session
timeout is allowed, have been checked before.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from brokers.coordination.groups.classic import (
    ClassicGroup,
    ClassicMember,
    Way,
    counted,
    event_of_id,
    join_refused,
    joined,
    select_protocol,
    supports,
)
from brokers.coordination.groups.classic_steps import SESSION_TIMER, Draft
from brokers.coordination.groups.settings import (
    MAX_ID_BYTES,
    MAX_MEMBER_METADATA_BYTES,
    MAX_MEMBERS,
    MAX_PROTOCOLS,
    GroupSettings,
)
from brokers.coordination.groups.states import ClassicState, Event, Then, edge_of
from brokers.coordination.groups.values import Who
from brokers.coordination.shard import PARKED, Outcome, Ticket
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.join_group import JoinGroupRequest

# From this version on a new member has to join again with an id that it gets first: if its answer
# is lost, no dead member remains.
KNOWS_IDS: Final = 4
# From this version on a leader can be told to leave the assignment as it is.
_SKIPS_ASSIGNMENT: Final = 9

_ENTERS: Final = frozenset({Event.JOIN_NEWCOMER, Event.JOIN_PENDING})
_RETURNS: Final = frozenset({Event.JOIN_REPLACED, Event.JOIN_REPLACED_AND_CHANGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """One join as it arrived."""

    request: JoinGroupRequest
    version: int
    who: Who
    ticket: Ticket
    new_id: Callable[[], str]  # of the kind that member_id_of makes


def member_id_of(request: JoinGroupRequest, who: Who, unique: str) -> str:
    """Return an id for a new member, by which people can recognize it."""
    name = request.group_instance_id or who.client_id
    # Names of clients may be longer than ids. A character that is cut in two is left out.
    shown = name.encode()[: MAX_ID_BYTES - len(unique) - 1].decode(errors="ignore")
    return f"{shown}-{unique}"


def join(
    group: ClassicGroup | None,
    joining: Joining,
    *,
    settings: GroupSettings,
    now_ms: int,
) -> Outcome[Any]:
    request = joining.request
    if group is None:
        if request.member_id:
            return _refused(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        group = ClassicGroup(group_id=request.group_id)
    wrong = excess_of(request)
    if wrong is not None:
        return _refused(wrong, request.member_id)
    ways = ways_of(request)
    event = _event(group, joining, ways, settings)
    edge = edge_of(group.state, event)
    draft = Draft(group, settings=settings, now_ms=now_ms)
    if event is Event.JOIN_FULL:
        return _turned_away(draft, request.member_id)
    if event is Event.JOIN_WITHOUT_ID:
        return _told_its_id(draft, joining)
    if edge.then is Then.REFUSE:
        return _refused(edge.error, request.member_id)
    if event in _ENTERS:
        member_id = request.member_id or joining.new_id()
        draft.add(_newcomer(joining, member_id, ways), request.protocol_type, joining.ticket)
    elif event in _RETURNS:
        assert request.group_instance_id is not None, f"{event} without an instance"
        old_id = group.static_ids[request.group_instance_id]
        member = _again(group.members[old_id], joining, ways, joining.new_id())
        draft.exchange(old_id, member)
        if edge.then is Then.ANSWER:
            return _kept(draft, member.member_id, group.leader, joining)
        draft.update(member, joining.ticket)
    elif edge.then is Then.ANSWER:
        return Outcome(response=joined(group, request.member_id))
    else:
        known = group.members[request.member_id]
        draft.update(_again(known, joining, ways, known.member_id), joining.ticket)
    draft.follow(edge)
    return draft.outcome(PARKED, joining.ticket)


def excess_of(request: JoinGroupRequest) -> ErrorCode | None:
    """Return the error of a join that brings more than one member may."""
    if len(request.protocols) > MAX_PROTOCOLS:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    instance_id = request.group_instance_id or ""
    if len(instance_id.encode()) > MAX_ID_BYTES:
        return ErrorCode.INVALID_REQUEST
    # Names count as well: they are kept as long as the member is there.
    size = sum(len(each.name.encode()) + len(each.metadata) for each in request.protocols)
    return ErrorCode.INVALID_REQUEST if size > MAX_MEMBER_METADATA_BYTES else None


def ways_of(request: JoinGroupRequest) -> tuple[Way, ...]:
    """Return the protocols of a join, each name once."""
    ways: dict[str, Way] = {}
    for protocol in request.protocols:
        ways.setdefault(protocol.name, Way(protocol.name, bytes(protocol.metadata)))
    return tuple(ways.values())


def _newcomer(joining: Joining, member_id: str, ways: tuple[Way, ...]) -> ClassicMember:
    request = joining.request
    return ClassicMember(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=joining.who.client_id,
        client_host=joining.who.host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_of(request),
        ways=ways,
    )


def _again(
    known: ClassicMember, joining: Joining, ways: tuple[Way, ...], member_id: str
) -> ClassicMember:
    # Its client id and host stay as they were at its first join.
    request = joining.request
    return replace(
        known,
        member_id=member_id,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_of(request),
        ways=ways,
    )


def rebalance_timeout_of(request: JoinGroupRequest) -> int:
    if request.rebalance_timeout_ms >= 0:
        return request.rebalance_timeout_ms
    return request.session_timeout_ms


def _event(
    group: ClassicGroup, joining: Joining, ways: tuple[Way, ...], settings: GroupSettings
) -> Event:
    """Return the event that this join is for the group."""
    request = joining.request
    member_id, instance_id = request.member_id, request.group_instance_id
    if _is_full(group, member_id, instance_id, settings):
        return Event.JOIN_FULL
    if not supports(group, request.protocol_type, ways):
        return Event.JOIN_MISFIT
    if not member_id:
        return _event_of_newcomer(group, joining, ways)
    if member_id in group.pending:
        return Event.JOIN_PENDING if instance_id is None else Event.JOIN_PENDING_AS_STATIC
    wrong = event_of_id(
        group, member_id, instance_id, unknown=Event.JOIN_UNKNOWN, fenced=Event.JOIN_FENCED
    )
    if wrong is not None:
        return wrong
    if group.members[member_id].ways != ways:
        return Event.JOIN_CHANGED
    is_leader = member_id == group.leader
    return Event.JOIN_LEADER_AGAIN if is_leader else Event.JOIN_FOLLOWER_AGAIN


def _event_of_newcomer(group: ClassicGroup, joining: Joining, ways: tuple[Way, ...]) -> Event:
    instance_id = joining.request.group_instance_id
    if instance_id is None:
        knows_ids = joining.version >= KNOWS_IDS
        return Event.JOIN_WITHOUT_ID if knows_ids else Event.JOIN_NEWCOMER
    if instance_id not in group.static_ids:
        return Event.JOIN_NEWCOMER
    # Find the protocol that the members would select if it joined with these.
    known = group.members[group.static_ids[instance_id]]
    member = replace(known, ways=ways)
    trial = replace(
        group,
        members={**group.members, known.member_id: member},
        supporters=counted(group.supporters, gone=(known,), come=(member,)),
    )
    is_same = select_protocol(trial) == group.protocol
    return Event.JOIN_REPLACED if is_same else Event.JOIN_REPLACED_AND_CHANGED


def _is_full(
    group: ClassicGroup, member_id: str, instance_id: str | None, settings: GroupSettings
) -> bool:
    is_known = member_id in group.members or member_id in group.pending
    is_back = not member_id and instance_id in group.static_ids
    if not is_known and not is_back and len(group.members) + len(group.pending) >= MAX_MEMBERS:
        return True
    match group.state:
        case ClassicState.EMPTY:
            return False
        case ClassicState.PREPARING:
            # Waiting joins are counted, not members: after the limit was lowered, the last members
            # to rejoin are refused.
            return member_id not in group.joining and len(group.joining) >= settings.max_size
        case _:
            return member_id not in group.members and len(group.members) >= settings.max_size


def _turned_away(draft: Draft, member_id: str) -> Outcome[Any]:
    if member_id in draft.group.members:
        draft.remove((member_id,))
    elif member_id in draft.group.pending:
        draft.forget(member_id)
    return draft.outcome(join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED))


def _told_its_id(draft: Draft, joining: Joining) -> Outcome[Any]:
    member_id = joining.new_id()
    draft.change(pending=draft.group.pending | {member_id})
    draft.set_timer(SESSION_TIMER, joining.request.session_timeout_ms, member_id)
    return draft.outcome(join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))


def _kept(
    draft: Draft, member_id: str, leader_before: str | None, joining: Joining
) -> Outcome[Any]:
    """Answer a static member that is back and keeps its assignment."""
    draft.save()
    answer = joined(draft.group, member_id)
    if joining.version >= _SKIPS_ASSIGNMENT:
        answer.skip_assignment = member_id == draft.group.leader
    else:
        # It must not assign, so the answer does not name it as the leader.
        answer.leader = leader_before or ""
        answer.members = []
    return draft.outcome(answer)


def _refused(error: ErrorCode, member_id: str) -> Outcome[Any]:
    return Outcome(response=join_refused(error, member_id))
