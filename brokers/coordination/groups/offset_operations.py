"""Turns commits and deletions of offsets, and deletions of groups, into operations of a shard.

Commits share their group: none of them depends on another, so that those of many members go into
one round. The group decides on a commit; this module does not know which topics exist.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from brokers.coordination.groups import classic_expiry
from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.classic import ClassicGroup, is_subscribed
from brokers.coordination.groups.classic_sync import check_commit, session_of
from brokers.coordination.groups.modern import ConsumerGroup, ConsumerMember
from brokers.coordination.groups.offset_expiry import (
    forgotten,
    group_gone,
    lone_group_gone,
    most_forgotten,
    timers_gone,
)
from brokers.coordination.groups.offsets import Place
from brokers.coordination.groups.records import committed_record
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.values import Committed
from brokers.coordination.shard import Claim, Operation, Outcome, SetTimer, Ticket, Timer
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from brokers.protocol.schema import Message

# The first version of OffsetCommit whose clients know the errors of the consumer protocol.
_KNOWS_MEMBER_EPOCHS: Final = 9


class Committing(NamedTuple):
    """One commit: its member and offsets; `answer` is the response if all of it is allowed."""

    group_id: str
    generation: int  # or the member's epoch; below 0 without a member
    member_id: str
    instance_id: str | None
    version: int
    committed: Mapping[Place, Committed]
    topic_ids: Mapping[str, bytes]  # of these places
    answer: Message


def commit(committing: Committing) -> Operation[GroupShard]:
    def run(shard: GroupShard, _now_ms: int, _ticket: Ticket) -> Outcome[GroupShard]:
        group, group_id = shard.group(committing.group_id), committing.group_id
        timers: tuple[Timer, ...] = ()
        if isinstance(group, ConsumerGroup):
            _check_member(group, committing)
        elif group is None:
            _check_nobody(committing)
        else:
            refused = check_commit(
                group,
                generation=committing.generation,
                member_id=committing.member_id,
                instance_id=committing.instance_id,
            )
            if refused is not None:
                raise refused
            if committing.member_id in group.members:
                timers = (session_of(group, committing.member_id),)
        records = [
            committed_record(group_id, topic, index, committed)
            for (topic, index), committed in committing.committed.items()
        ]
        return Outcome(records=tuple(records), timers=timers, response=committing.answer)

    def heard(shard: GroupShard) -> SetTimer | None:
        group, member_id = shard.group(committing.group_id), committing.member_id
        if not isinstance(group, ClassicGroup) or member_id not in group.members:
            return None
        is_member = committing.generation == group.generation
        return session_of(group, member_id) if is_member else None

    return Operation(
        name="OffsetCommit",
        subject=committing.group_id,
        claim=Claim.SHARED,
        run=run,
        heard=heard,
    )


def delete_group(group_id: str, answer: Message) -> Operation[GroupShard]:
    """Delete a group without members, with all its committed offsets.

    Offsets go first, as many at a time as a batch takes, and the group itself with the last of
    them: a crash leaves a group without members, which can be deleted again.
    """

    def run(shard: GroupShard, _now_ms: int, _ticket: Ticket) -> Outcome[GroupShard]:
        group, places = shard.group(group_id), shard.offsets.of(group_id)
        if group is None:
            if group_id not in shard.offsets:
                raise not_found(group_id)
        elif isinstance(group, ConsumerGroup):
            if group.members:
                raise KafkaError(
                    ErrorCode.NON_EMPTY_GROUP,
                    f"group {group_id!r} has {len(group.members)} members",
                )
        elif (refused := classic_expiry.check_delete(group)) is not None:
            raise refused
        most = most_forgotten(group_id)
        records = forgotten(group_id, islice(places, most))
        if len(places) > most:
            return Outcome(records=records, then=operation)
        if group is None:
            records += lone_group_gone(shard, group_id)
            return Outcome(records=records, response=answer)
        return Outcome(
            records=records + group_gone(group),
            soft=(GroupBecame(group_id, None),),
            timers=timers_gone(group),
            response=answer,
        )

    operation = Operation(name="DeleteGroups", subject=group_id, claim=Claim.EXCLUSIVE, run=run)
    return operation


def delete_offsets(
    group_id: str, wanted: Mapping[str, Sequence[int]], unknown: frozenset[Place]
) -> Operation[GroupShard]:
    """Delete offsets on topics without subscribers; `unknown`: partitions that do not exist."""

    def run(shard: GroupShard, _now_ms: int, _ticket: Ticket) -> Outcome[GroupShard]:
        group, places = shard.group(group_id), shard.offsets.of(group_id)
        if group is None and group_id not in shard.offsets:
            raise not_found(group_id)
        if isinstance(group, ClassicGroup):
            refused = classic_expiry.check_offset_delete(group)
            if refused is not None:
                raise refused
        gone: list[Place] = []
        topics = []
        for topic, indexes in wanted.items():
            is_read = _is_read(group, topic)
            parts = []
            for index in indexes:
                error = ErrorCode.NONE
                if (topic, index) in unknown:
                    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif is_read:
                    error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                elif (topic, index) in places:
                    gone.append((topic, index))
                parts.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
            topics.append(OffsetDeleteResponseTopic(name=topic, partitions=parts))
        return Outcome(
            records=forgotten(group_id, dict.fromkeys(gone)),
            response=OffsetDeleteResponse(topics=topics),
        )

    return Operation(name="OffsetDelete", subject=group_id, claim=Claim.EXCLUSIVE, run=run)


def not_found(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")


def _is_read(group: ClassicGroup | ConsumerGroup | None, topic: str) -> bool:
    if isinstance(group, ConsumerGroup):
        return topic in group.subscribed_names()
    return group is not None and is_subscribed(group, topic)


def _check_nobody(committing: Committing) -> None:
    """Check a commit to a group without members, which may not exist."""
    if committing.generation < 0:
        return
    if committing.version >= _KNOWS_MEMBER_EPOCHS:
        raise not_found(committing.group_id)
    raise KafkaError(
        ErrorCode.ILLEGAL_GENERATION,
        f"group {committing.group_id!r} has no members, and so no generation "
        f"{committing.generation}",
    )


def _check_member(group: ConsumerGroup, committing: Committing) -> None:
    """Check by its epoch whether this member of a consumer group may commit."""
    epoch = committing.generation
    if epoch < 0 and not group.members:
        return
    member = group.members.get(committing.member_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"group {group.id!r} has no member {committing.member_id!r}",
        )
    if member.classic is None and committing.version < _KNOWS_MEMBER_EPOCHS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"a member of the consumer protocol commits by version {_KNOWS_MEMBER_EPOCHS} or "
            f"later, not {committing.version}",
        )
    if epoch == member.epoch or (0 <= epoch < member.epoch and _had_all(member, committing)):
        return
    stale = ErrorCode.STALE_MEMBER_EPOCH
    raise KafkaError(
        stale if member.classic is None else ErrorCode.ILLEGAL_GENERATION,
        f"member {member.id!r} of {group.id!r} commits in epoch {epoch}, it is {member.epoch}",
    )


def _had_all(member: ConsumerMember, committing: Committing) -> bool:
    """Tell whether all partitions were the member's in the epoch of the commit, and still are.

    Its epoch may advance while its commit is on the way; it may commit what it has kept.
    """
    for topic, index in committing.committed:
        topic_id = committing.topic_ids[topic]
        given = member.assigned.get(topic_id, {}).get(index)
        if given is None:
            given = member.revoking.get(topic_id, {}).get(index)
        if given is None or given > committing.generation:
            return False
    return True
