"""Defines the states of a classic group, and the effect of each event in each of them.

Pure, and knows no group: operations look the tables up before they change anything, and
docs/groups.md shows them. A pair without a row cannot happen, which is an assertion and not an
error of a client. This command renews the page:

    python -m brokers.coordination.groups.states > docs/groups.md
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from brokers.coordination.groups import mixed_states
from brokers.protocol.errors import ErrorCode


class ClassicState(Enum):
    """The names that clients see. A missing group is Dead to clients, and no state here."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class Event(Enum):
    """The events of a group. The operation determines which one a request is."""

    JOIN_FULL = "join, and the group has as many members as it may"
    JOIN_MISFIT = "join with a type that is not the group's, or no protocol that all members share"
    JOIN_WITHOUT_ID = "join of a dynamic newcomer, from version 4"
    JOIN_NEWCOMER = "join of a newcomer that is static, or below version 4"
    JOIN_REPLACED = "join of a known instance without an id; the protocol stays the same"
    JOIN_REPLACED_AND_CHANGED = "join of a known instance without an id; the protocol changes"
    JOIN_PENDING = "join with an id that was given out"
    JOIN_PENDING_AS_STATIC = "join with an id that was given out, and an instance"
    JOIN_FENCED = "join of an instance under an id that is not its present one"
    JOIN_UNKNOWN = "join with an id or an instance that the group does not have"
    JOIN_LEADER_AGAIN = "join of the leader, with the same protocols and metadata"
    JOIN_FOLLOWER_AGAIN = "join of a follower, with the same protocols and metadata"
    JOIN_CHANGED = "join of a member, with other protocols or metadata"
    SYNC_MISFIT = "sync with another type or protocol than the group's"
    SYNC_FOLLOWER = "sync of a follower"
    SYNC_LEADER = "sync of the leader"
    HEARTBEAT = "heartbeat of a member"
    UNKNOWN = "sync, heartbeat or commit with an id or instance that the group does not have"
    FENCED = "sync, heartbeat or commit of an instance under an id that is not its present one"
    GENERATION = "sync, heartbeat or commit of a generation that is not the present one"
    COMMIT_SIMPLE = "commit without a generation"
    COMMIT_MEMBER = "commit of a member"
    LEAVE_UNKNOWN = "leave with an id or an instance that the group does not have"
    LEAVE_FENCED = "leave of an instance under an id that is not its present one"
    LEAVE_PENDING = "leave of an id that was given out"
    LEAVE_MEMBER = "leave of a member"
    SESSION_PENDING = "session timeout of an id that was given out"
    SESSION_WAITING = "session timeout of a member that waits for an answer and knows its id"
    SESSION_MEMBER = "session timeout of any other member"
    JOIN_TIME_EXTENDED = "first delay over, and further members joined during it"
    JOIN_TIME = "time to join is over"
    SYNC_TIME = "time to sync is over, and some members have not synced"
    SYNC_TIME_IN_VAIN = "time to sync is over, but all have synced, or the generation has changed"
    OVER_CAPACITY = "loaded with more members than the group may have"
    DELETE = "delete the group"


class Then(Enum):
    """The rest of an operation, after its own change (a member added, changed or gone)."""

    REFUSE = "refused"
    ANSWER = "answered with the present generation"
    ACCEPT = "accepted"
    PARK = "waits for the leader"
    REBALANCE = "rebalance"
    COMPLETE_LATER = "complete once all have joined and the first delay is over"
    COMPLETE_SOON = "complete if all have joined"
    COMPLETE = "complete"
    EXTEND = "wait longer"
    ASSIGN = "hand out the assignment"
    IGNORE = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One cell of the table."""

    then: Then
    states: frozenset[ClassicState]  # the possible states of the group afterwards
    sentence: str
    error: ErrorCode = ErrorCode.NONE


_EMPTY: Final = ClassicState.EMPTY
_PREPARING: Final = ClassicState.PREPARING
_COMPLETING: Final = ClassicState.COMPLETING
_STABLE: Final = ClassicState.STABLE
_ACTIVE: Final = (_PREPARING, _COMPLETING, _STABLE)

# The steps from state to state; every operation is a chain of these.
MOVES: Final[Mapping[tuple[ClassicState, ClassicState], str]] = {
    (_EMPTY, _PREPARING): "the first member joins",
    (_PREPARING, _COMPLETING): "all have joined, or the time is over",
    (_PREPARING, _EMPTY): "no member is left",
    (_COMPLETING, _STABLE): "the leader's assignment is written",
    (_COMPLETING, _PREPARING): "a member comes, goes or changes",
    (_STABLE, _PREPARING): "a member comes, goes or changes",
}

_Rows = Iterator[tuple[tuple[ClassicState, Event], Edge]]


def _rows() -> _Rows:
    error = ErrorCode
    yield from _refused(Event.JOIN_FULL, tuple(ClassicState), error.GROUP_MAX_SIZE_REACHED)
    yield from _refused(Event.JOIN_MISFIT, tuple(ClassicState), error.INCONSISTENT_GROUP_PROTOCOL)
    yield from _refused(Event.JOIN_WITHOUT_ID, tuple(ClassicState), error.MEMBER_ID_REQUIRED)
    yield from _entering(Event.JOIN_NEWCOMER)
    yield from _entering(Event.JOIN_PENDING)
    yield from _refused(Event.JOIN_PENDING_AS_STATIC, tuple(ClassicState), error.INVALID_REQUEST)
    yield from _refused(Event.JOIN_FENCED, _ACTIVE, error.FENCED_INSTANCE_ID)
    yield from _refused(Event.JOIN_UNKNOWN, tuple(ClassicState), error.UNKNOWN_MEMBER_ID)
    for event in (Event.JOIN_REPLACED, Event.JOIN_REPLACED_AND_CHANGED):
        yield _later(event)
        # The leader's list may have the old id, and its assignment for that would be lost.
        yield _rebalance(_COMPLETING, event)
    yield (
        (_STABLE, Event.JOIN_REPLACED),
        Edge(
            then=Then.ANSWER,
            states=frozenset({_STABLE}),
            sentence="written with its new id, answered with the present generation",
        ),
    )
    yield _rebalance(_STABLE, Event.JOIN_REPLACED_AND_CHANGED)
    for event in (Event.JOIN_LEADER_AGAIN, Event.JOIN_FOLLOWER_AGAIN, Event.JOIN_CHANGED):
        yield _later(event)
    # The response to its first join was lost.
    yield _stays(_COMPLETING, Event.JOIN_LEADER_AGAIN, Then.ANSWER, "the present generation")
    yield _stays(_COMPLETING, Event.JOIN_FOLLOWER_AGAIN, Then.ANSWER, "the present generation")
    yield _rebalance(_COMPLETING, Event.JOIN_CHANGED)
    # The leader requests a rebalance by a join, for example because of new partitions.
    yield _rebalance(_STABLE, Event.JOIN_LEADER_AGAIN)
    yield _stays(_STABLE, Event.JOIN_FOLLOWER_AGAIN, Then.ANSWER, "the present generation")
    yield _rebalance(_STABLE, Event.JOIN_CHANGED)
    yield from _calls()
    yield from _departures()
    yield from _times()


def _calls() -> _Rows:
    """Yield the edges of sync, heartbeat and commit."""
    error = ErrorCode
    yield from _refused(Event.UNKNOWN, tuple(ClassicState), error.UNKNOWN_MEMBER_ID)
    yield from _refused(Event.FENCED, _ACTIVE, error.FENCED_INSTANCE_ID)
    yield from _refused(Event.GENERATION, _ACTIVE, error.ILLEGAL_GENERATION)
    # A member that joined while the group used the consumer protocol got the protocol that it
    # prefers itself; it is not at fault, and all join again anyway.
    yield from _refused(Event.SYNC_MISFIT, (_PREPARING,), error.REBALANCE_IN_PROGRESS)
    misfit = error.INCONSISTENT_GROUP_PROTOCOL
    yield from _refused(Event.SYNC_MISFIT, (_COMPLETING, _STABLE), misfit)
    yield from _refused(Event.SYNC_FOLLOWER, (_PREPARING,), error.REBALANCE_IN_PROGRESS)
    yield from _refused(Event.SYNC_LEADER, (_PREPARING,), error.REBALANCE_IN_PROGRESS)
    yield _stays(_COMPLETING, Event.SYNC_FOLLOWER, Then.PARK, "waits for the leader")
    yield (
        (_COMPLETING, Event.SYNC_LEADER),
        Edge(
            then=Then.ASSIGN,
            states=frozenset({_STABLE}),
            sentence="the assignment is written, then all who wait get theirs",
        ),
    )
    yield _stays(_STABLE, Event.SYNC_FOLLOWER, Then.ANSWER, "the present assignment")
    yield _stays(_STABLE, Event.SYNC_LEADER, Then.ANSWER, "the present assignment")
    yield from _refused(Event.HEARTBEAT, (_PREPARING,), error.REBALANCE_IN_PROGRESS)
    yield _stays(_COMPLETING, Event.HEARTBEAT, Then.ACCEPT, "the session restarts")
    yield _stays(_STABLE, Event.HEARTBEAT, Then.ACCEPT, "the session restarts")
    # A consumer that assigns its own partitions cannot share a group with members.
    yield _stays(_EMPTY, Event.COMMIT_SIMPLE, Then.ACCEPT, "kept")
    yield from _refused(Event.COMMIT_SIMPLE, _ACTIVE, error.UNKNOWN_MEMBER_ID)
    yield _stays(_PREPARING, Event.COMMIT_MEMBER, Then.ACCEPT, "kept, the session restarts")
    yield from _refused(Event.COMMIT_MEMBER, (_COMPLETING,), error.REBALANCE_IN_PROGRESS)
    yield _stays(_STABLE, Event.COMMIT_MEMBER, Then.ACCEPT, "kept, the session restarts")
    yield _stays(_EMPTY, Event.DELETE, Then.ACCEPT, "gone, with its offsets")
    yield from _refused(Event.DELETE, _ACTIVE, error.NON_EMPTY_GROUP)


def _departures() -> _Rows:
    error = ErrorCode
    yield from _refused(Event.LEAVE_UNKNOWN, tuple(ClassicState), error.UNKNOWN_MEMBER_ID)
    yield from _refused(Event.LEAVE_FENCED, _ACTIVE, error.FENCED_INSTANCE_ID)
    yield _stays(_EMPTY, Event.LEAVE_PENDING, Then.ACCEPT, "the id is forgotten")
    yield _later(Event.LEAVE_PENDING)
    # As in Kafka: a leave of an issued id starts a rebalance like any other leave.
    yield _rebalance(_COMPLETING, Event.LEAVE_PENDING)
    yield _rebalance(_STABLE, Event.LEAVE_PENDING)
    yield _later(Event.LEAVE_MEMBER)
    yield _rebalance(_COMPLETING, Event.LEAVE_MEMBER)
    yield _rebalance(_STABLE, Event.LEAVE_MEMBER)


def _times() -> _Rows:
    for state in (_EMPTY, _COMPLETING, _STABLE):
        yield _stays(state, Event.SESSION_PENDING, Then.ACCEPT, "the id is forgotten")
    yield _soon(Event.SESSION_PENDING)
    yield _stays(_PREPARING, Event.SESSION_WAITING, Then.IGNORE, "it cannot speak while it waits")
    yield _stays(_COMPLETING, Event.SESSION_WAITING, Then.IGNORE, "it cannot speak while it waits")
    yield _soon(Event.SESSION_MEMBER)
    yield _rebalance(_COMPLETING, Event.SESSION_MEMBER)
    yield _rebalance(_STABLE, Event.SESSION_MEMBER)
    yield _stays(_PREPARING, Event.JOIN_TIME_EXTENDED, Then.EXTEND, "the delay restarts")
    yield (
        (_PREPARING, Event.JOIN_TIME),
        Edge(
            then=Then.COMPLETE,
            states=frozenset({_COMPLETING, _EMPTY, _PREPARING}),
            sentence="dynamic members that have not joined are removed; the others continue",
        ),
    )
    for state in (_EMPTY, _COMPLETING, _STABLE):
        yield _stays(state, Event.JOIN_TIME, Then.IGNORE, "the rebalance it was set for is over")
    yield _rebalance(_COMPLETING, Event.SYNC_TIME)
    yield _rebalance(_STABLE, Event.SYNC_TIME)
    for state in ClassicState:
        yield _stays(state, Event.SYNC_TIME_IN_VAIN, Then.IGNORE, "no member is missing")
    for state in (_PREPARING, _COMPLETING):
        yield _stays(state, Event.OVER_CAPACITY, Then.IGNORE, "resolved by the rebalance under way")
    yield _rebalance(_STABLE, Event.OVER_CAPACITY)


def _refused(event: Event, states: tuple[ClassicState, ...], error: ErrorCode) -> _Rows:
    for state in states:
        edge = Edge(then=Then.REFUSE, states=frozenset({state}), sentence="", error=error)
        yield (state, event), edge


def _entering(event: Event) -> _Rows:
    # Other members have time to join before the first assignment is made.
    yield (
        (_EMPTY, event),
        Edge(
            then=Then.REBALANCE,
            states=frozenset({_PREPARING}),
            sentence="becomes the leader, and waits until the first delay is over",
        ),
    )
    yield _later(event)
    yield _rebalance(_COMPLETING, event)
    yield _rebalance(_STABLE, event)


def _later(event: Event) -> tuple[tuple[ClassicState, Event], Edge]:
    edge = Edge(
        then=Then.COMPLETE_LATER,
        states=frozenset({_PREPARING, _COMPLETING, _EMPTY}),
        sentence="the rebalance is complete once all have joined and the first delay is over",
    )
    return (_PREPARING, event), edge


def _soon(event: Event) -> tuple[tuple[ClassicState, Event], Edge]:
    edge = Edge(
        then=Then.COMPLETE_SOON,
        states=frozenset({_PREPARING, _COMPLETING, _EMPTY}),
        sentence="removed; the rebalance is complete if all others have joined",
    )
    return (_PREPARING, event), edge


def _rebalance(state: ClassicState, event: Event) -> tuple[tuple[ClassicState, Event], Edge]:
    edge = Edge(
        then=Then.REBALANCE,
        states=frozenset({_PREPARING, _COMPLETING, _EMPTY}),
        sentence="rebalance, complete at once if no other member has to join",
    )
    return (state, event), edge


def _stays(
    state: ClassicState, event: Event, then: Then, sentence: str
) -> tuple[tuple[ClassicState, Event], Edge]:
    return (state, event), Edge(then=then, states=frozenset({state}), sentence=sentence)


EDGES: Final[Mapping[tuple[ClassicState, Event], Edge]] = dict(_rows())


def edge_of(state: ClassicState, event: Event) -> Edge:
    edge = EDGES.get((state, event))
    assert edge is not None, f"a {state.value} group met: {event.value}"
    return edge


INTRODUCTION: Final = """\
# Consumer groups

Generated from `brokers/coordination/groups/states.py` and `mixed_states.py`; changes belong there.
Renew this page with `python -m brokers.coordination.groups.states > docs/groups.md`.

## The classic protocol

A classic group agrees on a generation in two steps.
First all members join: the group waits until each has joined, or until the rebalance times out.
Then they sync: the leader sends an assignment for all, which is written and sent to each member.

"""

TABLE: Final = """\

The effect of each event in each state.
An empty cell cannot happen: an empty group has no members, for one.
A rebalance answers all members that wait for an assignment with `REBALANCE_IN_PROGRESS`.

"""


def render() -> str:
    """Return the page docs/groups.md."""
    moves = "".join(
        f"    {old.value} --> {new.value}: {sentence}\n" for (old, new), sentence in MOVES.items()
    )
    diagram = f"```mermaid\nstateDiagram-v2\n    [*] --> Empty: the first join\n{moves}"
    diagram += "    Empty --> [*]: deleted, or all its offsets are expired\n```\n"
    head = "| event | " + " | ".join(state.value for state in ClassicState) + " |\n"
    head += "|--|" + "--|" * len(ClassicState) + "\n"
    rows = "".join(
        f"| {event.value} | {' | '.join(_cell(state, event) for state in ClassicState)} |\n"
        for event in Event
    )
    return INTRODUCTION + diagram + TABLE + head + rows + mixed_states.render()


def _cell(state: ClassicState, event: Event) -> str:
    edge = EDGES.get((state, event))
    if edge is None:
        return ""
    return f"`{edge.error.name}`" if edge.then is Then.REFUSE else edge.sentence


if __name__ == "__main__":
    sys.stdout.write(render())
