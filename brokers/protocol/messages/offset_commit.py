"""OffsetCommit: store how far a group has read.
API 8, versions 2-10, flexible from 8.

Serves members of classic and of new (KIP-848) groups, and consumers that assign partitions to
themselves: generation -1 with an empty member id, allowed only while the group is empty.

Versions:
  2  the oldest left by KIP-896
  3  throttle time (KIP-124)
  4  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  5  retention_time_ms is gone: the broker's setting rules (KIP-211)
  6  committed_leader_epoch (KIP-320)
  7  static members (KIP-345)
  8  flexible (KIP-482)
  9  the client knows STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND (KIP-848)
  10 topic ids in place of names (KIP-848)
"""

from brokers.protocol.schema import Message, array, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Message):
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(
        "Epoch of the last record read; -1 if not known.", default=-1, since=6, ignorable=True
    )
    committed_metadata: str | None = string(
        "Free text of the consumer; null is kept as empty.", nullable=0
    )


class OffsetCommitRequestTopic(Message):
    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


class OffsetCommitRequest(Message, key=8, versions=(2, 10), flexible=8):
    group_id: str = string()
    generation_id_or_member_epoch: int = int32(
        "-1 for a consumer that belongs to no group.", default=-1
    )
    member_id: str = string("Empty for a consumer that belongs to no group.")
    group_instance_id: str | None = string(
        "Null unless the member is static.", default=None, since=7, nullable=7
    )
    retention_time_ms: int = int64(
        "-1 for the broker's own retention.", default=-1, until=4, ignorable=True
    )
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


class OffsetCommitResponsePartition(Message):
    partition_index: int = int32()
    error_code: int = int16()


class OffsetCommitResponseTopic(Message):
    name: str = string(until=9, ignorable=True)
    topic_id: bytes = uuid(since=10, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Message, key=8, versions=(2, 10), flexible=8):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=3,
        ignorable=True,
    )
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
