"""WriteTxnMarkers: write commit or abort markers on behalf of the coordinator.
API 27, versions 1-2, flexible from 1.

Versions:
  1  flexible (KIP-482); the oldest left by KIP-896
  2  transaction_version (KIP-1228)
"""

from brokers.protocol.schema import (
    INT32,
    Message,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
)


class WritableTxnMarkerTopic(Message):
    name: str = string()
    partition_indexes: list[int] = array(INT32)


class WritableTxnMarker(Message):
    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean("True to commit, false to abort.")
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32("Epoch of the coordinator, so that a deposed one is refused.")
    transaction_version: int = int8(
        "Version of the transaction protocol; 0 if unknown.", since=2, ignorable=True
    )


class WriteTxnMarkersRequest(Message, key=27, versions=(1, 2), flexible=1):
    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Message):
    partition_index: int = int32()
    error_code: int = int16()


class WritableTxnMarkerTopicResult(Message):
    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Message):
    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(Message, key=27, versions=(1, 2), flexible=1):
    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
