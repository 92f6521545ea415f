"""The rows of the APIs that keep, tell and delete how far groups have read."""

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from brokers.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from brokers.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tests.brokers.server.api_rows import Row, World, name_of
from tests.brokers.server.api_rows_group_steps import (
    COMMITTED,
    COMMITTED_EPOCH,
    FIRST_EPOCH,
    MEMBER,
    NOBODY,
    NOTE,
    beside,
    group_of,
    have_committed,
    have_consumer,
    have_stable,
    have_topic,
    member_of,
)

NO_TOPIC = b"\xee" * 16
# Versions of OffsetFetch.
_STABLE_SINCE, _GROUPS_SINCE = 7, 8
# A partition that the topic does not have, and of which nothing is committed.
NOWHERE = 7


# -- OffsetCommit ----------------------------------------------------------------------------------


async def _have_member_and_topic(world: World, version: int) -> None:
    await have_stable(world, version)
    await have_topic(world, version)


def _commit(world: World, version: int, *, is_known: bool = True) -> OffsetCommitRequest:
    """The group's member commits, on its topic or on one that is not there."""
    return _committing(
        world,
        version,
        group_id=group_of(world, version),
        member_id=member_of(world, version),
        is_known=is_known,
    )


def _commit_nowhere(world: World, version: int) -> OffsetCommitRequest:
    """Somebody commits who says to be a member of a group that is not there."""
    return _committing(world, version, group_id=NOBODY, member_id=MEMBER, is_known=True)


def _committing(
    world: World, version: int, *, group_id: str, member_id: str, is_known: bool
) -> OffsetCommitRequest:
    name = name_of(world, version)
    part = OffsetCommitRequestPartition(
        partition_index=0,
        committed_offset=COMMITTED,
        committed_leader_epoch=COMMITTED_EPOCH,
        committed_metadata=NOTE,
    )
    topic = OffsetCommitRequestTopic(
        name=name if is_known else NOBODY,
        topic_id=world.topic(name).id if is_known else NO_TOPIC,
        partitions=[part],
    )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=1,
        member_id=member_id,
        retention_time_ms=3_600_000,
        topics=[topic],
    )


def _committed(
    world: World, version: int, *, is_known: bool = True, error: ErrorCode = ErrorCode.NONE
) -> OffsetCommitResponse:
    name = name_of(world, version)
    topic = OffsetCommitResponseTopic(
        name=name if is_known else NOBODY,
        topic_id=world.topic(name).id if is_known else NO_TOPIC,
        partitions=[OffsetCommitResponsePartition(partition_index=0, error_code=error)],
    )
    return OffsetCommitResponse(topics=[topic])


# -- OffsetFetch -----------------------------------------------------------------------------------


def _fetch(world: World, version: int, *, is_all: bool = False) -> OffsetFetchRequest:
    """Asks as somebody who is no member, for a partition with a commit and one without."""
    indexes = [0, NOWHERE]
    if version < _GROUPS_SINCE:
        wanted = OffsetFetchRequestTopic(name=name_of(world, version), partition_indexes=indexes)
        return OffsetFetchRequest(
            group_id=group_of(world, version),
            topics=None if is_all else [wanted],
            require_stable=version >= _STABLE_SINCE,
        )
    topic = OffsetFetchRequestTopics(
        name=name_of(world, version),
        topic_id=world.topic(name_of(world, version)).id,
        partition_indexes=indexes,
    )
    group = OffsetFetchRequestGroup(
        group_id=group_of(world, version), topics=None if is_all else [topic]
    )
    return OffsetFetchRequest(groups=[group], require_stable=True)


def _fetched(world: World, version: int, *, is_all: bool = False) -> OffsetFetchResponse:
    name = name_of(world, version)
    known = _part(0, COMMITTED, COMMITTED_EPOCH, NOTE)
    parts = [known] if is_all else [known, _part(NOWHERE, -1, -1, "")]
    topic = OffsetFetchResponseTopics(name=name, topic_id=world.topic(name).id, partitions=parts)
    answer = _of_group(group_of(world, version), topic)
    answer.topics = [
        OffsetFetchResponseTopic(name=name, partitions=[_as_old(one) for one in parts])
    ]
    return answer


def _part(
    index: int, offset: int, epoch: int, note: str, error: ErrorCode = ErrorCode.NONE
) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        metadata=note,
        error_code=error,
    )


def _as_old(part: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    """The same, as it was told before an answer could have several groups."""
    return OffsetFetchResponsePartition(
        **{field.name: getattr(part, field.name) for field in OffsetFetchResponsePartition.FIELDS}
    )


def _of_group(group_id: str, *topics: OffsetFetchResponseTopics) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id=group_id, topics=list(topics))]
    )


async def _have_consumer(world: World, version: int) -> None:
    """A group of the consumer protocol, beside the one that has committed."""
    await have_consumer(world, beside(version))


def _fetch_as_member(world: World, version: int, *, late: int = 0) -> OffsetFetchRequest:
    """Asks as the member of a consumer group does, in its epoch or in another."""
    name = name_of(world, beside(version))
    topic = OffsetFetchRequestTopics(
        name=name, topic_id=world.topic(name).id, partition_indexes=[0]
    )
    group = OffsetFetchRequestGroup(
        group_id=group_of(world, beside(version)),
        member_id=MEMBER,
        member_epoch=FIRST_EPOCH + late,
        topics=[topic],
    )
    return OffsetFetchRequest(groups=[group])


def _fetched_as_member(world: World, version: int) -> OffsetFetchResponse:
    name = name_of(world, beside(version))
    topic = OffsetFetchResponseTopics(
        name=name, topic_id=world.topic(name).id, partitions=[_part(0, -1, -1, "")]
    )
    return _of_group(group_of(world, beside(version)), topic)


def _stale(world: World, version: int) -> OffsetFetchResponse:
    """What is wrong with the whole group is told once, without its topics."""
    answer = _of_group(group_of(world, beside(version)))
    answer.groups[0].error_code = ErrorCode.STALE_MEMBER_EPOCH
    return answer


def _fetch_unknown(world: World, version: int) -> OffsetFetchRequest:
    topic = OffsetFetchRequestTopics(topic_id=NO_TOPIC, partition_indexes=[0])
    group = OffsetFetchRequestGroup(group_id=group_of(world, version), topics=[topic])
    return OffsetFetchRequest(groups=[group])


def _not_fetched(world: World, version: int) -> OffsetFetchResponse:
    topic = OffsetFetchResponseTopics(
        topic_id=NO_TOPIC, partitions=[_part(0, -1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)]
    )
    return _of_group(group_of(world, version), topic)


# -- OffsetDelete ----------------------------------------------------------------------------------


def _delete(
    world: World, version: int, *, group_id: str = "", index: int = 0
) -> OffsetDeleteRequest:
    part = OffsetDeleteRequestPartition(partition_index=index)
    topic = OffsetDeleteRequestTopic(name=name_of(world, version), partitions=[part])
    return OffsetDeleteRequest(group_id=group_id or group_of(world, version), topics=[topic])


def _deleted(
    world: World, version: int, *, index: int = 0, error: ErrorCode = ErrorCode.NONE
) -> OffsetDeleteResponse:
    part = OffsetDeleteResponsePartition(partition_index=index, error_code=error)
    topic = OffsetDeleteResponseTopic(name=name_of(world, version), partitions=[part])
    return OffsetDeleteResponse(topics=[topic])


_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_UNKNOWN_ID = ErrorCode.UNKNOWN_TOPIC_ID
_NO_GROUP = ErrorCode.GROUP_ID_NOT_FOUND
_NO_GENERATION = ErrorCode.ILLEGAL_GENERATION

ROWS = (
    Row(key=8, versions=(2, 10), before=_have_member_and_topic, request=_commit, answer=_committed),
    Row(
        key=8,
        versions=(2, 9),
        request=lambda world, version: _commit(world, version, is_known=False),
        answer=lambda world, version: _committed(world, version, is_known=False, error=_UNKNOWN),
        error=_UNKNOWN,
    ),
    Row(
        key=8,
        versions=(10, 10),
        request=lambda world, version: _commit(world, version, is_known=False),
        answer=lambda world, version: _committed(world, version, is_known=False, error=_UNKNOWN_ID),
        error=_UNKNOWN_ID,
    ),
    Row(
        key=8,
        versions=(2, 8),
        request=_commit_nowhere,
        answer=lambda world, version: _committed(world, version, error=_NO_GENERATION),
        error=_NO_GENERATION,
    ),
    Row(
        key=8,
        versions=(9, 10),
        request=_commit_nowhere,
        answer=lambda world, version: _committed(world, version, error=_NO_GROUP),
        error=_NO_GROUP,
    ),
    Row(key=9, versions=(1, 10), before=have_committed, request=_fetch, answer=_fetched),
    Row(
        key=9,
        versions=(2, 10),
        request=lambda world, version: _fetch(world, version, is_all=True),
        answer=lambda world, version: _fetched(world, version, is_all=True),
    ),
    # Before members name themselves nobody is refused: a group that is not there has no commits.
    Row(key=9, versions=(1, 8), request=_fetch, closes=True),
    Row(
        key=9,
        versions=(9, 10),
        before=_have_consumer,
        request=_fetch_as_member,
        answer=_fetched_as_member,
    ),
    Row(
        key=9,
        versions=(9, 10),
        request=lambda world, version: _fetch_as_member(world, version, late=7),
        answer=_stale,
        error=ErrorCode.STALE_MEMBER_EPOCH,
    ),
    Row(
        key=9,
        versions=(10, 10),
        request=_fetch_unknown,
        answer=_not_fetched,
        error=_UNKNOWN_ID,
    ),
    Row(key=47, versions=(0, 0), before=have_committed, request=_delete, answer=_deleted),
    Row(
        key=47,
        versions=(0, 0),
        # The offset that the row above has deleted was all that there was of the group.
        before=have_committed,
        request=lambda world, version: _delete(world, version, index=NOWHERE),
        answer=lambda world, version: _deleted(world, version, index=NOWHERE, error=_UNKNOWN),
        error=_UNKNOWN,
    ),
    Row(
        key=47,
        versions=(0, 0),
        request=lambda world, version: _delete(world, version, group_id=NOBODY),
        answer=lambda _world, _version: OffsetDeleteResponse(error_code=_NO_GROUP),
        error=_NO_GROUP,
    ),
)
