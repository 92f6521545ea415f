"""WriteShareGroupState: store the state of share partitions.
API 85, versions 0-1, flexible from 0.

Sent by a partition's leader to the share coordinator.

Versions:
  0  (KIP-932)
  1  delivery_complete_count, for the lag (KIP-1226)
"""

from brokers.protocol.schema import Message, array, int8, int16, int32, int64, string, uuid


class StateBatch(Message):
    first_offset: int = int64()
    last_offset: int = int64("Inclusive.")
    delivery_state: int = int8("0 available, 2 acknowledged, 4 archived.")
    delivery_count: int = int16()


class PartitionData(Message):
    partition: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64("-1 leaves the stored one alone.")
    delivery_complete_count: int = int32(
        "Records from start_offset on that need no more delivery; -1 if not known.",
        default=-1,
        since=1,
        ignorable=True,
    )
    state_batches: list[StateBatch] = array(StateBatch)


class WriteStateData(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class WriteShareGroupStateRequest(Message, key=85, versions=(0, 1), flexible=0):
    group_id: str = string()
    topics: list[WriteStateData] = array(WriteStateData)


class PartitionResult(Message):
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )


class WriteStateResult(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class WriteShareGroupStateResponse(Message, key=85, versions=(0, 1), flexible=0):
    results: list[WriteStateResult] = array(WriteStateResult)
