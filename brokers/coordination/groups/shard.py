"""One partition's groups and offsets, of both protocols: the state of a coordinator.

Changed by replay, and by operations, which replace the whole value of a group. The operations
themselves are in other modules; this one has their lookups, and starts those without a client:
after a timer, a change of the cluster, or with age.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

from brokers.cluster.image import ClusterImage, DeletedTopic
from brokers.coordination.groups import classic, classic_expiry, modern_desk, modern_leave
from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.classic_records import restored
from brokers.coordination.groups.facts import Facts, Tally
from brokers.coordination.groups.modern import ConsumerGroup, MemberState
from brokers.coordination.groups.modern_changes import Change, Draft, GroupEpoch
from brokers.coordination.groups.modern_records import change_of, write
from brokers.coordination.groups.offset_expiry import (
    expire_offsets,
    forget_places,
    most_forgotten,
)
from brokers.coordination.groups.offsets import Offsets
from brokers.coordination.groups.record_messages import GroupMetadataValue
from brokers.coordination.groups.records import (
    GroupKey,
    OffsetKey,
    committed_of,
    key_of,
    value_of,
)
from brokers.coordination.groups.regex_operations import resolved
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.shard import (
    Claim,
    Operation,
    Outcome,
    Record,
    Reply,
    SetTimer,
    Soft,
    Ticket,
    Timer,
    TimerKey,
)
from brokers.protocol.errors import ErrorCode, KafkaError

Group: TypeAlias = ClassicGroup | ConsumerGroup

# Of the cluster's last change, which every shard requests.
_CHANGES_KEPT: Final = 2


class GroupShard:
    """See `brokers.coordination.shard.Shard`."""

    def __init__(
        self,
        image: ClusterImage,
        settings: GroupSettings,
        new_id: Callable[[], str],
        *,
        tally: Tally | None = None,
    ) -> None:
        self.image = image
        self._topics_version = image.version  # when a topic was last created, as far as known
        self.settings = settings
        self.new_id = new_id
        self.offsets = Offsets()
        self.facts = Facts()
        self._tally = tally or Tally()
        self._groups: dict[str, Group] = {}
        # Consumer groups whose records are being replayed; completed when one is first read.
        self._drafts: dict[str, Draft] = {}

    # -- for operations --------------------------------------------------------------------------

    def group(self, group_id: str) -> Group | None:
        """Return a group as it is committed; None also for one that has only offsets."""
        draft = self._drafts.pop(group_id, None)
        if draft is not None:
            self._groups[group_id] = draft.group()
        return self._groups.get(group_id)

    def groups(self) -> Iterator[Group]:
        """Yield all groups that have, or had, members."""
        for group_id in tuple(self._drafts):
            self.group(group_id)
        yield from tuple(self._groups.values())

    def place(self) -> modern_desk.Place:
        """Return the context for operations of consumer groups."""
        return modern_desk.Place(
            settings=self.settings,
            image=self.image,
            topics_version=self._topics_version,
            write=write,
            new_id=self.new_id,
            resolved=resolved,
        )

    # -- for the runtime -------------------------------------------------------------------------

    def replay(self, record: Record, _timestamp: int) -> None:
        """Apply a record; KafkaError for one that cannot be read, or contradicts the others."""
        key = key_of(record)
        if key is None:
            return
        if isinstance(key, OffsetKey):
            place, committed = (key.topic, key.partition), committed_of(record)
            if committed is None:
                self.offsets.remove(key.group_id, place)
                self.facts.offset_gone(key.group_id, place)
            else:
                self.offsets.put(key.group_id, place, committed)
                self.facts.committed(key.group_id, place)
        elif isinstance(key, GroupKey):
            self._replay_classic(key.group_id, value_of(record, GroupMetadataValue))
        else:
            change = change_of(key, record)
            if change is not None:
                self._replay_modern(key.group_id, change, is_gone=record.value is None)

    def apply(self, soft: Soft) -> None:
        assert isinstance(soft, GroupBecame), f"{soft!r} is not a change of a group"
        self._drafts.pop(soft.group_id, None)
        if soft.group is None:
            self._groups.pop(soft.group_id, None)
            self.facts.group_gone(soft.group_id)
        else:
            group = soft.group
            self.facts.group_became(soft.group_id, self._groups.get(soft.group_id), group)
            is_old = soft.image is not None and soft.image is not self.image
            if is_old and isinstance(group, ConsumerGroup):
                group = replace(group, is_metadata_stale=True)
            self._groups[soft.group_id] = group

    def loaded(self, now_ms: int) -> Iterator[Outcome["GroupShard"]]:
        """Yield one outcome per group: completing the replay of one takes time, too."""
        self.facts.count(self._tally)
        for group_id in tuple(dict.fromkeys((*self._groups, *self._drafts))):
            group = self.group(group_id)
            if isinstance(group, ConsumerGroup):
                yield Outcome(timers=tuple(_modern_timers(group, self.settings)))
            elif group is not None:
                yield classic_expiry.loaded(group, settings=self.settings, now_ms=now_ms)

    def timer_fired(self, key: TimerKey) -> Operation["GroupShard"]:
        return Operation(
            name=f"the {key.kind} timer of a group",
            subject=key.subject,
            claim=Claim.EXCLUSIVE,
            run=lambda shard, now_ms, _ticket: shard.expired(key, now_ms),
        )

    def expired(self, key: TimerKey, now_ms: int) -> Outcome["GroupShard"]:
        """Apply a timer that has fired to its group."""
        group = self.group(key.subject)
        if isinstance(group, ConsumerGroup):
            return modern_leave.expire(group, key, self.place(), now_ms)
        if key.kind in modern_desk.MODERN_TIMERS:
            return Outcome()  # of the consumer group that it was
        return classic_expiry.expire(group, key, settings=self.settings, now_ms=now_ms)

    def image_changed(
        self, before: ClusterImage, after: ClusterImage, now_ms: int
    ) -> Iterator[Operation["GroupShard"] | None]:
        # At once: waiting operations must see the newest image.
        self.image = after
        return self._touched_by(before, after, now_ms)

    def _touched_by(
        self, before: ClusterImage, after: ClusterImage, now_ms: int
    ) -> Iterator[Operation["GroupShard"] | None]:
        deleted = _deletions(before, after)
        if deleted:
            seen = frozenset(topic.name for topic in deleted if topic.id in before.names)
            for group_id, places in self.offsets.on_topics(topic.name for topic in deleted):
                most = most_forgotten(group_id)
                for start in range(0, len(places), most):
                    yield forget_places(group_id, places[start : start + most], seen, now_ms)
                if not places:
                    yield None
        touched, has_new = _topic_changes(before, after)
        if has_new:
            self._topics_version = after.version
        if touched:
            for group in self.groups():
                if isinstance(group, ConsumerGroup) and not touched.isdisjoint(
                    group.subscribed_names()
                ):
                    yield _stale(group.id)
                else:
                    yield None

    def chores(self, _now_ms: int) -> Iterator[Operation["GroupShard"]]:
        """Yield operations that expire offsets of every group, and delete groups without any."""
        ids = (
            group.group_id if isinstance(group, ClassicGroup) else group.id
            for group in self.groups()
        )
        for group_id in dict.fromkeys((*self.offsets.groups(), *ids)):
            yield expire_offsets(group_id)

    def unloaded(self) -> Iterable[Reply]:
        for group in self.groups():
            if isinstance(group, ClassicGroup):
                yield from classic.unloaded(group)

    # -- replay ----------------------------------------------------------------------------------

    def _replay_classic(self, group_id: str, value: GroupMetadataValue | None) -> None:
        self.facts.group_changed(group_id)
        if value is not None:
            self._drafts.pop(group_id, None)
            self._groups[group_id] = restored(group_id, value)
        else:
            self.offsets.forget(group_id)
            if isinstance(self._groups.get(group_id), ClassicGroup):
                del self._groups[group_id]

    def _replay_modern(self, group_id: str, change: Change, *, is_gone: bool) -> None:
        self.facts.group_changed(group_id)
        if isinstance(change, GroupEpoch) and is_gone:
            self.offsets.forget(group_id)
        draft = self._drafts.get(group_id)
        if draft is None:
            known = self._groups.get(group_id)
            if isinstance(known, ClassicGroup):
                if is_gone:
                    return  # of the consumer group that it was
                if known.members:
                    raise KafkaError(
                        ErrorCode.CORRUPT_MESSAGE,
                        f"a record makes a consumer group of {group_id!r}, which has "
                        f"{len(known.members)} members of the classic protocol",
                    )
                known = None
            if known is None and is_gone:
                return  # compaction may have removed the value
            # It is unknown whether its topics have changed since its last record.
            draft = Draft(known or ConsumerGroup(id=group_id, is_metadata_stale=True))
        draft.take(change)
        if isinstance(change, GroupEpoch) and is_gone:
            self._drafts.pop(group_id, None)
            self._groups.pop(group_id, None)
        else:
            self._drafts[group_id] = draft


def _modern_timers(group: ConsumerGroup, settings: GroupSettings) -> Iterator[Timer]:
    """Return full timers for the members of a group that was loaded."""
    for member in group.members.values():
        side = member.classic
        session_ms = (
            settings.consumer_session_timeout_ms if side is None else side.session_timeout_ms
        )
        yield SetTimer(TimerKey(modern_desk.SESSION, group.id, member.id), session_ms)
        # A classic member learns of it by its next heartbeat, and its time begins then.
        if side is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            rebalance_ms = max(member.rebalance_timeout_ms, 0)
            yield SetTimer(TimerKey(modern_desk.REBALANCE, group.id, member.id), rebalance_ms)


def _stale(group_id: str) -> Operation[GroupShard]:
    def run(shard: GroupShard, _now_ms: int, _ticket: Ticket) -> Outcome[GroupShard]:
        group = shard.group(group_id)
        return modern_desk.as_stale(group) if isinstance(group, ConsumerGroup) else Outcome()

    return Operation(
        name="a change of a group's topics", subject=group_id, claim=Claim.EXCLUSIVE, run=run
    )


def _deletions(before: ClusterImage, after: ClusterImage) -> tuple[DeletedTopic, ...]:
    """Return the topics that are newly named as deleted in the image after."""
    if before.deleted is after.deleted:
        return ()
    return _compared_deletions(_Pair(before, after))


def _topic_changes(before: ClusterImage, after: ClusterImage) -> tuple[frozenset[str], bool]:
    """Return the names of changed or missing topics, and whether some are new."""
    if before.topics is after.topics:
        return frozenset(), False
    return _compared(_Pair(before, after))


class _Pair:
    """Two images, as a key: images are immutable, so they are compared by identity."""

    __slots__ = ("after", "before")

    def __init__(self, before: ClusterImage, after: ClusterImage) -> None:
        self.before = before
        self.after = after

    def __hash__(self) -> int:
        return hash((id(self.before), id(self.after)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Pair) and other.before is self.before and other.after is self.after
        )


@lru_cache(maxsize=_CHANGES_KEPT)
def _compared_deletions(pair: _Pair) -> tuple[DeletedTopic, ...]:
    known = pair.before.deleted
    return tuple(topic for topic in pair.after.deleted.values() if topic.id not in known)


@lru_cache(maxsize=_CHANGES_KEPT)
def _compared(pair: _Pair) -> tuple[frozenset[str], bool]:
    old, new = pair.before.topics, pair.after.topics
    missing = {name for name in old if name not in new}
    touched = {name for name, topic in new.items() if old.get(name) is not topic}
    has_new = any(
        (former := old.get(name)) is None or former.id != new[name].id for name in touched
    )
    return frozenset(touched | missing), has_new
