"""Adds to the feed the groups that this broker coordinates, with their members and commits.

Knows neither the stored steps nor the watchers. All groups of a shard that has come since the last
sample count as changed, and those of one that has left as gone; of other shards only the changes
that they have noted are read. If a shard had too many to note, or there was no request for a while,
it is unknown what is gone: then a sample has no rows, and the watcher needs a snapshot.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from brokers.coordination.groups.describe import CLASSIC, CONSUMER, EMPTY
from brokers.coordination.groups.facts import MAX_FACTS, CommitKey, number_of
from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.shard import GroupShard
from brokers.server.context import Context
from brokers.server.json_pieces import array
from brokers.server.member_feed import MemberChanges, MemberFeed
from brokers.slices import Slices

# After this long without a request nothing is noted any more; watchers poll every second or two.
WATCH_SECONDS: Final = 60.0
# Rows of one sample; beyond it a snapshot costs no more.
MAX_CHANGES: Final = 50_000
# The most groups, and offsets, in a snapshot: some 15 MB of text each.
MAX_TOLD: Final = 200_000

# group, type, state, epoch or generation, members, rebalances since the shard was loaded
GroupRow = tuple[str, str, str, int, int, int]
GROUP_COLUMNS: Final = ("group", "type", "state", "epoch", "members", "rebalances")
# group, topic, index, offset, leader epoch, when it was committed
CommitRow = tuple[str, str, int, int, int, int]
COMMIT_COLUMNS: Final = ("group", "topic", "index", "offset", "leader_epoch", "commit_ms")


NO_MEMBERS: Final = MemberChanges()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChanges:
    """The result of one sample."""

    groups: tuple[GroupRow, ...] = ()
    commits: tuple[CommitRow, ...] = ()
    groups_gone: tuple[str, ...] = ()
    commits_gone: tuple[tuple[str, str, int], ...] = ()
    members: MemberChanges = NO_MEMBERS

    def __len__(self) -> int:
        gone = len(self.groups_gone) + len(self.commits_gone)
        return len(self.groups) + len(self.commits) + gone + len(self.members)

    def json(self) -> Iterator[str]:
        """Write the changes as members of a JSON object."""
        yield from array("groups", self.groups)
        yield ", "
        yield from array("groups_gone", self.groups_gone)
        yield ", "
        yield from array("commits", self.commits)
        yield ", "
        yield from array("commits_gone", self.commits_gone)
        yield ", "
        yield from self.members.json()


class GroupFeed:
    """Belongs to the event loop. One sample at a time."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._shards: dict[int, GroupShard] = {}
        self._members = MemberFeed()
        self._is_unsure = False  # the changes since the last sample are not known
        self._end: asyncio.TimerHandle | None = None

    async def sample(self, slices: Slices) -> GroupChanges | None:
        """Return the changes since the last sample; None if only a snapshot has them."""
        self._put_off_end()
        active = dict(self._context.groups.shards())
        left = [shard for index, shard in self._shards.items() if active.get(index) is not shard]
        gathering = _Gathering(slices, self._members)
        # Until its end, since the caller may be cancelled in the middle of it.
        is_whole, self._is_unsure = not self._is_unsure, True
        limit = max(1, MAX_FACTS // max(1, len(active)))
        before, self._shards = self._shards, active
        for shard in left:
            shard.facts.unwatch()
        for index, shard in active.items():
            is_new = before.get(index) is not shard
            changed = shard.facts.take(limit)
            if changed is None and not is_new:
                is_whole = False
            elif is_whole and changed is not None and not is_new:
                await gathering.take(shard, changed.groups, changed.commits)
            elif is_whole:
                await gathering.take(shard, _group_ids(shard), _commit_keys(shard))
            is_whole = is_whole and len(gathering) <= MAX_CHANGES
        for shard in left if is_whole else ():
            await gathering.lose(_group_ids(shard), _commit_keys(shard))
        is_whole = is_whole and len(gathering) <= MAX_CHANGES
        if not is_whole:
            await self._look_at_all_members(slices)
        self._is_unsure = False
        return gathering.changes() if is_whole else None

    def snapshot(self) -> Iterator[str]:
        """Yield the whole state as members of a JSON object.

        Members are those of the sample; groups and offsets may be newer than it.
        """
        members = self._members
        return _told(list(self._shards.values()), members.snapshot(), is_cut=members.is_cut)

    async def _look_at_all_members(self, slices: Slices) -> None:
        """Read the members of all groups, since it is unknown which groups have changed."""
        self._members.clear()
        for shard in list(self._shards.values()):
            for group_id in _group_ids(shard):
                await self._members.take(shard, group_id, slices)
                await slices.breathe()
        self._members.changes()  # discarded: only a snapshot contains these

    def close(self) -> None:
        """Make the shards stop noting changes."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        for shard in self._shards.values():
            shard.facts.unwatch()
        self._is_unsure = self._is_unsure or bool(self._shards)
        self._shards = {}
        self._members.clear()

    def _put_off_end(self) -> None:
        if self._end is not None:
            self._end.cancel()
        self._end = self._context.loop.call_later(WATCH_SECONDS, self.close)


class _Gathering:
    """Collects the rows of one sample, each once."""

    def __init__(self, slices: Slices, members: MemberFeed) -> None:
        self._slices = slices
        self._members = members
        self._groups: list[GroupRow] = []
        self._commits: list[CommitRow] = []
        self._groups_gone: list[str] = []
        self._commits_gone: list[tuple[str, str, int]] = []
        self._known_groups: set[str] = set()
        self._known_commits: set[CommitKey] = set()

    def __len__(self) -> int:
        return len(self._known_groups) + len(self._known_commits)

    async def take(
        self, shard: GroupShard, groups: Iterable[str], commits: Iterable[CommitKey]
    ) -> None:
        """Add the current rows of these, up to the limit and a few more."""
        for group_id in groups:
            if len(self) > MAX_CHANGES:
                return
            self._take_group(group_id, _group_row(shard, group_id))
            await self._members.take(shard, group_id, self._slices)
            await self._slices.breathe()
        for key in commits:
            if len(self) > MAX_CHANGES:
                return
            self._take_commit(key, _commit_row(shard, key))
            group_id = key[0]
            if group_id not in self._known_groups and shard.group(group_id) is None:
                # A group without members comes and goes with its offsets.
                self._take_group(group_id, _group_row(shard, group_id))
            await self._slices.breathe()

    async def lose(self, groups: Iterable[str], commits: Iterable[CommitKey]) -> None:
        """Mark these as gone, except those that have come back with another shard."""
        for group_id in groups:
            if len(self) > MAX_CHANGES:
                return
            if group_id not in self._known_groups:
                self._members.lose(group_id)
            self._take_group(group_id, None)
            await self._slices.breathe()
        for key in commits:
            if len(self) > MAX_CHANGES:
                return
            self._take_commit(key, None)
            await self._slices.breathe()

    def changes(self) -> GroupChanges:
        return GroupChanges(
            groups=tuple(self._groups),
            commits=tuple(self._commits),
            groups_gone=tuple(self._groups_gone),
            commits_gone=tuple(self._commits_gone),
            members=self._members.changes(),
        )

    def _take_group(self, group_id: str, row: GroupRow | None) -> None:
        if group_id in self._known_groups:
            return
        self._known_groups.add(group_id)
        if row is None:
            self._groups_gone.append(group_id)
        else:
            self._groups.append(row)

    def _take_commit(self, key: CommitKey, row: CommitRow | None) -> None:
        if key in self._known_commits:
            return
        self._known_commits.add(key)
        if row is None:
            group_id, place = key
            self._commits_gone.append((group_id, *place))
        else:
            self._commits.append(row)


class _Bounded:
    """The first `MAX_TOLD` elements, and whether there were more."""

    def __init__(self, elements: Iterator[GroupRow] | Iterator[CommitRow]) -> None:
        self._elements = elements
        self.is_cut = False

    def __iter__(self) -> Iterator[object]:
        yield from islice(self._elements, MAX_TOLD)
        self.is_cut = next(self._elements, None) is not None


def _told(shards: list[GroupShard], members: Iterator[str], *, is_cut: bool) -> Iterator[str]:
    groups, commits = _Bounded(_all_groups(shards)), _Bounded(_all_commits(shards))
    yield from array("groups", groups)
    yield ", "
    yield from array("commits", commits)
    yield ", "
    yield from members
    yield f', "is_cut": {json.dumps(is_cut or groups.is_cut or commits.is_cut)}'


def _group_ids(shard: GroupShard) -> Iterator[str]:
    """Yield all groups that a shard has now, even if the caller takes them slowly."""
    with_offsets = tuple(shard.offsets.groups())
    for group in shard.groups():
        yield group.id if isinstance(group, ConsumerGroup) else group.group_id
    yield from (group_id for group_id in with_offsets if shard.group(group_id) is None)


def _commit_keys(shard: GroupShard) -> Iterator[CommitKey]:
    for group_id in tuple(shard.offsets.groups()):
        for place in tuple(shard.offsets.of(group_id)):
            yield group_id, place


def _all_groups(shards: Iterable[GroupShard]) -> Iterator[GroupRow]:
    for shard in shards:
        for group_id in _group_ids(shard):
            row = _group_row(shard, group_id)
            if row is not None:
                yield row


def _all_commits(shards: Iterable[GroupShard]) -> Iterator[CommitRow]:
    for shard in shards:
        for key in _commit_keys(shard):
            row = _commit_row(shard, key)
            if row is not None:
                yield row


def _group_row(shard: GroupShard, group_id: str) -> GroupRow | None:
    """Return the row of a group; None if the group does not exist."""
    group = shard.group(group_id)
    if group is None:
        return (group_id, CLASSIC, EMPTY, 0, 0, 0) if group_id in shard.offsets else None
    return (
        group_id,
        CONSUMER if isinstance(group, ConsumerGroup) else CLASSIC,
        group.state.value,
        number_of(group),
        len(group.members),
        shard.facts.rebalances.get(group_id, 0),
    )


def _commit_row(shard: GroupShard, key: CommitKey) -> CommitRow | None:
    group_id, place = key
    committed = shard.offsets.of(group_id).get(place)
    if committed is None:
        return None
    return (group_id, *place, committed.offset, committed.leader_epoch, committed.commit_ms)
