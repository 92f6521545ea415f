"""Defines the changes in records of a consumer group, and the draft of a group that applies them.

Knows no bytes: `Write` makes a record of a change. A draft begins with a group and copies a mapping
on its first change, so that a thousand changes cost one copy. The same draft serves a request,
which reads its own changes so far, and the replay of records; so both end in the same group.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeAlias, TypeVar

from brokers.coordination.groups.modern import (
    FIRST_EPOCH,
    NOTHING_GIVEN,
    ClassicSide,
    ConsumerGroup,
    ConsumerMember,
    Given,
    MemberState,
    ResolvedRegex,
)
from brokers.coordination.groups.values import TopicPartitions, Who
from brokers.coordination.shard import Record
from brokers.protocol.errors import ErrorCode, KafkaError

K = TypeVar("K")
V = TypeVar("V")

# The epoch of a member whose position is deleted, until the member itself is.
_GONE: Final = -1


@dataclass(frozen=True, slots=True)
class GroupEpoch:
    """The group's epoch with the hash of the topics it stands for; None deletes (record 3)."""

    epoch: int | None
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class OldMetadata:
    """A description of topics by an older Kafka: present, or deleted (record 4)."""

    is_there: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The data that a member sent about itself."""

    instance_id: str | None
    rack_id: str | None
    who: Who
    names: tuple[str, ...]
    regex: str
    assignor: str | None
    rebalance_timeout_ms: int
    classic: ClassicSide | None


@dataclass(frozen=True, slots=True)
class MemberSaid:
    """The data that a member sent about itself; None deletes the member (record 5)."""

    member_id: str
    said: Said | None


@dataclass(frozen=True, slots=True)
class TargetEpoch:
    """The epoch that the targets are for, and when they were made; None deletes (record 6)."""

    epoch: int | None
    made_ms: int = 0


@dataclass(frozen=True, slots=True)
class MemberTarget:
    """The target assignment of a member (record 7)."""

    member_id: str
    target: TopicPartitions | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The position of a member: its epochs, state and partitions."""

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Given
    revoking: Given


@dataclass(frozen=True, slots=True)
class MemberStands:
    """The position of a member; None deletes it (record 8)."""

    member_id: str
    stand: Stand | None


@dataclass(frozen=True, slots=True)
class RegexResolved:
    """The matches of a regular expression; None deletes them (record 16)."""

    regex: str
    resolved: ResolvedRegex | None


Change: TypeAlias = (
    GroupEpoch
    | OldMetadata
    | MemberSaid
    | TargetEpoch
    | MemberTarget
    | MemberStands
    | RegexResolved
)
# Group id and change to a record, which carries the change as `decoded`.
Write: TypeAlias = Callable[[str, Change], Record]


def said_by(member: ConsumerMember) -> MemberSaid:
    return MemberSaid(
        member.id,
        Said(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            who=member.who,
            names=member.names,
            regex=member.regex,
            assignor=member.assignor,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=member.classic,
        ),
    )


def stand_of(member: ConsumerMember) -> MemberStands:
    return MemberStands(
        member.id,
        Stand(
            epoch=member.epoch,
            previous_epoch=member.previous_epoch,
            state=member.state,
            assigned=member.assigned,
            revoking=member.revoking,
        ),
    )


class _Draftable(Generic[K, V]):
    """A mapping that is copied on its first change."""

    __slots__ = ("_own", "now")

    def __init__(self, source: Mapping[K, V]) -> None:
        self.now: Mapping[K, V] = source
        self._own: dict[K, V] | None = None

    def edit(self) -> dict[K, V]:
        if self._own is None:
            self._own = dict(self.now)
            self.now = self._own
        return self._own

    def freeze(self) -> Mapping[K, V]:
        """Return the mapping as it is; the next change copies it again."""
        self._own = None
        return self.now

    def count(self, key: K, by: int) -> None:
        counts: dict[K, int] = self.edit()  # type: ignore[assignment]
        if number := counts.get(key, 0) + by:
            counts[key] = number
        else:
            del counts[key]


class Draft:
    """A group under construction; belongs to one request or one replay."""

    def __init__(self, group: ConsumerGroup) -> None:
        self._group = group  # for its numbers; the drafts below have the mappings
        self._members = _Draftable(group.members)
        self._targets = _Draftable(group.targets)
        self._regexes = _Draftable(group.regexes)
        self._instances = _Draftable(group.instances)
        self._names = _Draftable(group.name_counts)
        self._regex_counts = _Draftable(group.regex_counts)
        self._votes = _Draftable(group.assignor_votes)
        self._supporters = _Draftable(group.supporters)
        self._owners = _Draftable(group.owners)
        # Topics whose owners this draft has copied already.
        self._own_owners: dict[bytes, dict[int, str]] = {}

    def group(self) -> ConsumerGroup:
        """Return the group as it is now; the draft may continue."""
        self._own_owners = {}
        self._group = replace(
            self._group,
            members=self._members.freeze(),
            targets=self._targets.freeze(),
            regexes=self._regexes.freeze(),
            instances=self._instances.freeze(),
            name_counts=self._names.freeze(),
            regex_counts=self._regex_counts.freeze(),
            assignor_votes=self._votes.freeze(),
            supporters=self._supporters.freeze(),
            owners=self._owners.freeze(),
        )
        return self._group

    def look_at_topics(self) -> ConsumerGroup:
        """Return the group with its topics marked as up to date."""
        self._group = replace(self._group, is_metadata_stale=False)
        return self.group()

    def take_all(self, changes: Iterable[Change]) -> ConsumerGroup:
        for change in changes:
            self.take(change)
        return self.group()

    def seat(self, member: ConsumerMember, target: TopicPartitions) -> None:
        """Add a whole member, instead of the three equivalent changes."""
        self._aim(member.id, target)
        self._put(self._members.now.get(member.id), member)

    def take(self, change: Change) -> None:
        """Apply one change; KafkaError for one that contradicts the group.

        Deleting a missing value is no contradiction: compaction may have removed the value.
        """
        match change:
            case MemberStands(member_id, stand):
                self._stand(member_id, stand)
            case MemberTarget(member_id, target):
                self._aim(member_id, target)
            case MemberSaid(member_id, said):
                self._say(member_id, said)
            case GroupEpoch(epoch, metadata_hash):
                self._set_epoch(epoch, metadata_hash)
            case TargetEpoch(epoch, made_ms):
                self._set_assignment(epoch, made_ms)
            case RegexResolved(regex, resolved):
                self._resolve(regex, resolved)
            case OldMetadata(is_there):
                if self._group.has_old_metadata is not is_there:
                    self._group = replace(self._group, has_old_metadata=is_there)

    def _set_epoch(self, epoch: int | None, metadata_hash: int) -> None:
        if epoch is None:
            self._refuse_while(self._members.now, "its members")
            self._refuse_while(self._targets.now, "their targets")
        self._group = replace(
            self._group,
            epoch=FIRST_EPOCH if epoch is None else epoch,
            metadata_hash=metadata_hash,
        )

    def _set_assignment(self, epoch: int | None, made_ms: int) -> None:
        if epoch is None:
            self._refuse_while(self._targets.now, "the targets of its members")
        self._group = replace(
            self._group,
            assignment_epoch=FIRST_EPOCH if epoch is None else epoch,
            assignment_ms=made_ms,
        )

    def _refuse_while(self, left: Mapping[str, object], what: str) -> None:
        if left:
            raise _contradiction(self._group.id, f"is deleted before {what}, of which {len(left)}")

    def _say(self, member_id: str, said: Said | None) -> None:
        old = self._members.now.get(member_id)
        if said is not None:
            member = old or ConsumerMember(id=member_id)
            self._put(
                old,
                replace(
                    member,
                    instance_id=said.instance_id,
                    rack_id=said.rack_id,
                    who=said.who,
                    names=said.names,
                    regex=said.regex,
                    assignor=said.assignor,
                    rebalance_timeout_ms=said.rebalance_timeout_ms,
                    classic=said.classic,
                ),
            )
        elif old is not None:
            if old.epoch != _GONE or member_id in self._targets.now:
                what = f"deletes member {member_id!r} before its target and its position"
                raise _contradiction(self._group.id, what)
            self._put(old, None)

    def _aim(self, member_id: str, target: TopicPartitions | None) -> None:
        if target is not None:
            self._targets.edit()[member_id] = target
        elif member_id in self._targets.now:
            del self._targets.edit()[member_id]

    def _stand(self, member_id: str, stand: Stand | None) -> None:
        old = self._members.now.get(member_id)
        if stand is None and old is None:
            return
        member = old or ConsumerMember(id=member_id)
        if stand is None:
            stand = Stand(
                epoch=_GONE,
                previous_epoch=_GONE,
                state=MemberState.STABLE,
                assigned=NOTHING_GIVEN,
                revoking=NOTHING_GIVEN,
            )
        self._put(
            old,
            replace(
                member,
                epoch=stand.epoch,
                previous_epoch=stand.previous_epoch,
                state=stand.state,
                assigned=stand.assigned,
                revoking=stand.revoking,
            ),
        )

    def _resolve(self, regex: str, resolved: ResolvedRegex | None) -> None:
        if resolved is not None:
            self._regexes.edit()[regex] = resolved
        elif regex in self._regexes.now:
            del self._regexes.edit()[regex]

    def _put(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Set a member, and the group's fields that follow from it."""
        either = new or old
        assert either is not None, "a member is put or taken away"
        self._own(either.id, old, new)  # first, since it may refuse
        self._count(old, new)
        self._name_instance(either.id, old, new)
        if new is None:
            del self._members.edit()[either.id]
        else:
            self._members.edit()[either.id] = new

    def _count(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        for member, by in ((new, 1), (old, -1)):
            other = old if member is new else new
            if member is None:
                continue
            if other is None or other.names != member.names:
                for name in member.names:
                    self._names.count(name, by)
            if member.regex and (other is None or other.regex != member.regex):
                self._regex_counts.count(member.regex, by)
            if member.assignor and (other is None or other.assignor != member.assignor):
                self._votes.count(member.assignor, by)
            if member.classic and (other is None or other.classic != member.classic):
                for name in {name for name, _metadata in member.classic.protocols}:
                    self._supporters.count(name, by)
        difference = _is_classic(new) - _is_classic(old)
        if difference:
            count = self._group.classic_count + difference
            self._group = replace(self._group, classic_count=count)

    def _name_instance(
        self, member_id: str, old: ConsumerMember | None, new: ConsumerMember | None
    ) -> None:
        instance = new.instance_id if new else None
        left = old.instance_id if old else None
        # Another member may have the instance id by now; then it stays.
        if left is not None and left != instance and self._instances.now.get(left) == member_id:
            del self._instances.edit()[left]
        if instance is not None and instance != left:
            self._instances.edit()[instance] = member_id

    def _own(self, member_id: str, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        before = (old.assigned, old.revoking) if old else ()
        after = (new.assigned, new.revoking) if new else ()
        if before == after:
            return
        for given in after:
            for topic_id, partitions in given.items():
                owners = self._owners.now.get(topic_id, {})
                for partition in partitions:
                    owner = owners.get(partition, member_id)
                    if owner != member_id:
                        what = f"gives partition {partition} of {topic_id.hex()} to {member_id!r}"
                        raise _contradiction(self._group.id, f"{what}; {owner!r} has it")
        for given in before:
            for topic_id, partitions in given.items():
                owners = self._owners_of(topic_id)  # created if missing, deleted below if empty
                for partition in partitions:
                    owners.pop(partition, None)
        for given in after:
            for topic_id, partitions in given.items():
                if partitions:
                    self._owners_of(topic_id).update(dict.fromkeys(partitions, member_id))
        for given in before:
            for topic_id in given:
                if not self._owners.now.get(topic_id, True):
                    del self._owners.edit()[topic_id]
                    self._own_owners.pop(topic_id, None)

    def _owners_of(self, topic_id: bytes) -> dict[int, str]:
        own = self._own_owners.get(topic_id)
        if own is None:
            own = dict(self._owners.now.get(topic_id, {}))
            self._own_owners[topic_id] = self._owners.edit()[topic_id] = own
        return own


def _is_classic(member: ConsumerMember | None) -> bool:
    return member is not None and member.classic is not None


def _contradiction(group_id: str, what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a record of group {group_id!r} {what}")
