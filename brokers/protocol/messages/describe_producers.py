"""DescribeProducers: show the producers that the leader of a partition keeps state of.
API 61, version 0, flexible from 0.

The tool against hanging transactions: an old open transaction keeps the last stable offset from
moving, and shows up here with its start.  Producers expire after producer.id.expiration.ms.

Versions:
  0  (KIP-664)
"""

from brokers.protocol.schema import INT32, Message, array, int16, int32, int64, string


class TopicRequest(Message):
    name: str = string()
    partition_indexes: list[int] = array(INT32)


class DescribeProducersRequest(Message, key=61, versions=(0, 0), flexible=0):
    topics: list[TopicRequest] = array(
        TopicRequest, "Partitions that this broker leads; others are NOT_LEADER_OR_FOLLOWER."
    )


class ProducerState(Message):
    producer_id: int = int64()
    producer_epoch: int = int32("Wider than the int16 it is everywhere else.")
    last_sequence: int = int32(
        "Sequence number of the producer's last record; -1 if none is known.", default=-1
    )
    last_timestamp: int = int64(
        "Timestamp of the producer's last record, in ms; -1 if none is known.", default=-1
    )
    coordinator_epoch: int = int32(
        "Epoch of the coordinator that wrote the producer's last marker; -1 without a marker."
    )
    current_txn_start_offset: int = int64(
        "First offset of its open transaction; -1 if none is open.", default=-1
    )


class PartitionResponse(Message):
    partition_index: int = int32()
    error_code: int = int16(
        "NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED."
    )
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    active_producers: list[ProducerState] = array(ProducerState, "Empty on error.")


class TopicResponse(Message):
    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


class DescribeProducersResponse(Message, key=61, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    topics: list[TopicResponse] = array(TopicResponse)
