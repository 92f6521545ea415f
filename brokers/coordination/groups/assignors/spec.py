"""The input and output of an assignor.

Contains only ids of members, and ids and partition counts of topics. A member with an unchanged
share gets back the same object, by which callers detect changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from brokers.coordination.groups.values import TopicPartitions


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: its subscribed topics, all of which exist, and its current share."""

    topics: frozenset[bytes]
    share: TopicPartitions


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """All members, and the number of partitions of every topic with a subscriber."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[bytes, int]
    is_homogeneous: bool  # all members subscribe to the same topics


# The result has an entry for every member.
Assign: TypeAlias = Callable[[GroupSpec], dict[str, TopicPartitions]]


def kept_share(spec: GroupSpec, member: MemberSpec) -> TopicPartitions:
    """Return a member's share of subscribed topics; the same object if that is all of it."""
    share, counts = member.share, spec.partitions
    for topic_id, partitions in share.items():
        if topic_id not in member.topics or not partitions or max(partitions) >= counts[topic_id]:
            break
    else:
        return share
    kept = {
        topic_id: frozenset(number for number in partitions if number < counts[topic_id])
        for topic_id, partitions in share.items()
        if topic_id in member.topics
    }
    return {topic_id: partitions for topic_id, partitions in kept.items() if partitions}


def unassigned_of(spec: GroupSpec, kept: Mapping[str, TopicPartitions]) -> dict[bytes, list[int]]:
    """Return the unassigned partitions, ascending, by topic in order of the ids."""
    owned: dict[bytes, set[int]] = {topic_id: set() for topic_id in sorted(spec.partitions)}
    for share in kept.values():
        for topic_id, partitions in share.items():
            owned[topic_id].update(partitions)
    return {
        topic_id: [n for n in range(spec.partitions[topic_id]) if n not in partitions]
        for topic_id, partitions in owned.items()
        if len(partitions) < spec.partitions[topic_id]
    }
