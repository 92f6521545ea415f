"""ReadShareGroupState: read the state of share partitions.
API 84, version 0, flexible from 0.

Sent by a partition's leader to the share coordinator.

Versions:
  0  (KIP-932)
"""

from brokers.protocol.schema import Message, array, int8, int16, int32, int64, string, uuid


class PartitionData(Message):
    partition: int = int32()
    leader_epoch: int = int32()


class ReadStateData(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateRequest(Message, key=84, versions=(0, 0), flexible=0):
    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


class StateBatch(Message):
    first_offset: int = int64()
    last_offset: int = int64("Inclusive.")
    delivery_state: int = int8("0 available, 2 acknowledged, 4 archived.")
    delivery_count: int = int16()


class PartitionResult(Message):
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    state_epoch: int = int32()
    start_offset: int = int64("-1 if not known yet.")
    state_batches: list[StateBatch] = array(StateBatch)


class ReadStateResult(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateResponse(Message, key=84, versions=(0, 0), flexible=0):
    results: list[ReadStateResult] = array(ReadStateResult)
