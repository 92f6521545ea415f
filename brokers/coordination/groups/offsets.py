"""The committed offsets of one shard: how far each group has come, by topic and partition.

Knows what is committed and nothing of who may commit. A place is a topic's name and the index of a
partition: offsets outlive the members that wrote them, and a topic of the same name goes on there.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from brokers.coordination.groups.values import Committed

Place: TypeAlias = tuple[str, int]

_NOTHING: Final[Mapping[Place, Committed]] = MappingProxyType({})


class Offsets:
    """Belongs to a shard. Changed by replay alone."""

    __slots__ = ("_by_group",)

    def __init__(self) -> None:
        self._by_group: dict[str, dict[Place, Committed]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_group.values()))

    def of(self, group_id: str) -> Mapping[Place, Committed]:
        """All that a group has committed."""
        return self._by_group.get(group_id, _NOTHING)

    def groups(self) -> Iterable[str]:
        """The groups that have committed anything."""
        return self._by_group.keys()

    def put(self, group_id: str, place: Place, committed: Committed) -> None:
        self._by_group.setdefault(group_id, {})[place] = committed

    def remove(self, group_id: str, place: Place) -> None:
        """Forgets one; does nothing where there is none."""
        places = self._by_group.get(group_id)
        if places is None or places.pop(place, None) is None:
            return
        if not places:
            del self._by_group[group_id]

    def on_topics(self, topics: Iterable[str]) -> Iterator[tuple[str, list[Place]]]:
        """Each group with its places on these topics, which may be none; one group is one step.

        Groups that come meanwhile are passed over: what they commit on is there.
        """
        wanted = frozenset(topics)
        for group_id in tuple(self._by_group):
            yield group_id, [place for place in self.of(group_id) if place[0] in wanted]
