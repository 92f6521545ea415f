"""The uniform assignor: members get about equal numbers of partitions, and few partitions move.

If all members have the same subscription, no two differ by more than one partition, and no
partition moves without need. If not, each partition goes to the subscriber with the fewest, and
then partitions move from members that have two more than another subscriber.
"""

import heapq
from collections.abc import Iterable
from typing import Final

from brokers.coordination.groups.assignors.spec import (
    GroupSpec,
    MemberSpec,
    kept_share,
    unassigned_of,
)
from brokers.coordination.groups.values import TopicPartitions

# Rounds over all topics that move partitions: each evens out the shares, and after so many only
# single partitions could still move.
MAX_PASSES: Final = 10


def assign(spec: GroupSpec) -> dict[str, TopicPartitions]:
    if not spec.members:
        return {}
    return _assign_alike(spec) if spec.is_homogeneous else _Balance(spec).assign()


def _assign_alike(spec: GroupSpec) -> dict[str, TopicPartitions]:
    made: dict[str, TopicPartitions] = {}
    sizes: dict[str, int] = {}
    for member_id, member in spec.members.items():
        made[member_id] = share = kept_share(spec, member)
        sizes[member_id] = sum(map(len, share.values()))
    quota, extras = divmod(sum(spec.partitions.values()), len(spec.members))
    # Members above the quota keep one more first, then those at or below it.
    rooms = dict.fromkeys(spec.members, quota)
    for member_id in sorted(sizes, key=lambda each: -min(sizes[each], quota + 1))[:extras]:
        rooms[member_id] += 1
    for member_id, room in rooms.items():
        if sizes[member_id] > room:
            made[member_id] = _cut(made[member_id], room)
            sizes[member_id] = room
    rest = unassigned_of(spec, made)
    left = ((topic_id, number) for topic_id, numbers in rest.items() for number in numbers)
    for member_id, room in rooms.items():
        if (wanted := room - sizes[member_id]) > 0:
            dealt = [next(left) for _ in range(wanted)]
            made[member_id] = _joined(made[member_id], dealt)
    assert next(left, None) is None, "partitions were left without a member"
    return made


def _cut(share: TopicPartitions, room: int) -> TopicPartitions:
    """Return the first partitions of a share, up to `room`."""
    kept = {}
    for topic_id in sorted(share):
        if not room:
            break
        numbers = share[topic_id]
        kept[topic_id] = numbers if len(numbers) <= room else frozenset(sorted(numbers)[:room])
        room -= len(kept[topic_id])
    return kept


def _joined(share: TopicPartitions, more: Iterable[tuple[bytes, int]]) -> TopicPartitions:
    added: dict[bytes, set[int]] = {}
    for topic_id, number in more:
        added.setdefault(topic_id, set()).add(number)
    joined = dict(share)
    for topic_id, numbers in added.items():
        joined[topic_id] = joined.get(topic_id, frozenset()) | numbers
    return joined


class _Balance:
    """One assignment of members that subscribe to different topics.

    Topics with the same subscribers are one field: within it, partitions are alike.
    """

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._ids = sorted(spec.members)
        self._sizes = [0] * len(self._ids)
        self._subscribers: dict[bytes, list[int]] = {}
        for index, member_id in enumerate(self._ids):
            for topic_id in spec.members[member_id].topics:
                self._subscribers.setdefault(topic_id, []).append(index)
        # Member → field → its partitions there.
        self._fields: dict[tuple[int, ...], int] = {}
        self._field_of: dict[bytes, int] = {}
        for topic_id in sorted(self._subscribers):
            members = tuple(self._subscribers[topic_id])
            self._field_of[topic_id] = self._fields.setdefault(members, len(self._fields))
        self._held: list[dict[int, list[tuple[bytes, int]]]] = [{} for _ in self._ids]

    def assign(self) -> dict[str, TopicPartitions]:
        kept = {}
        for index, member_id in enumerate(self._ids):
            kept[member_id] = kept_share(self._spec, self._spec.members[member_id])
            for topic_id in sorted(kept[member_id]):
                for number in sorted(kept[member_id][topic_id]):
                    self._give(index, topic_id, number)
        self._deal(unassigned_of(self._spec, kept))
        for _ in range(MAX_PASSES):
            moved = [self._even(members, field) for members, field in self._fields.items()]
            if not any(moved):
                break
        return {
            member_id: self._share(index, self._spec.members[member_id])
            for index, member_id in enumerate(self._ids)
        }

    def _give(self, index: int, topic_id: bytes, number: int) -> None:
        self._held[index].setdefault(self._field_of[topic_id], []).append((topic_id, number))
        self._sizes[index] += 1

    def _deal(self, unassigned: dict[bytes, list[int]]) -> None:
        """Give each partition to the subscriber with the fewest, the hardest topics first."""
        heaps: dict[int, list[tuple[int, int]]] = {}

        def hardness(topic_id: bytes) -> tuple[float, int, bytes]:
            subscribers = len(self._subscribers[topic_id])
            return -self._spec.partitions[topic_id] / subscribers, subscribers, topic_id

        for topic_id in sorted(unassigned, key=hardness):
            field = self._field_of[topic_id]
            if (heap := heaps.get(field)) is None:
                heap = [(self._sizes[index], index) for index in self._subscribers[topic_id]]
                heapq.heapify(heap)
                heaps[field] = heap
            for number in unassigned[topic_id]:
                # Sizes only grow here, so an outdated entry comes to the top and is corrected.
                while heap[0][0] != self._sizes[heap[0][1]]:
                    index = heap[0][1]
                    heapq.heapreplace(heap, (self._sizes[index], index))
                index = heap[0][1]
                self._give(index, topic_id, number)
                heapq.heapreplace(heap, (self._sizes[index], index))

    def _even(self, members: tuple[int, ...], field: int) -> bool:
        """Move partitions of one field until no two of its members differ by more than one.

        Members without any of its partitions have nothing to move, whatever else they have.
        """
        sizes = self._sizes
        poor = [(sizes[index], index) for index in members]
        rich = [(-sizes[index], index) for index in members if self._held[index].get(field)]
        heapq.heapify(poor)
        heapq.heapify(rich)
        has_moved = False
        while rich:
            giver = rich[0][1]
            taker = poor[0][1]
            if sizes[giver] - sizes[taker] < 2:
                break
            topic_id, number = self._held[giver][field].pop()
            sizes[giver] -= 1
            self._give(taker, topic_id, number)
            has_moved = True
            heapq.heapreplace(poor, (sizes[taker], taker))
            if self._held[giver][field]:
                heapq.heapreplace(rich, (-sizes[giver], giver))
            else:
                heapq.heappop(rich)
            # The two stay exact at the tops that matter: a giver never gets so small, nor a taker
            # so large, that it changes its side within one call.
        return has_moved

    def _share(self, index: int, member: MemberSpec) -> TopicPartitions:
        numbers: dict[bytes, set[int]] = {}
        for held in self._held[index].values():
            for topic_id, number in held:
                numbers.setdefault(topic_id, set()).add(number)
        made = {topic_id: frozenset(each) for topic_id, each in numbers.items()}
        return member.share if member.share == made else made
