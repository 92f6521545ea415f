"""OffsetFetch: returns committed offsets of groups, for named partitions or for all.

Returns only safe commits. Without a commit the offset is -1 without an error, also for a group that
never existed. Commits on a deleted topic are left out, even if a new topic of the same name exists.
Before version 8 a request is about one group.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.offsets import Place
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.values import Committed
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import long_id_error
from brokers.server.served_api import Served

SERVED: Final = Served(key=9)

# Groups of one request; an administrator's tool requests the groups of one page.
MAX_GROUPS: Final = 1_000
# Partitions of one response, which is built in one turn of the loop; one group is always whole.
MAX_PLACES: Final = 50_000
_GROUPS_SINCE: Final = 8
_IDS_SINCE: Final = 10
_TOP_ERROR_SINCE: Final = 2

Offsets: TypeAlias = Mapping[Place, Committed]
_NOTHING: Final = Committed(-1, -1, "", -1)


def handle(context: Context, call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if call.version >= _GROUPS_SINCE:
        left = MAX_PLACES if len(request.groups) <= MAX_GROUPS else 0
        groups = []
        for group in request.groups:
            groups.append(_group(context, call.version, group, is_excess=left <= 0))
            left -= 1 + sum(len(topic.partitions) for topic in groups[-1].topics)
        return OffsetFetchResponse(groups=groups)
    error, offsets = _offsets(context, request.group_id, None, -1)
    if request.topics is None:
        wanted: Iterable[tuple[str, Iterable[int]]] = _by_topic(context, offsets).items()
    else:
        wanted = ((topic.name, topic.partition_indexes) for topic in request.topics)
    topics = [
        OffsetFetchResponseTopic(
            name=name,
            partitions=[
                _old_part(index, _committed(context, offsets, (name, index)), error)
                for index in indexes
            ],
        )
        for name, indexes in wanted
    ]
    top = error if call.version >= _TOP_ERROR_SINCE else ErrorCode.NONE
    return OffsetFetchResponse(topics=topics, error_code=top)


def _old_part(index: int, committed: Committed, error: ErrorCode) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=error,
    )


def _group(
    context: Context, version: int, asked: OffsetFetchRequestGroup, *, is_excess: bool
) -> OffsetFetchResponseGroup:
    if is_excess:
        return OffsetFetchResponseGroup(
            group_id=asked.group_id, error_code=ErrorCode.INVALID_REQUEST
        )
    error, offsets = _offsets(context, asked.group_id, asked.member_id, asked.member_epoch)
    if error is not ErrorCode.NONE:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error)
    if asked.topics is None:
        topics = _all(context, version, offsets)
    else:
        topics = [_named(context, version, topic, offsets) for topic in asked.topics]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _all(context: Context, version: int, offsets: Offsets) -> list[OffsetFetchResponseTopics]:
    found = []
    for name, indexes in _by_topic(context, offsets).items():
        topic = context.image.topics.get(name)
        if version >= _IDS_SINCE and topic is None:
            continue  # it has no id, which the response needs
        parts = [_part(index, offsets[name, index]) for index in indexes]
        found.append(
            OffsetFetchResponseTopics(
                name=name, topic_id=topic.id if topic else bytes(16), partitions=parts
            )
        )
    return found


def _named(
    context: Context, version: int, asked: OffsetFetchRequestTopics, offsets: Offsets
) -> OffsetFetchResponseTopics:
    name: str | None = asked.name
    if version >= _IDS_SINCE:
        name = context.image.names.get(asked.topic_id)
    parts = []
    for index in asked.partition_indexes:
        if name is None:
            part = _part(index, _NOTHING)
            part.error_code = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            part = _part(index, _committed(context, offsets, (name, index)))
        parts.append(part)
    return OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=parts)


def _part(index: int, committed: Committed) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _by_topic(context: Context, offsets: Offsets) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place in sorted(offsets):
        if _committed(context, offsets, place) is not _NOTHING:
            found.setdefault(place[0], []).append(place[1])
    return found


def _committed(context: Context, offsets: Offsets, place: Place) -> Committed:
    """Return the committed offset, unless the topic it was committed on is deleted.

    An unknown id is no reason: a log copied from another cluster has the ids of that one.
    """
    committed = offsets.get(place, _NOTHING)
    return _NOTHING if committed.topic_id in context.image.deleted else committed


def _offsets(
    context: Context, group_id: str, member_id: str | None, epoch: int
) -> tuple[ErrorCode, Offsets]:
    """Return a group's committed offsets, or the error for this client."""

    def query(shard: GroupShard) -> Offsets:
        group = shard.group(group_id)
        # Administrators, and clients before version 9, send no member.
        is_named = member_id is not None or epoch >= 0
        if is_named and isinstance(group, ConsumerGroup):
            _check_member(group, member_id, epoch)
        return shard.offsets.of(group_id)

    wrong = long_id_error(group_id)
    if wrong is not None:
        return wrong.code, {}
    try:
        return ErrorCode.NONE, context.groups.look(group_id, query)
    except KafkaError as error:
        return error.code, {}


def _check_member(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    member = group.members.get(member_id or "")
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.id!r} has no member {member_id!r}"
        )
    if member.epoch != epoch:
        is_classic = member.classic is not None
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH,
            f"member {member_id!r} is in epoch {member.epoch}, not in {epoch}",
        )
