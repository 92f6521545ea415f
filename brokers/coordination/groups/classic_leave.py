"""Handles LeaveGroup of a classic group: members leave, or an administrator removes several.

Pure. The group changes once for a whole request. For versions with a single member, the handler
makes a list of one, and moves its error to the response.
"""

from collections.abc import Sequence
from typing import Any

from brokers.coordination.groups.classic import ClassicGroup, event_of_id
from brokers.coordination.groups.classic_steps import Draft
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.states import Event, Then, edge_of
from brokers.coordination.shard import Outcome
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)


def leave(
    group: ClassicGroup | None,
    identities: Sequence[MemberIdentity],
    *,
    settings: GroupSettings,
    now_ms: int,
) -> Outcome[Any]:
    if group is None:
        error = ErrorCode.UNKNOWN_MEMBER_ID
        return Outcome(response=answer_of([(identity, error) for identity in identities]))
    results: list[tuple[MemberIdentity, ErrorCode]] = []
    leaving: dict[str, Event] = {}
    for identity in identities:
        event, member_id = _event(group, identity)
        instance_id = identity.group_instance_id
        known = None if instance_id is None else group.static_ids.get(instance_id)
        if member_id in leaving or known in leaving:
            event = Event.LEAVE_UNKNOWN  # named twice, and gone by now
        edge = edge_of(group.state, event)
        results.append((identity, edge.error))
        if edge.then is not Then.REFUSE:
            leaving[member_id] = event
    if not leaving:
        return Outcome(response=answer_of(results))
    # All at once: each copy of the group takes time for every member.
    draft = Draft(group, settings=settings, now_ms=now_ms)
    draft.forget(*(each for each, event in leaving.items() if event is Event.LEAVE_PENDING))
    draft.remove([each for each, event in leaving.items() if event is Event.LEAVE_MEMBER])
    draft.follow(edge_of(group.state, next(reversed(leaving.values()))))
    return draft.outcome(answer_of(results))


def _event(group: ClassicGroup, identity: MemberIdentity) -> tuple[Event, str]:
    """Return the event that a leave is for the group, and the member."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id:
        # Administrators know a static member by its instance.
        known = None if instance_id is None else group.static_ids.get(instance_id)
        return (Event.LEAVE_UNKNOWN, "") if known is None else (Event.LEAVE_MEMBER, known)
    if member_id in group.pending:
        return Event.LEAVE_PENDING, member_id
    wrong = event_of_id(
        group,
        member_id,
        instance_id,
        unknown=Event.LEAVE_UNKNOWN,
        fenced=Event.LEAVE_FENCED,
    )
    return wrong or Event.LEAVE_MEMBER, member_id


def answer_of(results: Sequence[tuple[MemberIdentity, ErrorCode]]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=error,
            )
            for identity, error in results
        ]
    )
