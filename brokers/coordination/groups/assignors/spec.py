"""What an assignor is given and what it gives back.

Knows no member but its id, no topic but its id and its number of partitions. A member whose share
stays the same gets back the very object it came with: that is how callers see what changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from brokers.coordination.groups.values import TopicPartitions


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: the topics it subscribes to, all of which exist, and its share so far."""

    topics: frozenset[bytes]
    share: TopicPartitions


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """All members, and the number of partitions of every topic that one of them subscribes to."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[bytes, int]
    is_homogeneous: bool  # all members subscribe to the same topics


# Every member has an entry in what comes back.
Assign: TypeAlias = Callable[[GroupSpec], dict[str, TopicPartitions]]


def kept_share(spec: GroupSpec, member: MemberSpec) -> TopicPartitions:
    """What a member has of topics that it is subscribed to; the object itself if that is all."""
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
    """The partitions that nobody keeps, ascending, by topic in order of the ids."""
    owned: dict[bytes, set[int]] = {topic_id: set() for topic_id in sorted(spec.partitions)}
    for share in kept.values():
        for topic_id, partitions in share.items():
            owned[topic_id].update(partitions)
    return {
        topic_id: [n for n in range(spec.partitions[topic_id]) if n not in partitions]
        for topic_id, partitions in owned.items()
        if len(partitions) < spec.partitions[topic_id]
    }
