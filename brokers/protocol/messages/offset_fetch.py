"""OffsetFetch: read back how far a group has read.
API 9, versions 1-10, flexible from 6.

A partition without a commit is offset -1 without error, and so is a group that does not exist.

Versions:
  1  the oldest left by KIP-896
  2  null asks for all topics; error code of the whole answer (KIP-88)
  3  throttle time (KIP-124)
  4  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  5  committed_leader_epoch (KIP-320)
  6  flexible (KIP-482)
  7  require_stable, with UNSTABLE_OFFSET_COMMIT (KIP-447)
  8  several groups at once (KIP-709)
  9  member id and epoch, checked for new groups (KIP-848)
  10 topic ids in place of names (KIP-848)
"""

from brokers.protocol.schema import (
    INT32,
    Message,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class OffsetFetchRequestTopic(Message):
    name: str = string(until=7)
    partition_indexes: list[int] = array(INT32, until=7)


class OffsetFetchRequestTopics(Message):
    name: str = string(since=8, until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partition_indexes: list[int] = array(INT32, since=8)


class OffsetFetchRequestGroup(Message):
    group_id: str = string(since=8)
    member_id: str | None = string(
        "Null for an administrator, who is not checked.",
        default=None,
        since=9,
        nullable=9,
        ignorable=True,
    )
    member_epoch: int = int32("-1 without a member id.", default=-1, since=9, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array(
        OffsetFetchRequestTopics, "Null for all topics with a commit.", since=8, nullable=8
    )


class OffsetFetchRequest(Message, key=9, versions=(1, 10), flexible=6):
    group_id: str = string(until=7)
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, "Null for all topics with a commit.", until=7, nullable=2
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, since=8)
    require_stable: bool = boolean(
        "Offsets that an open transaction may still change are UNSTABLE_OFFSET_COMMIT.", since=7
    )


class OffsetFetchResponsePartition(Message):
    partition_index: int = int32(until=7)
    committed_offset: int = int64("-1 where nothing is committed.", until=7)
    committed_leader_epoch: int = int32(
        "-1 if not known.", default=-1, since=5, until=7, ignorable=True
    )
    metadata: str | None = string(
        "Free text of the consumer; empty where nothing is committed.", until=7, nullable=0
    )
    error_code: int = int16(until=7)


class OffsetFetchResponseTopic(Message):
    name: str = string(until=7)
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, until=7)


class OffsetFetchResponsePartitions(Message):
    partition_index: int = int32(since=8)
    committed_offset: int = int64("-1 where nothing is committed.", since=8)
    committed_leader_epoch: int = int32("-1 if not known.", default=-1, since=8, ignorable=True)
    metadata: str | None = string(
        "Free text of the consumer; empty where nothing is committed.", since=8, nullable=8
    )
    error_code: int = int16(since=8)


class OffsetFetchResponseTopics(Message):
    name: str = string(since=8, until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, since=8)


class OffsetFetchResponseGroup(Message):
    group_id: str = string(since=8)
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, since=8)
    error_code: int = int16(since=8)


class OffsetFetchResponse(Message, key=9, versions=(1, 10), flexible=6):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=3,
        ignorable=True,
    )
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, until=7)
    error_code: int = int16(since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, since=8)
