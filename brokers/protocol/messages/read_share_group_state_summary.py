"""ReadShareGroupStateSummary: read where share partitions begin.
API 87, versions 0-1, flexible from 0.

Sent by the group coordinator to the share coordinator; leaves out the state of single records.

Versions:
  0  (KIP-932)
  1  delivery_complete_count, for the lag (KIP-1226)
"""

from brokers.protocol.schema import Message, array, int16, int32, int64, string, uuid


class PartitionData(Message):
    partition: int = int32()
    leader_epoch: int = int32()


class ReadStateSummaryData(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateSummaryRequest(Message, key=87, versions=(0, 1), flexible=0):
    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


class PartitionResult(Message):
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64("-1 if not known yet.")
    delivery_complete_count: int = int32(
        "Records from start_offset on that need no more delivery; -1 if not known.",
        default=-1,
        since=1,
        ignorable=True,
    )


class ReadStateSummaryResult(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateSummaryResponse(Message, key=87, versions=(0, 1), flexible=0):
    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
