"""Defines a classic group as a value: its members, its generation, and its waiting requests.

Pure and frozen: an operation makes the next value. Part of it is in the group's record (members,
generation, assignment), the rest is lost with the broker: waiting requests, issued member ids, the
two states of a rebalance. The waiting requests, which change with every join, are in maps of the
group and not in the members, so that a rebalance does not copy a thousand members.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from brokers.coordination.groups.states import ClassicState, Event
from brokers.coordination.groups.subscription import decode_topics
from brokers.coordination.shard import Reply, Ticket
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.join_group import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from brokers.protocol.messages.sync_group import SyncGroupResponse

# The protocol type of consumers; Connect and others have their own.
CONSUMER_TYPE: Final = "consumer"
UNKNOWN_MS: Final = -1

_NOTHING: Final[Mapping[Any, Any]] = {}


class Way(NamedTuple):
    """One assignment protocol of a member, with its metadata for the leader."""

    name: str
    metadata: bytes


class Waiting(NamedTuple):
    """A parked join."""

    ticket: Ticket
    # It has never got an answer as a member, so it cannot send heartbeats yet.
    is_new: bool


class FirstDelay(NamedTuple):
    """The delay of the first rebalance of an empty group, which is slow on purpose."""

    delay_ms: int  # of the timer that runs
    remaining_ms: int
    has_newcomers: bool  # members have joined since it was set


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMember:
    """A member, as described in its last join."""

    member_id: str
    instance_id: str | None = None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    ways: tuple[Way, ...]  # in the order of preference

    def metadata(self, protocol: str | None) -> bytes:
        return next((way.metadata for way in self.ways if way.name == protocol), b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicGroup:
    """One group. `members` is in the order of joining, from which leaders are taken."""

    group_id: str
    state: ClassicState = ClassicState.EMPTY
    since_ms: int = UNKNOWN_MS  # when it entered its state
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: Mapping[str, ClassicMember] = field(default_factory=lambda: _NOTHING)
    static_ids: Mapping[str, str] = field(default_factory=lambda: _NOTHING)  # by instance
    supporters: Mapping[str, int] = field(default_factory=lambda: _NOTHING)  # by protocol
    assignments: Mapping[str, bytes] = field(default_factory=lambda: _NOTHING)
    joining: Mapping[str, Waiting] = field(default_factory=lambda: _NOTHING)
    syncing: Mapping[str, Ticket] = field(default_factory=lambda: _NOTHING)
    pending: frozenset[str] = frozenset()  # issued ids with which no member has joined yet
    pending_sync: frozenset[str] = frozenset()
    first_delay: FirstDelay | None = None  # while the first rebalance of an empty group lasts

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def have_all_joined(self) -> bool:
        return len(self.joining) == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)


def supports(group: ClassicGroup, protocol_type: str, ways: Iterable[Way]) -> bool:
    """Tell whether these protocols have one in common with all members."""
    if group.is_empty:
        return bool(protocol_type) and any(True for _ in ways)
    everybody = len(group.members)
    return group.protocol_type == protocol_type and any(
        group.supporters.get(way.name, 0) == everybody for way in ways
    )


def select_protocol(group: ClassicGroup) -> str:
    """Return the common protocol that most members prefer; in a tie, the leader's preference."""
    everybody = len(group.members)
    shared = {name for name, number in group.supporters.items() if number == everybody}
    votes = Counter(_wish(member, shared) for member in group.members.values())
    most = max(votes.values())
    assert group.leader is not None, f"group {group.group_id!r} has members and no leader"
    # The leader lists all protocols with votes, since all members do.
    leader = group.members[group.leader]
    return next(way.name for way in leader.ways if votes.get(way.name) == most)


def _wish(member: ClassicMember, shared: set[str]) -> str:
    return next(way.name for way in member.ways if way.name in shared)


def counted(
    supporters: Mapping[str, int],
    *,
    gone: Iterable[ClassicMember],
    come: Iterable[ClassicMember],
) -> Mapping[str, int]:
    """Return how many members list each protocol after some have left and some have joined."""
    counts = dict(supporters)
    for member in come:
        for way in member.ways:
            counts[way.name] = counts.get(way.name, 0) + 1
    for member in gone:
        for way in member.ways:
            counts[way.name] -= 1
            if not counts[way.name]:
                del counts[way.name]
    return counts


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """Return the topics that the members read; None if they are not known.

    Computed on demand: only the deletion and the expiry of offsets need it.
    """
    if group.protocol_type != CONSUMER_TYPE:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        found = decode_topics(member.metadata(group.protocol))
        if found is None:
            return None
        topics.update(found)
    return frozenset(topics)


def is_subscribed(group: ClassicGroup, topic: str) -> bool:
    """Tell whether members read the topic; if that is unknown, assume that consumers do."""
    topics = subscribed_topics(group)
    return group.protocol_type == CONSUMER_TYPE if topics is None else topic in topics


def event_of_id(
    group: ClassicGroup,
    member_id: str,
    instance_id: str | None,
    *,
    unknown: Event,
    fenced: Event,
) -> Event | None:
    """Return what is wrong with the ids of a call; None if they are those of a member."""
    if instance_id is not None:
        known = group.static_ids.get(instance_id)
        if known is None:
            return unknown
        if known != member_id:
            return fenced
    return None if member_id in group.members else unknown


def event_of_call(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
) -> Event | None:
    """Return what is wrong with a sync, heartbeat or commit of a member; None if nothing is."""
    event = event_of_id(group, member_id, instance_id, unknown=Event.UNKNOWN, fenced=Event.FENCED)
    if event is None and generation != group.generation:
        return Event.GENERATION
    return event


def joined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """Return the current generation, and for the leader the members to assign to."""
    answer = JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member_id,
    )
    if member_id == group.leader:
        answer.members = [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(group.protocol),
            )
            for member in group.members.values()
        ]
    return answer


def join_refused(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name="")


def synced(group: ClassicGroup, member_id: str) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=group.assignments.get(member_id, b""),
    )


def sync_refused(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)


def unloaded(group: ClassicGroup) -> tuple[Reply, ...]:
    """Return answers that send all waiting members to the new coordinator."""
    error = ErrorCode.NOT_COORDINATOR
    joins = (
        Reply(waiting.ticket, join_refused(error, member_id))
        for member_id, waiting in group.joining.items()
    )
    syncs = (Reply(ticket, sync_refused(error)) for ticket in group.syncing.values())
    return (*joins, *syncs)
