"""Deletes offsets without a client's request: those of deleted topics, and expired ones.

A topic counts as deleted only if the image names its id as deleted (ADR 0016): an image that lacks
a topic may come from an old copy of the store, while the topic's records are intact. The search for
expired offsets deletes each group that has neither offsets nor members left.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from brokers.coordination.groups import classic_expiry
from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.classic import ClassicGroup, subscribed_topics
from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.modern_changes import (
    GroupEpoch,
    OldMetadata,
    RegexResolved,
    TargetEpoch,
)
from brokers.coordination.groups.modern_records import write
from brokers.coordination.groups.offsets import Place
from brokers.coordination.groups.records import GroupKey, OffsetKey, tombstone
from brokers.coordination.groups.values import NO_EXPIRY, NO_TOPIC_ID, Committed
from brokers.coordination.shard import CancelTimer, Claim, Operation, Outcome, Record, Ticket

if TYPE_CHECKING:
    from brokers.coordination.groups.shard import Group, GroupShard


# Of one operation, whose records have to fit into one batch. The rest is for the next one.
MAX_FORGOTTEN: Final = 500
# Their keys repeat the group's name, which may be long: half of a batch's default limit.
_FORGOTTEN_BYTES: Final = 512 * 1024
# The longest name of a topic, and the bytes of a record beside its two names.
_PLACE_BYTES: Final = 249 + 64


def expire_offsets(group_id: str) -> "Operation[GroupShard]":
    """Delete expired offsets of a group, and a group without offsets and members."""

    def run(shard: "GroupShard", now_ms: int, _ticket: Ticket) -> "Outcome[GroupShard]":
        places, group = shard.offsets.of(group_id), shard.group(group_id)
        old = _old(shard, group, places, now_ms)[: most_forgotten(group_id)]
        records = forgotten(group_id, old)
        if len(old) < len(places):
            return Outcome(records=records)
        if group is None:
            return Outcome(records=records + lone_group_gone(shard, group_id))
        if group.members or not is_idle(group):
            return Outcome(records=records)
        return Outcome(
            records=records + group_gone(group),
            soft=(GroupBecame(group_id, None),),
            timers=timers_gone(group),
        )

    return Operation(name="the expiry of offsets", subject=group_id, claim=Claim.EXCLUSIVE, run=run)


def forget_places(
    group_id: str, places: Sequence[Place], seen: Collection[str], deleted_ms: int
) -> "Operation[GroupShard]":
    """Delete the offsets that a group had on topics that were deleted.

    `seen` are the names of topics that existed in one image and are deleted in the next. An offset
    without a topic id is deleted with these only, unless it is newer than the deletion: then it may
    be on a topic that was created under the same name.
    """

    def run(shard: "GroupShard", _now_ms: int, _ticket: Ticket) -> "Outcome[GroupShard]":
        there, image = shard.offsets.of(group_id), shard.image
        gone = []
        for place in places:
            known = there.get(place)
            if known is None:
                continue
            if known.topic_id != NO_TOPIC_ID:
                is_gone = known.topic_id in image.deleted
            else:
                is_old = place[0] not in image.topics or known.commit_ms <= deleted_ms
                is_gone = is_old and place[0] in seen
            if is_gone:
                gone.append(place)
        return Outcome(records=forgotten(group_id, gone))

    return Operation(
        name="the deletion of topics", subject=group_id, claim=Claim.EXCLUSIVE, run=run
    )


def most_forgotten(group_id: str) -> int:
    """Return how many offsets of a group one operation may delete."""
    return max(1, min(MAX_FORGOTTEN, _FORGOTTEN_BYTES // (len(group_id.encode()) + _PLACE_BYTES)))


def forgotten(group_id: str, places: Iterable[Place]) -> tuple[Record, ...]:
    """Return the records that delete these offsets."""
    return tuple(tombstone(OffsetKey(group_id, topic, index)) for topic, index in places)


def group_gone(group: "Group") -> tuple[Record, ...]:
    """Return the records that delete a group without members, except its offsets."""
    if isinstance(group, ClassicGroup):
        return (tombstone(GroupKey(group.group_id)),)
    regexes = tuple(write(group.id, RegexResolved(regex, None)) for regex in group.regexes)
    old = (write(group.id, OldMetadata(is_there=False)),) if group.has_old_metadata else ()
    return (
        write(group.id, TargetEpoch(None)),
        *regexes,
        *old,
        write(group.id, GroupEpoch(None)),
    )


def lone_group_gone(shard: "GroupShard", group_id: str) -> tuple[Record, ...]:
    """Return the records that delete a group that never had members, except its offsets."""
    return (tombstone(GroupKey(group_id)),) if group_id in shard.offsets else ()


def is_idle(group: "Group") -> bool:
    """Tell whether a group without members has none on the way into it either."""
    return not isinstance(group, ClassicGroup) or (group.is_empty and not group.pending)


def timers_gone(group: "Group") -> tuple[CancelTimer, ...]:
    """Cancel the timers of a group without members."""
    if isinstance(group, ConsumerGroup):
        return ()
    return tuple(CancelTimer(key) for key in classic_expiry.timers_of(group))


def _old(
    shard: "GroupShard", group: "Group | None", places: Mapping[Place, Committed], now_ms: int
) -> list[Place]:
    """Return offsets unused for too long. Topics to which members subscribe are in use.

    Also those on deleted topics: their commits met the deletion, or came while no coordinator could
    process it.
    """
    deleted, retention_ms = shard.image.deleted, shard.settings.offsets_retention_ms
    used: Collection[str] = ()
    knows_topics = False
    if isinstance(group, ConsumerGroup):
        used = group.subscribed_names()
    elif group is not None:
        topics = subscribed_topics(group)
        used, knows_topics = topics or (), topics is not None
    found = []
    for place, committed in places.items():
        if committed.topic_id in deleted:
            found.append(place)
            continue
        since_ms: int | None = committed.commit_ms
        if isinstance(group, ClassicGroup):
            since_ms = classic_expiry.unused_since(
                group, committed.commit_ms, knows_topics=knows_topics
            )
        if place[0] in used or since_ms is None:
            continue
        # A commit's own retention time takes precedence.
        has_limit = committed.expire_ms != NO_EXPIRY
        limit_ms = committed.expire_ms if has_limit else since_ms + retention_ms
        if now_ms >= limit_ms:
            found.append(place)
    return found
