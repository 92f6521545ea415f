"""Provides the steps of operations on a classic group: add, remove, prepare, complete.

Pure: a `Draft` holds the next value of one group while an operation computes it, and collects the
rest of the outcome. Nothing changes until the outcome is applied. The effect of an event in a state
is not decided here: `follow` takes an edge of the table.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.classic import (
    ClassicGroup,
    ClassicMember,
    FirstDelay,
    Waiting,
    counted,
    join_refused,
    joined,
    select_protocol,
    sync_refused,
)
from brokers.coordination.groups.classic_records import written
from brokers.coordination.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from brokers.coordination.groups.states import MOVES, ClassicState, Edge, Then
from brokers.coordination.shard import (
    NOBODY,
    Answer,
    CancelTimer,
    Outcome,
    Parked,
    Record,
    Reply,
    SetTimer,
    Ticket,
    Timer,
    TimerKey,
)
from brokers.protocol.errors import ErrorCode

JOIN_TIMER: Final = "join"
SYNC_TIMER: Final = "sync"
SESSION_TIMER: Final = "session"

Value = TypeVar("Value")


class Draft:
    """Belongs to one operation, which takes the outcome at its end."""

    def __init__(self, group: ClassicGroup, *, settings: GroupSettings, now_ms: int) -> None:
        self.group = group
        self._settings = settings
        self._now_ms = now_ms
        self._records: list[Record] = []
        self._timers: list[Timer] = []
        self._replies: list[Reply] = []

    def outcome(
        self, response: Answer | Parked | None = None, ticket: Ticket = NOBODY
    ) -> Outcome[Any]:
        """Return the outcome; a reply to the operation's own ticket is its response."""
        replies = self._replies
        if ticket != NOBODY:
            own = [reply.answer for reply in replies if reply.ticket == ticket]
            if own:
                response = own[-1]
                replies = [reply for reply in replies if reply.ticket != ticket]
        return Outcome(
            records=tuple(self._records),
            soft=(GroupBecame(self.group.group_id, self.group),),
            timers=tuple(self._timers),
            response=response,
            replies=tuple(replies),
        )

    def change(self, **fields: object) -> None:
        self.group = replace(self.group, **cast(dict[str, Any], fields))

    def follow(self, edge: Edge) -> None:
        """Do the table's next step for the group, after the event's own change is made."""
        match edge.then:
            case Then.REBALANCE:
                self.prepare()
            case Then.COMPLETE_LATER:
                if self.group.first_delay is None and self.group.have_all_joined:
                    self.complete()
            case Then.COMPLETE_SOON:
                if self.group.have_all_joined:
                    self.complete()
            case Then.COMPLETE:
                self.complete()
            case Then.EXTEND:
                self._extend()
        allowed = self.group.state in edge.states
        assert allowed, f"{self.group.state.value} is not one of {edge.states}"

    def add(self, member: ClassicMember, protocol_type: str, ticket: Ticket) -> None:
        """Add a new member, which waits for the answer to its join."""
        group = self.group
        member_id = member.member_id
        assert member_id not in group.members, f"{member_id!r} is a member already"
        delay = group.first_delay
        self.change(
            protocol_type=group.protocol_type if group.members else protocol_type,
            leader=group.leader or member_id,
            members={**group.members, member_id: member},
            static_ids=_with(group.static_ids, member.instance_id, member_id),
            supporters=counted(group.supporters, gone=(), come=(member,)),
            joining={**group.joining, member_id: Waiting(ticket, is_new=True)},
            pending=group.pending - {member_id} if group.pending else group.pending,
            first_delay=delay and delay._replace(has_newcomers=True),
        )
        # It cannot send heartbeats, and a parked join does not notice a lost connection: one
        # that never comes back is removed after this time.
        self.set_timer(SESSION_TIMER, NEW_MEMBER_JOIN_TIMEOUT_MS, member_id)

    def update(self, member: ClassicMember, ticket: Ticket) -> None:
        """Update a known member from its join, and let it wait for the answer."""
        group = self.group
        member_id = member.member_id
        before = group.members[member_id]
        waiting = group.joining.get(member_id)
        if waiting is not None:
            # Its client no longer waits for the first response; every request must be answered.
            refused = join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member_id)
            self.reply(waiting.ticket, refused)
        is_new = waiting is not None and waiting.is_new
        fields: dict[str, Any] = {"joining": {**group.joining, member_id: Waiting(ticket, is_new)}}
        if member != before:
            fields["members"] = {**group.members, member_id: member}
            fields["supporters"] = counted(group.supporters, gone=(before,), come=(member,))
        self.change(**fields)

    def exchange(self, old_id: str, member: ClassicMember) -> None:
        """Replace a static member's id and data by those of its new join, at the same place."""
        waiting, ticket = self.group.joining.get(old_id), self.group.syncing.get(old_id)
        error = ErrorCode.FENCED_INSTANCE_ID
        if waiting is not None:
            self.reply(waiting.ticket, join_refused(error, old_id))
        if ticket is not None:
            self.reply(ticket, sync_refused(error))
        self.group = _exchanged(self.group, old_id, member)
        self.cancel_timer(SESSION_TIMER, old_id)
        self.set_timer(SESSION_TIMER, member.session_timeout_ms, member.member_id)

    def remove(self, member_ids: Collection[str]) -> None:
        """Remove members; their waiting requests are answered with UNKNOWN_MEMBER_ID."""
        group = self.group
        gone = [group.members[member_id] for member_id in member_ids]
        for member_id in member_ids:
            waiting, ticket = group.joining.get(member_id), group.syncing.get(member_id)
            error = ErrorCode.UNKNOWN_MEMBER_ID
            if waiting is not None:
                self.reply(waiting.ticket, join_refused(error))
            if ticket is not None:
                self.reply(ticket, sync_refused(error))
            self.cancel_timer(SESSION_TIMER, member_id)
        members = _without(group.members, member_ids)
        instances = [member.instance_id for member in gone if member.instance_id is not None]
        self.change(
            leader=group.leader if group.leader in members else next(iter(members), None),
            members=members,
            static_ids=_without(group.static_ids, instances),
            supporters=counted(group.supporters, gone=gone, come=()),
            assignments=_without(group.assignments, member_ids),
            joining=_without(group.joining, member_ids),
            syncing=_without(group.syncing, member_ids),
            pending_sync=group.pending_sync.difference(member_ids),
        )

    def forget(self, *pending_ids: str) -> None:
        """Drop issued ids with which no member has joined."""
        self.change(pending=self.group.pending.difference(pending_ids))
        for pending_id in pending_ids:
            self.cancel_timer(SESSION_TIMER, pending_id)

    def prepare(self) -> None:
        """Begin a rebalance: all members have to join."""
        group = self.group
        if group.state is ClassicState.COMPLETING:
            for member_id, ticket in group.syncing.items():
                self.reply(ticket, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
                self.restart_session(member_id)
            self.change(syncing={}, assignments={})
        self.cancel_timer(SYNC_TIMER)
        if group.state is ClassicState.EMPTY:
            delay_ms = self._settings.initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._enter(
                ClassicState.PREPARING,
                first_delay=FirstDelay(delay_ms, remaining_ms, has_newcomers=False),
            )
            self.set_timer(JOIN_TIMER, delay_ms)
            return
        self._enter(ClassicState.PREPARING, pending_sync=frozenset())
        if self.group.have_all_joined:
            self.complete()
        else:
            self.set_timer(JOIN_TIMER, group.rebalance_timeout_ms)

    def _extend(self) -> None:
        delay = self.group.first_delay
        assert delay is not None, f"group {self.group.group_id!r} is not in its first rebalance"
        delay_ms = min(self._settings.initial_rebalance_delay_ms, delay.remaining_ms)
        remaining_ms = max(delay.remaining_ms - delay.delay_ms, 0)
        self.change(first_delay=FirstDelay(delay_ms, remaining_ms, has_newcomers=False))
        self.set_timer(JOIN_TIMER, delay_ms)

    def complete(self) -> None:
        """End the first half of a rebalance: the joined members form the next generation."""
        group = self.group
        self.cancel_timer(JOIN_TIMER)
        late = [
            member_id
            for member_id, member in group.members.items()
            if member_id not in group.joining and member.instance_id is None
        ]
        if late:
            self.remove(late)
            group = self.group
        if not group.members:
            self._become_empty()
        elif not group.joining:
            # Only static members are left, which may come back without a rebalance. There is no
            # leader until one of them does, or until their sessions are over.
            self.change(first_delay=None)
            self.set_timer(JOIN_TIMER, group.rebalance_timeout_ms)
        else:
            self._begin_generation()

    def _become_empty(self) -> None:
        self._enter(
            ClassicState.EMPTY,
            generation=self.group.generation + 1,
            protocol=None,
            assignments={},
            first_delay=None,
        )
        self.save()

    def _begin_generation(self) -> None:
        group = self.group
        waiting = group.joining
        if group.leader not in waiting:
            self.change(leader=next(known for known in group.members if known in waiting))
        self._enter(
            ClassicState.COMPLETING,
            generation=group.generation + 1,
            protocol=select_protocol(self.group),
            joining={},
            pending_sync=frozenset(group.members),
            first_delay=None,
        )
        leader = self.group.leader
        assert leader is not None, f"group {group.group_id!r} has members and no leader"
        # The leader's answer first: all the others wait for its assignment.
        for member_id in (leader, *(known for known in group.members if known != leader)):
            found = waiting.get(member_id)
            if found is not None:
                self.reply(found.ticket, joined(self.group, member_id))
            self.restart_session(member_id)
        self.set_timer(SYNC_TIMER, group.rebalance_timeout_ms)

    def settle(self, assignments: Mapping[str, bytes]) -> None:
        """End a rebalance: write the assignment, and make the group stable."""
        assigned = {member_id: assignments.get(member_id, b"") for member_id in self.group.members}
        self._enter(ClassicState.STABLE, assignments=assigned)
        self.save()

    def save(self) -> None:
        """Write the current value of the group."""
        self._records.append(written(self.group))

    def _enter(self, state: ClassicState, **fields: object) -> None:
        move = (self.group.state, state)
        assert move in MOVES, f"no group goes from {move[0].value} to {move[1].value}"
        self.change(state=state, since_ms=self._now_ms, **fields)

    def reply(self, ticket: Ticket, answer: Answer) -> None:
        self._replies.append(Reply(ticket, answer))

    def restart_session(self, member_id: str) -> None:
        self.set_timer(SESSION_TIMER, self.group.members[member_id].session_timeout_ms, member_id)

    def set_timer(self, kind: str, after_ms: int, member_id: str = "") -> None:
        key = TimerKey(kind, self.group.group_id, member_id)
        self._timers.append(SetTimer(key, after_ms))

    def cancel_timer(self, kind: str, member_id: str = "") -> None:
        self._timers.append(CancelTimer(TimerKey(kind, self.group.group_id, member_id)))


def _exchanged(group: ClassicGroup, old_id: str, member: ClassicMember) -> ClassicGroup:
    """Return a group with a member in the place of another, which waits for nothing."""
    new_id = member.member_id
    assignments = dict(group.assignments)
    if old_id in assignments:
        assignments[new_id] = assignments.pop(old_id)
    return replace(
        group,
        leader=new_id if group.leader == old_id else group.leader,
        members={
            (new_id if known == old_id else known): (member if known == old_id else value)
            for known, value in group.members.items()
        },
        static_ids=_with(group.static_ids, member.instance_id, new_id),
        supporters=counted(group.supporters, gone=(group.members[old_id],), come=(member,)),
        assignments=assignments,
        joining=_without(group.joining, [old_id]),
        syncing=_without(group.syncing, [old_id]),
        pending_sync=group.pending_sync - {old_id},
    )


def _with(known: Mapping[str, str], instance_id: str | None, member_id: str) -> Mapping[str, str]:
    return known if instance_id is None else {**known, instance_id: member_id}


def _without(known: Mapping[str, Value], gone: Collection[str]) -> Mapping[str, Value]:
    if not any(key in known for key in gone):
        return known
    left = dict(known)
    for key in gone:
        left.pop(key, None)
    return left
