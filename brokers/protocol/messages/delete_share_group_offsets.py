"""DeleteShareGroupOffsets: forget what a share group without members has read of topics.
API 92, version 0, flexible from 0.

Versions:
  0  (KIP-932)
"""

from brokers.protocol.schema import Message, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Message):
    topic_name: str = string()


class DeleteShareGroupOffsetsRequest(Message, key=92, versions=(0, 0), flexible=0):
    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponseTopic(Message):
    topic_name: str = string()
    topic_id: bytes = uuid()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )


class DeleteShareGroupOffsetsResponse(Message, key=92, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(
        DeleteShareGroupOffsetsResponseTopic
    )
