"""Adds members to the feed: the members of each group, and the partitions that each owns.

Knows no watchers. A member is checked again when its group has changed, and its assignment is
decoded only if its bytes have changed. Members of a classic group may write any bytes as their
assignments: for those that are too long or unreadable, no partitions are shown.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups.classic import CONSUMER_TYPE, ClassicGroup
from brokers.coordination.groups.modern import ConsumerGroup, ConsumerMember
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.subscription import decode_assignment
from brokers.server.json_pieces import array
from brokers.slices import Slices

# The most members in the feed: some 40 MB with their partitions, and as much text.
MAX_MEMBERS: Final = 50_000
# Partitions that all of them own, each some 40 bytes of memory.
MAX_OWNED: Final = 500_000
# Of one classic assignment, which is decoded in one piece: 8,000 partitions, in less than 1 ms.
MAX_ASSIGNMENT_BYTES: Final = 32 * 1024
# Partitions of one member, which are sorted and written in one piece.
MAX_OWNED_BY_ONE: Final = 8_000
# Partitions that weigh as much as a row where steps are counted.
OWNED_OF_A_ROW: Final = 10

Owned: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
# group, member id, instance id, client id, host, what it owns
MemberRow: TypeAlias = tuple[str, str, str | None, str, str, Owned]
MEMBER_COLUMNS: Final = ("group", "member_id", "instance_id", "client_id", "host", "owned")
# The sources of an assignment: bytes of a group's leader, or partitions by topic id.
Source: TypeAlias = object
MemberKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberChanges:
    """The changes in one sample."""

    members: tuple[MemberRow, ...] = ()
    gone_members: tuple[MemberKey, ...] = ()
    owned: int = 0  # partitions in the rows

    def __len__(self) -> int:
        """Count rows, weighted with their partitions."""
        return len(self.members) + len(self.gone_members) + self.owned // OWNED_OF_A_ROW

    def json(self) -> Iterator[str]:
        """Write the changes as members of a JSON object."""
        yield from _rows(self.members)
        yield ", "
        yield from array("gone_members", self.gone_members)


@dataclass(frozen=True, slots=True)
class _Known:
    source: Source
    row: MemberRow
    owned: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """A member as its group has it now."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    source: Source


class MemberFeed:
    """Belongs to the event loop. One sample at a time."""

    def __init__(self) -> None:
        self.is_cut = False  # since the last `clear` there were more than the limit
        self._groups: dict[str, dict[str, _Known]] = {}
        self._number = 0
        self._owned = 0
        self._changed: dict[MemberKey, MemberRow] = {}
        self._changed_owned = 0
        self._gone: dict[MemberKey, None] = {}

    def clear(self) -> None:
        """Forget all members."""
        self.is_cut = False
        self._groups = {}
        self._number = self._owned = 0
        self._changed, self._gone, self._changed_owned = {}, {}, 0

    async def take(self, shard: GroupShard, group_id: str, slices: Slices) -> None:
        """Look at the members of a group again."""
        group = shard.group(group_id)
        if group is None or not group.members:
            self.lose(group_id)
            return
        before = self._groups.pop(group_id, {})
        after: dict[str, _Known] = {}
        for known in before.values():
            self._count(known, -1)
        for seen in _members(group):
            row = self._row(group_id, seen, before.get(seen.id), shard.image)
            known = _Known(seen.source, row, _number_of(row[5]))
            if self._number >= MAX_MEMBERS or self._owned + known.owned > MAX_OWNED:
                self.is_cut = True
                continue
            self._count(known, 1)
            after[seen.id] = known
            if seen.id not in before or before[seen.id].row != row:
                self._changed[group_id, seen.id] = row
                self._changed_owned += known.owned
                self._gone.pop((group_id, seen.id), None)
            await slices.breathe()
        self._groups[group_id] = after
        self._leave(group_id, [member for member in before if member not in after])

    def lose(self, group_id: str) -> None:
        """The group has no members here."""
        before = self._groups.pop(group_id, {})
        for known in before.values():
            self._count(known, -1)
        self._leave(group_id, before)

    def changes(self) -> MemberChanges:
        """Return what has changed since the last call."""
        changed, gone, owned = self._changed, self._gone, self._changed_owned
        self._changed, self._gone, self._changed_owned = {}, {}, 0
        return MemberChanges(members=tuple(changed.values()), gone_members=tuple(gone), owned=owned)

    def snapshot(self) -> Iterator[str]:
        """Yield all members as they are now, even if the caller takes them slowly."""
        # Members of a group are replaced as a whole, and never changed.
        groups = list(self._groups.values())
        return _rows(known.row for members in groups for known in members.values())

    def _count(self, known: _Known, sign: int) -> None:
        self._number += sign
        self._owned += sign * known.owned

    def _leave(self, group_id: str, member_ids: Iterable[str]) -> None:
        for member_id in member_ids:
            self._changed.pop((group_id, member_id), None)
            self._gone[group_id, member_id] = None

    def _row(
        self, group_id: str, seen: _Seen, known: _Known | None, image: ClusterImage
    ) -> MemberRow:
        if known is not None and known.source == seen.source:
            owned = known.row[5]
        else:
            owned = self._owned_by(seen.source, image)
        return (group_id, seen.id, seen.instance_id, seen.client_id, seen.host, owned)

    def _owned_by(self, source: Source, image: ClusterImage) -> Owned:
        if isinstance(source, bytes):
            if len(source) > MAX_ASSIGNMENT_BYTES:
                self.is_cut = True
                return ()
            decoded = decode_assignment(source) if source else None
            named = {} if decoded is None else decoded.partitions
            return tuple((topic, tuple(sorted(indexes))) for topic, indexes in named.items())
        assert isinstance(source, tuple), f"{source!r} is not an assignment"
        owned = []
        left = MAX_OWNED_BY_ONE
        for topic_id, indexes in source:
            topic = image.names.get(topic_id)  # a deleted topic has no name any more
            if topic is None:
                continue
            if len(indexes) > left:
                self.is_cut = True
                break
            left -= len(indexes)
            owned.append((topic, tuple(sorted(indexes))))
        return tuple(owned)


def _rows(rows: Iterable[MemberRow]) -> Iterator[str]:
    # One at a time, since a row may be long.
    return array("members", rows, at_once=1)


def _members(group: ClassicGroup | ConsumerGroup) -> Iterator[_Seen]:
    """The members of a group as it is now: groups are values, and never change themselves."""
    if isinstance(group, ConsumerGroup):
        for modern in group.members.values():
            yield _seen(modern)
        return
    is_read = group.protocol_type == CONSUMER_TYPE
    for member in group.members.values():
        yield _Seen(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            group.assignments.get(member.member_id, b"") if is_read else b"",
        )


def _seen(member: ConsumerMember) -> _Seen:
    source = tuple(member.assigned.items())
    return _Seen(member.id, member.instance_id, member.who.client_id, member.who.host, source)


def _number_of(owned: Owned) -> int:
    return sum(len(indexes) for _topic, indexes in owned)
