"""The committed offsets of one shard, by group, topic and partition.

Does not check the right to commit. A place is a topic's name and the index of a partition: offsets
outlive the members that wrote them, and a new topic of the same name continues there. As in Kafka,
a group that committed offsets exists until it is forgotten, also after its last offset.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from brokers.coordination.groups.values import Committed

Place: TypeAlias = tuple[str, int]

_NOTHING: Final[Mapping[Place, Committed]] = MappingProxyType({})


class Offsets:
    """Belongs to a shard. Only replay changes it."""

    __slots__ = ("_by_group",)

    def __init__(self) -> None:
        self._by_group: dict[str, dict[Place, Committed]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_group.values()))

    def __contains__(self, group_id: str) -> bool:
        """Whether a group has committed offsets and is not forgotten."""
        return group_id in self._by_group

    def of(self, group_id: str) -> Mapping[Place, Committed]:
        """Return all committed offsets of a group."""
        return self._by_group.get(group_id, _NOTHING)

    def groups(self) -> Iterable[str]:
        """The groups that have committed offsets and are not forgotten."""
        return self._by_group.keys()

    def put(self, group_id: str, place: Place, committed: Committed) -> None:
        self._by_group.setdefault(group_id, {})[place] = committed

    def remove(self, group_id: str, place: Place) -> None:
        """Remove an offset, if there is one."""
        places = self._by_group.get(group_id)
        if places is not None:
            places.pop(place, None)

    def forget(self, group_id: str) -> None:
        """Forget a group that has no offset left."""
        if not self._by_group.get(group_id, True):
            del self._by_group[group_id]

    def on_topics(self, topics: Iterable[str]) -> Iterator[tuple[str, list[Place]]]:
        """Yield each group with its places on these topics, maybe none; one group is one step.

        Groups that appear meanwhile are skipped: their commits are on existing topics.
        """
        wanted = frozenset(topics)
        for group_id in tuple(self._by_group):
            yield group_id, [place for place in self.of(group_id) if place[0] in wanted]
