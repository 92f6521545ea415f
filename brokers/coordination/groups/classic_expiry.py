"""Handles timeouts of classic groups, groups just loaded, and their removal.

Pure. A timer may fire for something that is long over, so each operation checks again.
"""

from typing import Any

from brokers.coordination.groups.classic import CONSUMER_TYPE, ClassicGroup
from brokers.coordination.groups.classic_steps import (
    JOIN_TIMER,
    SESSION_TIMER,
    SYNC_TIMER,
    Draft,
)
from brokers.coordination.groups.classic_sync import session_of
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.states import ClassicState, Event, Then, edge_of
from brokers.coordination.shard import Outcome, TimerKey
from brokers.protocol.errors import ErrorCode, KafkaError


def expire(
    group: ClassicGroup | None,
    key: TimerKey,
    *,
    settings: GroupSettings,
    now_ms: int,
) -> Outcome[Any]:
    """Handle a timer of the group that has fired."""
    if group is None:
        return Outcome()
    draft = Draft(group, settings=settings, now_ms=now_ms)
    if key.kind == SESSION_TIMER:
        return _session_over(draft, key.part)
    if key.kind == JOIN_TIMER:
        return _join_time_over(draft)
    assert key.kind == SYNC_TIMER, f"a classic group has no timer {key.kind!r}"
    return _sync_time_over(draft)


def _session_over(draft: Draft, member_id: str) -> Outcome[Any]:
    group = draft.group
    if member_id in group.pending:
        draft.forget(member_id)
        draft.follow(edge_of(group.state, Event.SESSION_PENDING))
        return draft.outcome()
    if member_id not in group.members:
        return Outcome()
    waiting = group.joining.get(member_id)
    knows_its_id = member_id in group.syncing or (waiting is not None and not waiting.is_new)
    event = Event.SESSION_WAITING if knows_its_id else Event.SESSION_MEMBER
    edge = edge_of(group.state, event)
    if edge.then is Then.IGNORE:
        return Outcome()
    draft.remove((member_id,))
    draft.follow(edge)
    return draft.outcome()


def _join_time_over(draft: Draft) -> Outcome[Any]:
    delay = draft.group.first_delay
    is_extended = delay is not None and delay.has_newcomers and delay.remaining_ms > 0
    event = Event.JOIN_TIME_EXTENDED if is_extended else Event.JOIN_TIME
    return _followed(draft, event)


def _sync_time_over(draft: Draft) -> Outcome[Any]:
    # No member of a past generation is missing: a rebalance cancels the timer.
    missing = draft.group.pending_sync
    event = Event.SYNC_TIME if missing else Event.SYNC_TIME_IN_VAIN
    if missing:
        draft.remove([known for known in draft.group.members if known in missing])
    return _followed(draft, event)


def loaded(group: ClassicGroup, *, settings: GroupSettings, now_ms: int) -> Outcome[Any]:
    """Start the sessions of the members of a group that was read from its record.

    If the group has more members than allowed, begin a rebalance that not all of them can join.
    """
    sessions = tuple(session_of(group, member_id) for member_id in group.members)
    if len(group.members) <= settings.max_size:
        return Outcome(timers=sessions)
    draft = Draft(group, settings=settings, now_ms=now_ms)
    draft.follow(edge_of(group.state, Event.OVER_CAPACITY))
    moved = draft.outcome()
    return Outcome(soft=moved.soft, timers=sessions + moved.timers)


def _followed(draft: Draft, event: Event) -> Outcome[Any]:
    edge = edge_of(draft.group.state, event)
    if edge.then is Then.IGNORE:
        return Outcome()
    draft.follow(edge)
    return draft.outcome()


def check_delete(group: ClassicGroup) -> KafkaError | None:
    """Return why the group cannot be deleted; None: it can."""
    edge = edge_of(group.state, Event.DELETE)
    if edge.then is not Then.REFUSE:
        return None
    number = len(group.members)
    return KafkaError(edge.error, f"group {group.group_id!r} has {number} members")


def check_offset_delete(group: ClassicGroup) -> KafkaError | None:
    """Return why no offset of the group can be deleted; None: those of unread topics can."""
    if group.is_empty or group.protocol_type == CONSUMER_TYPE:
        return None
    return KafkaError(
        ErrorCode.NON_EMPTY_GROUP,
        f"group {group.group_id!r} has members of type {group.protocol_type!r}, "
        "whose topics are not known",
    )


def timers_of(group: ClassicGroup) -> tuple[TimerKey, ...]:
    """Return all timers that may be set for the group, to cancel them when it is removed."""
    group_id = group.group_id
    ids = (*group.members, *group.pending)
    sessions = (TimerKey(SESSION_TIMER, group_id, member_id) for member_id in ids)
    return (TimerKey(JOIN_TIMER, group_id), TimerKey(SYNC_TIMER, group_id), *sessions)


def unused_since(group: ClassicGroup, commit_ms: int, *, knows_topics: bool) -> int | None:
    """Return since when an offset of the group counts as unused; None if it is in use.

    Offsets of topics that members read do not expire, which the caller checks.
    """
    if group.protocol_type is None:
        return commit_ms  # of consumers that assign partitions to themselves
    if group.is_empty:
        return commit_ms if group.since_ms < 0 else group.since_ms
    is_stable = group.state is ClassicState.STABLE
    return commit_ms if is_stable and knows_topics else None
