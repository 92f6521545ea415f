"""Notes by name what has changed in a shard since the last look.

Knows neither readers nor their format. Without a watcher nothing is noted; a watched shard needs
one dict entry for each committed offset. Beyond a limit it notes nothing more, and the watcher
reads the shard as a whole.

Rebalances and commits are always counted, in one tally for all shards of a broker: a shard that
moves away must not take its counts along.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.offsets import Place

# Names that are noted between two reads, in all shards of a broker: some 10 MB.
MAX_FACTS: Final = 50_000

Group: TypeAlias = ClassicGroup | ConsumerGroup
CommitKey: TypeAlias = tuple[str, Place]


@dataclass(slots=True)
class Tally:
    """Counters that only grow."""

    rebalances: int = 0
    commits: int = 0


@dataclass(frozen=True, slots=True)
class Changed:
    """The groups and committed offsets that have changed or are gone."""

    groups: Collection[str]
    commits: Collection[CommitKey]


class Facts:
    """Belongs to one shard, which reports its changes."""

    __slots__ = ("_commits", "_counted", "_groups", "_limit", "rebalances")

    def __init__(self) -> None:
        # By group that exists, since the shard was loaded.
        self.rebalances: dict[str, int] = {}
        # Records that are only replayed are not counted.
        self._counted: Tally | None = None
        # None without a watcher, and once there was too much to note.
        self._commits: dict[CommitKey, None] | None = None
        self._groups: dict[str, None] = {}
        self._limit = 0

    # -- for the watcher -------------------------------------------------------------------------

    def watch(self, limit: int) -> None:
        """Note changes from now on: up to `limit` offsets, and as many groups."""
        self._commits, self._groups, self._limit = {}, {}, limit

    def unwatch(self) -> None:
        self._commits, self._groups = None, {}

    def take(self, limit: int) -> Changed | None:
        """Return and clear the changes since the last call; None if they are not known."""
        commits, groups = self._commits, self._groups
        self.watch(limit)
        return None if commits is None else Changed(groups, commits)

    # -- for the shard ---------------------------------------------------------------------------

    def count(self, tally: Tally) -> None:
        """Begin to count; called once the shard is loaded."""
        self._counted = tally

    def committed(self, group_id: str, place: Place) -> None:
        """Note a committed offset. Called for each, also while a shard is loaded."""
        if self._counted is not None:
            self._counted.commits += 1
        if self._commits is not None:
            self._commits[group_id, place] = None
            if len(self._commits) > self._limit:
                self.unwatch()

    def offset_gone(self, group_id: str, place: Place) -> None:
        if self._commits is not None:
            self._commits[group_id, place] = None
            if len(self._commits) > self._limit:
                self.unwatch()

    def group_changed(self, group_id: str) -> None:
        """Note that a group has changed, or is gone."""
        if self._commits is not None:
            self._groups[group_id] = None
            if len(self._groups) > self._limit:
                self.unwatch()

    def group_became(self, group_id: str, before: Group | None, after: Group) -> None:
        """Note a group's new value; a higher number with members counts as a rebalance."""
        if self._counted is not None and after.members:
            old = 0 if before is None else number_of(before)
            if number_of(after) > old:
                self._counted.rebalances += 1
                self.rebalances[group_id] = self.rebalances.get(group_id, 0) + 1
        self.group_changed(group_id)

    def group_gone(self, group_id: str) -> None:
        """Note that a group is gone, and drop its count of rebalances."""
        self.rebalances.pop(group_id, None)
        self.group_changed(group_id)


def number_of(group: Group) -> int:
    """Return the number that grows with each new assignment of a group."""
    return group.epoch if isinstance(group, ConsumerGroup) else group.generation
