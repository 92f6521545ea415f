"""DeleteShareGroupState: forget the state of share partitions.
API 86, version 0, flexible from 0.

Sent by the group coordinator to the share coordinator.

Versions:
  0  (KIP-932)
"""

from brokers.protocol.schema import Message, array, int16, int32, string, uuid


class PartitionData(Message):
    partition: int = int32()


class DeleteStateData(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class DeleteShareGroupStateRequest(Message, key=86, versions=(0, 0), flexible=0):
    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


class PartitionResult(Message):
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )


class DeleteStateResult(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class DeleteShareGroupStateResponse(Message, key=86, versions=(0, 0), flexible=0):
    results: list[DeleteStateResult] = array(DeleteStateResult)
