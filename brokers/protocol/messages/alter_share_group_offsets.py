"""AlterShareGroupOffsets: set where a share group without members begins to read.
API 91, version 0, flexible from 0.

Versions:
  0  (KIP-932)
"""

from brokers.protocol.schema import Message, array, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequestPartition(Message):
    partition_index: int = int32()
    start_offset: int = int64()


class AlterShareGroupOffsetsRequestTopic(Message):
    topic_name: str = string()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(
        AlterShareGroupOffsetsRequestPartition
    )


class AlterShareGroupOffsetsRequest(Message, key=91, versions=(0, 0), flexible=0):
    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)


class AlterShareGroupOffsetsResponsePartition(Message):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )


class AlterShareGroupOffsetsResponseTopic(Message):
    topic_name: str = string()
    topic_id: bytes = uuid()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(
        AlterShareGroupOffsetsResponsePartition
    )


class AlterShareGroupOffsetsResponse(Message, key=91, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(
        AlterShareGroupOffsetsResponseTopic
    )
