"""Handles SyncGroup, heartbeats and checks of commits of a classic group.

Pure. Only the leader's sync writes: once its assignment is safe, all members that wait for it are
answered. Of a commit, only the right to make it is checked here.
"""

from typing import Any

from brokers.coordination.groups.classic import (
    ClassicGroup,
    event_of_call,
    sync_refused,
    synced,
)
from brokers.coordination.groups.classic_steps import SESSION_TIMER, SYNC_TIMER, Draft
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.states import Event, Then, edge_of
from brokers.coordination.shard import PARKED, Outcome, SetTimer, Ticket, TimerKey
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from brokers.protocol.messages.sync_group import SyncGroupRequest


def sync(
    group: ClassicGroup | None,
    request: SyncGroupRequest,
    *,
    ticket: Ticket,
    settings: GroupSettings,
    now_ms: int,
) -> Outcome[Any]:
    if group is None:
        return Outcome(response=sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
    event = _event_of_sync(group, request)
    edge = edge_of(group.state, event)
    if edge.then is Then.REFUSE:
        return Outcome(response=sync_refused(edge.error))
    member_id = request.member_id
    if edge.then is Then.ANSWER and member_id not in group.pending_sync:
        return Outcome(response=synced(group, member_id))
    draft = Draft(group, settings=settings, now_ms=now_ms)
    _has_synced(draft, member_id)
    if edge.then is Then.ANSWER:
        return draft.outcome(synced(group, member_id))
    before = group.syncing.get(member_id)
    if before is not None:
        # Its client no longer waits for the first response; every request must be answered.
        draft.reply(before, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
    syncing = {**group.syncing, member_id: ticket}
    if edge.then is Then.PARK:
        draft.change(syncing=syncing)
        return draft.outcome(PARKED)
    draft.change(syncing={})
    draft.settle({given.member_id: bytes(given.assignment) for given in request.assignments})
    for waiting_id, waiting in syncing.items():
        draft.reply(waiting, synced(draft.group, waiting_id))
        # Timeouts while it waited were ignored, since it could not send requests.
        draft.restart_session(waiting_id)
    draft.follow(edge)
    return draft.outcome(PARKED, ticket)


def _event_of_sync(group: ClassicGroup, request: SyncGroupRequest) -> Event:
    member_id = request.member_id
    wrong = event_of_call(group, member_id, request.group_instance_id, request.generation_id)
    if wrong is not None:
        return wrong
    if request.protocol_type not in {None, group.protocol_type}:
        return Event.SYNC_MISFIT
    if request.protocol_name not in {None, group.protocol}:
        return Event.SYNC_MISFIT
    return Event.SYNC_LEADER if member_id == group.leader else Event.SYNC_FOLLOWER


def _has_synced(draft: Draft, member_id: str) -> None:
    left = draft.group.pending_sync - {member_id}
    draft.change(pending_sync=left)
    if not left:
        draft.cancel_timer(SYNC_TIMER)


def heartbeat(group: ClassicGroup | None, request: HeartbeatRequest) -> Outcome[Any]:
    """Handle a heartbeat, which changes only a timer, so it waits for no record."""
    if group is None:
        return Outcome(response=HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    member_id = request.member_id
    wrong = event_of_call(group, member_id, request.group_instance_id, request.generation_id)
    if wrong is not None:
        return Outcome(response=HeartbeatResponse(error_code=edge_of(group.state, wrong).error))
    # A member that learns of a rebalance has also shown that it is alive.
    return Outcome(
        response=HeartbeatResponse(error_code=edge_of(group.state, Event.HEARTBEAT).error),
        timers=(session_of(group, member_id),),
    )


def check_commit(
    group: ClassicGroup, *, generation: int, member_id: str, instance_id: str | None
) -> KafkaError | None:
    """Return why the commit is refused; None: it may be made."""
    has_id = bool(member_id) or instance_id is not None
    if generation < 0 and (group.is_empty or not has_id):
        event = Event.COMMIT_SIMPLE
    else:
        wrong = event_of_call(group, member_id, instance_id, generation)
        event = Event.COMMIT_MEMBER if wrong is None else wrong
    edge = edge_of(group.state, event)
    if edge.then is not Then.REFUSE:
        return None
    caller = f"member {member_id!r} of generation {generation}"
    return KafkaError(
        edge.error,
        f"{caller} cannot commit in {group.group_id!r}, which is {group.state.value} "
        f"in generation {group.generation}",
    )


def session_of(group: ClassicGroup, member_id: str) -> SetTimer:
    """Return the timer that restarts a session, as every request of a member does."""
    key = TimerKey(SESSION_TIMER, group.group_id, member_id)
    return SetTimer(key, group.members[member_id].session_timeout_ms)
