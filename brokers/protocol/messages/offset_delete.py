"""OffsetDelete: delete committed offsets of a group for topics it no longer reads.
API 47, version 0, never flexible.

Versions:
  0  (KIP-496)
"""

from brokers.protocol.schema import Message, array, int16, int32, string


class OffsetDeleteRequestPartition(Message):
    partition_index: int = int32()


class OffsetDeleteRequestTopic(Message):
    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


class OffsetDeleteRequest(Message, key=47, versions=(0, 0)):
    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


class OffsetDeleteResponsePartition(Message):
    partition_index: int = int32()
    error_code: int = int16()


class OffsetDeleteResponseTopic(Message):
    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


class OffsetDeleteResponse(Message, key=47, versions=(0, 0)):
    error_code: int = int16()
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
