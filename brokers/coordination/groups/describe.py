"""Builds the lists and descriptions of groups that admin clients request.

Pure: reads what a shard has committed, and changes nothing. Knows the answers of ListGroups,
DescribeGroups and ConsumerGroupDescribe, but not the groups of a request. A consumer that assigns
partitions to itself leaves offsets and no group; these are shown as an empty group without a type,
as in Kafka.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups.classic import CONSUMER_TYPE, ClassicGroup, ClassicMember
from brokers.coordination.groups.modern import ConsumerGroup, ConsumerMember, MemberState
from brokers.coordination.groups.shard import Group, GroupShard
from brokers.coordination.groups.states import ClassicState
from brokers.coordination.groups.target import DEFAULT_ASSIGNOR
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages import consumer_group_describe, describe_groups
from brokers.protocol.messages.list_groups import ListedGroup

# Both kinds, as ListGroups names and filters them.
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
# The state of offsets without a group.
EMPTY: Final = ClassicState.EMPTY.value
# The state of a group that does not exist, or is not of the requested kind.
DEAD: Final = "Dead"

# From this version on DescribeGroups has an error code and message for missing groups.
_KNOWS_NOT_FOUND: Final = 6
# ConsumerGroupDescribe's types of a member by its protocol, and of an unknown one.
_CLASSIC_MEMBER, _CONSUMER_MEMBER, _UNKNOWN_MEMBER = 0, 1, -1

# The approximate bytes of the ids of a member, and of an assigned topic, in a response.
_MEMBER_BYTES: Final = 128
_TOPIC_BYTES: Final = 48


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a list of groups, in lower case; an empty one matches all."""

    states: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()

    @classmethod
    def of(cls, states: Collection[str], types: Collection[str]) -> "Filters":
        """Make filters from a request, in any case."""
        return cls(frozenset(map(str.lower, states)), frozenset(map(str.lower, types)))

    def let_through(self, group: ListedGroup) -> bool:
        return (not self.states or group.group_state.lower() in self.states) and (
            not self.types or group.group_type in self.types
        )


def listed(shard: GroupShard) -> Iterator[ListedGroup]:
    """Yield all groups that a shard has now, even if the caller takes them slowly."""
    groups, with_offsets = tuple(shard.groups()), tuple(shard.offsets.groups())
    known = set()
    for group in groups:
        one = _listed(group)
        known.add(one.group_id)
        yield one
    for group_id in with_offsets:
        if group_id not in known:
            yield ListedGroup(
                group_id=group_id, protocol_type="", group_state=EMPTY, group_type=CLASSIC
            )


def _listed(group: Group) -> ListedGroup:
    state = group.state.value
    if isinstance(group, ConsumerGroup):
        return ListedGroup(
            group_id=group.id,
            protocol_type=CONSUMER_TYPE,
            group_state=state,
            group_type=CONSUMER,
        )
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=state,
        group_type=CLASSIC,
    )


def described(shard: GroupShard, group_id: str, version: int) -> describe_groups.DescribedGroup:
    """Describe a classic group; any other is dead, which older clients accept as an answer."""
    group = shard.group(group_id)
    if isinstance(group, ClassicGroup):
        return _classic(group)
    if group is None and group_id in shard.offsets:
        return describe_groups.DescribedGroup(group_id=group_id, group_state=EMPTY)
    dead = describe_groups.DescribedGroup(group_id=group_id, group_state=DEAD)
    if version >= _KNOWS_NOT_FOUND:
        dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        dead.error_message = _absent(group_id, "classic", is_other=group is not None)
    return dead


def described_consumer(shard: GroupShard, group_id: str) -> consumer_group_describe.DescribedGroup:
    """Describe a group of the consumer protocol; KafkaError for another one, or for none."""
    group = shard.group(group_id)
    if not isinstance(group, ConsumerGroup):
        is_other = group is not None or group_id in shard.offsets
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND, _absent(group_id, "consumer", is_other=is_other)
        )
    image = shard.image
    return consumer_group_describe.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor or DEFAULT_ASSIGNOR,
        members=[_consumer_member(group, member, image) for member in group.members.values()],
    )


def size_of(group: describe_groups.DescribedGroup) -> int:
    """Return the approximate size of a description in a response, in bytes."""
    return sum(
        _MEMBER_BYTES + len(member.member_metadata) + len(member.member_assignment)
        for member in group.members
    )


def size_of_consumer(group: consumer_group_describe.DescribedGroup) -> int:
    """Return the same for a group of the consumer protocol."""
    size = 0
    for member in group.members:
        size += _MEMBER_BYTES + sum(map(len, member.subscribed_topic_names))
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                size += _TOPIC_BYTES + 4 * len(topic.partitions)
    return size


def _classic(group: ClassicGroup) -> describe_groups.DescribedGroup:
    # Outside of a generation no protocol is selected, so there is no metadata to show.
    protocol = group.protocol if group.state is ClassicState.STABLE else None
    return describe_groups.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[_classic_member(group, member, protocol) for member in group.members.values()],
    )


def _classic_member(
    group: ClassicGroup, member: ClassicMember, protocol: str | None
) -> describe_groups.DescribedGroupMember:
    return describe_groups.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=group.assignments.get(member.member_id, b""),
    )


def _consumer_member(
    group: ConsumerGroup, member: ConsumerMember, image: ClusterImage
) -> consumer_group_describe.Member:
    kind = _CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER
    return consumer_group_describe.Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.who.client_id,
        client_host=member.who.host,
        subscribed_topic_names=list(member.names),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(member.assigned, image),
        target_assignment=_assignment(group.targets.get(member.id, {}), image),
        member_type=_UNKNOWN_MEMBER if member.state is MemberState.UNKNOWN else kind,
    )


def _assignment(
    partitions: Mapping[bytes, Collection[int]], image: ClusterImage
) -> consumer_group_describe.Assignment:
    """By topics that exist: a deleted one has no name any more."""
    return consumer_group_describe.Assignment(
        topic_partitions=[
            consumer_group_describe.TopicPartitions(
                topic_id=topic_id, topic_name=name, partitions=sorted(indexes)
            )
            for topic_id, indexes in partitions.items()
            if (name := image.names.get(topic_id)) is not None
        ]
    )


def _absent(group_id: str, kind: str, *, is_other: bool) -> str:
    # Tools show these messages to users, who know them from Kafka.
    return (
        f"Group {group_id} is not a {kind} group." if is_other else f"Group {group_id} not found."
    )
