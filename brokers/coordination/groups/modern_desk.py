"""Shared parts of consumer group operations: their context, and how they collect changes.

Knows no operation. A step collects changes: each goes into the draft, where the next rule sees it,
and becomes a record; the group that comes out is what the replay of those records makes of it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.modern import NO_PARTITIONS, ConsumerGroup, ConsumerMember
from brokers.coordination.groups.modern_changes import (
    Change,
    Draft,
    GroupEpoch,
    MemberSaid,
    MemberStands,
    MemberTarget,
    OldMetadata,
    RegexResolved,
    Write,
    said_by,
    stand_of,
)
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.target import metadata_hash
from brokers.coordination.groups.values import TopicPartitions
from brokers.coordination.shard import (
    Answer,
    CancelTimer,
    Job,
    Operation,
    Outcome,
    Record,
    Timer,
    TimerKey,
)

SESSION: Final = "session"
REBALANCE: Final = "rebalance"
# For members with the classic protocol: the deadlines of the next join, and of the sync after it.
CLASSIC_JOIN: Final = "classic_join"
CLASSIC_SYNC: Final = "classic_sync"
# The timers that no classic group has; sessions continue if a group changes its protocol.
MODERN_TIMERS: Final = (REBALANCE, CLASSIC_JOIN, CLASSIC_SYNC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The context of an operation: the broker's settings, the cluster, encoders and id generators.

    `resolved` makes the operation that applies a job's result for a group's expressions: group id,
    the matches of each, and the version of the cluster.
    """

    settings: GroupSettings
    image: ClusterImage
    topics_version: int  # of the cluster, when a topic was last created
    write: Write
    new_id: Callable[[], str]
    resolved: Callable[[str, Mapping[str, frozenset[str]], int], Operation[Any]]


class Step:
    """One operation's changes of one group."""

    def __init__(self, group: ConsumerGroup, place: Place) -> None:
        self._draft = Draft(group)
        self._place = place
        self._records: list[Record] = []
        self.group = group
        self.timers: list[Timer] = []
        self.jobs: list[Job[Any]] = []

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(self._records)

    def add(self, *changes: Change) -> ConsumerGroup:
        """Apply changes, and return the resulting group."""
        write, group_id = self._place.write, self.group.id
        for change in changes:
            self._draft.take(change)
            self._records.append(write(group_id, change))
        if changes:
            self.group = self._draft.group()
        return self.group

    def note(self, *changes: Change) -> None:
        """Write changes that the group contains already, or that end it."""
        write, group_id = self._place.write, self.group.id
        self._records += [write(group_id, change) for change in changes]

    def seat(self, members: Iterable[tuple[ConsumerMember, TopicPartitions]]) -> None:
        """Add whole members, with their targets; the caller still has to note their changes."""
        for member, target in members:
            self._draft.seat(member, target)
        self.group = self._draft.group()

    def remove(self, *members: ConsumerMember) -> None:
        """Remove members, with their timers and with expressions that no other member has."""
        changes: list[Change] = []
        for member in members:
            changes += (
                MemberStands(member.id, None),
                MemberTarget(member.id, None),
                MemberSaid(member.id, None),
            )
            self.timers += cancelled(self.group.id, member.id)
        # All at once: each copy of the group takes time for every member.
        self.add(*changes)
        self.drop_regexes(*(member.regex for member in members))

    def exchange(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """Put a new member in the place of a static one, with its data."""
        group = self.group
        member = replace(old, id=member_id, epoch=0, previous_epoch=0)
        target = group.targets.get(old.id, NO_PARTITIONS)
        self.timers += cancelled(group.id, old.id)
        self.add(
            MemberStands(old.id, None),
            MemberTarget(old.id, None),
            MemberSaid(old.id, None),
            said_by(member),
            MemberTarget(member_id, target),
            stand_of(member),
        )
        return self.group.members[member_id]

    def drop_regexes(self, *regexes: str) -> None:
        """Drop those expressions that no member is subscribed to any more."""
        for regex in dict.fromkeys(regexes):
            if regex in self.group.regexes and regex not in self.group.regex_counts:
                self.add(RegexResolved(regex, None))

    def bump(self, *, is_needed: bool) -> None:
        """Bump the group's epoch if `is_needed`, or if its topics have changed."""
        group = self.group
        hashed = metadata_hash(group.subscribed_names(), self._place.image)
        if is_needed or hashed != group.metadata_hash:
            self.add(GroupEpoch(group.epoch + 1, hashed))
            if group.has_old_metadata:
                self.add(OldMetadata(is_there=False))
        if group.is_metadata_stale:
            self.group = self._draft.look_at_topics()

    def outcome(self, before: ConsumerGroup | None, response: Answer | None) -> Outcome[Any]:
        image = self._place.image
        became = () if self.group is before else (GroupBecame(self.group.id, self.group, image),)
        return Outcome(
            records=self.records,
            soft=became,
            timers=tuple(self.timers),
            response=response,
            jobs=tuple(self.jobs),
        )


def cancelled(group_id: str, member_id: str) -> tuple[Timer, ...]:
    """Cancel all possible timers of a member, of either protocol."""
    kinds = (SESSION, *MODERN_TIMERS)
    return tuple(CancelTimer(TimerKey(kind, group_id, member_id)) for kind in kinds)


def as_stale(group: ConsumerGroup) -> Outcome[Any]:
    """Mark a group after a change of its topics: its next heartbeat checks them again."""
    return Outcome(soft=(GroupBecame(group.id, replace(group, is_metadata_stale=True)),))
