"""InitializeShareGroupState: begin to keep the state of share partitions.
API 83, version 0, flexible from 0.

Sent by the group coordinator to the share coordinator.

Versions:
  0  (KIP-932)
"""

from brokers.protocol.schema import Message, array, int16, int32, int64, string, uuid


class PartitionData(Message):
    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64("-1 if not known yet.")


class InitializeStateData(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class InitializeShareGroupStateRequest(Message, key=83, versions=(0, 0), flexible=0):
    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


class PartitionResult(Message):
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )


class InitializeStateResult(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class InitializeShareGroupStateResponse(Message, key=83, versions=(0, 0), flexible=0):
    results: list[InitializeStateResult] = array(InitializeStateResult)
