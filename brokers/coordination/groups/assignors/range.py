"""The range assignor: divides each topic separately into runs of partitions of equal length.

Topics with equal numbers of partitions are divided alike, so that a member gets the same partition
numbers of each. Members keep the lowest of their partitions up to their share.
"""

from brokers.coordination.groups.assignors.spec import GroupSpec
from brokers.coordination.groups.values import TopicPartitions


def assign(spec: GroupSpec) -> dict[str, TopicPartitions]:
    subscribers: dict[bytes, list[str]] = {}
    for member_id in sorted(spec.members):
        for topic_id in spec.members[member_id].topics:
            subscribers.setdefault(topic_id, []).append(member_id)
    made: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in spec.members}
    for topic_id in sorted(subscribers):
        for member_id, partitions in _cut(spec, topic_id, subscribers[topic_id]).items():
            made[member_id][topic_id] = frozenset(partitions)
    return {
        member_id: old.share if old.share == made[member_id] else made[member_id]
        for member_id, old in spec.members.items()
    }


def _cut(spec: GroupSpec, topic_id: bytes, members: list[str]) -> dict[str, list[int]]:
    """Divide one topic: members keep partitions first, then the rest goes in runs to others."""
    count = spec.partitions[topic_id]
    quota, extras = divmod(count, len(members))
    free = set(range(count))
    shares: dict[str, list[int]] = {}
    waiting = []
    for member_id in members:
        own = sorted(free.intersection(spec.members[member_id].share.get(topic_id, ())))
        if len(own) > quota and extras:
            extras -= 1
            shares[member_id] = own[: quota + 1]
        else:
            shares[member_id] = own[:quota]
            waiting.append(member_id)
        free.difference_update(shares[member_id])
    left = iter(sorted(free))
    for member_id in waiting:
        share = shares[member_id]
        wanted = quota - len(share) + (1 if extras else 0)
        extras -= 1 if extras else 0
        share.extend(next(left) for _ in range(wanted))
    assert next(left, None) is None, f"{count} partitions were not all given to {len(members)}"
    return {member_id: share for member_id, share in shares.items() if share}
