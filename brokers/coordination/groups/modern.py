"""Defines a group of the consumer protocol (KIP-848) and its members as immutable values.

Knows no request, no record and no rule of the protocol. Values that follow from the members (owners
of partitions, the number of subscribers of a topic) are stored too, so that a heartbeat does not
read a thousand members; only `modern_changes.Draft` makes a new group from an old one.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups.values import TopicPartitions, Who

K = TypeVar("K")
V = TypeVar("V")

# Epochs in requests that have a special meaning.
JOINS: Final = 0
LEAVES: Final = -1
LEAVES_FOR_A_WHILE: Final = -2  # a static member that will be back

# A group begins in this epoch, with an empty assignment: a new member that has to wait for the
# first assignment then has an epoch other than the one for joining.
FIRST_EPOCH: Final = 1

# Partitions with the epoch in which the member got each: topic id → partition → epoch.
Given: TypeAlias = Mapping[bytes, Mapping[int, int]]

NOBODY: Final = Who("", "")
NOTHING_GIVEN: Final[Given] = MappingProxyType({})
NO_PARTITIONS: Final[TopicPartitions] = MappingProxyType({})


class MemberState(IntEnum):
    """The progress of a member towards its target; records contain the numbers."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # must revoke partitions before it continues
    UNRELEASED_PARTITIONS = 2  # waits for partitions that others have not revoked yet
    UNKNOWN = 127  # of a newer version

    @classmethod
    def _missing_(cls, value: object) -> "MemberState":
        assert isinstance(value, int), f"a state is a number, not {value!r}"
        return cls.UNKNOWN


class GroupState(Enum):
    """The state of a group that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicSide:
    """The classic part of a member that uses the classic protocol in a group of the new one."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """One member: the data from its requests, then its position."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    who: Who = NOBODY
    names: tuple[str, ...] = ()  # of topics, each once, in order
    regex: str = ""
    assignor: str | None = None
    rebalance_timeout_ms: int = -1
    classic: ClassicSide | None = None
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Given = field(default_factory=lambda: NOTHING_GIVEN)
    # To be revoked, and still owned by the member.
    revoking: Given = field(default_factory=lambda: NOTHING_GIVEN)

    @property
    def is_away(self) -> bool:
        return self.epoch == LEAVES_FOR_A_WHILE


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that a regular expression of a group matched, at a version of the cluster."""

    topics: frozenset[str]
    version: int
    resolved_ms: int


def _nothing() -> Mapping[K, V]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroup:
    """See the module. First the fields that records hold, then those that follow from them."""

    id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_ms: int = 0
    members: Mapping[str, ConsumerMember] = field(default_factory=_nothing)
    targets: Mapping[str, TopicPartitions] = field(default_factory=_nothing)
    regexes: Mapping[str, ResolvedRegex] = field(default_factory=_nothing)
    # An older Kafka described the topics in a separate record; the next epoch deletes it.
    has_old_metadata: bool = False

    # Follows from the members.
    instances: Mapping[str, str] = field(default_factory=_nothing)  # instance id → member id
    name_counts: Mapping[str, int] = field(default_factory=_nothing)  # members that name a topic
    regex_counts: Mapping[str, int] = field(default_factory=_nothing)  # members with a regex
    assignor_votes: Mapping[str, int] = field(default_factory=_nothing)
    owners: Mapping[bytes, Mapping[int, str]] = field(default_factory=_nothing)
    # Of the members that speak the classic protocol: how many, and how many list each protocol.
    classic_count: int = 0
    supporters: Mapping[str, int] = field(default_factory=_nothing)

    # The cluster has changed a topic of the group since the hash was made. Not in any record.
    is_metadata_stale: bool = field(default=False, compare=False)

    @property
    def state(self) -> GroupState:
        """The state, from all members: for descriptions of the group, not for its own work."""
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(self.is_settled(member) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    @property
    def assignor(self) -> str | None:
        """The assignor that most members request, the first by name among equals."""
        votes = self.assignor_votes
        return min(votes, key=lambda name: (-votes[name], name)) if votes else None

    @property
    def is_homogeneous(self) -> bool:
        """Tell whether all members subscribe to the same topics."""
        everybody = len(self.members)
        if not self.regex_counts:
            return all(count == everybody for count in self.name_counts.values())
        return not self.name_counts and list(self.regex_counts.values()) == [everybody]

    def is_settled(self, member: ConsumerMember) -> bool:
        """Tell whether a member has all of its target and nothing else."""
        return member.state is MemberState.STABLE and member.epoch == self.assignment_epoch

    def subscribed_names(self) -> set[str]:
        """The names that members subscribe to, whether such topics exist or not."""
        names = set(self.name_counts)
        for regex in self.regex_counts:
            if (resolved := self.regexes.get(regex)) is not None:
                names |= resolved.topics
        return names


def topic_names_of(member: ConsumerMember, regexes: Mapping[str, ResolvedRegex]) -> Collection[str]:
    """Return the member's subscribed names; a regex that is not resolved matches nothing."""
    resolved = regexes.get(member.regex) if member.regex else None
    if resolved is None or not resolved.topics:
        return member.names
    return resolved.topics.union(member.names) if member.names else resolved.topics


def topic_ids_of(names: Collection[str], image: ClusterImage) -> frozenset[bytes]:
    """Return the ids of those topics that exist."""
    topics = image.topics
    return frozenset(topics[name].id for name in names if name in topics)
