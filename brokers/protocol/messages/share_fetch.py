"""ShareFetch: acquire records for a member of a share group, acknowledge earlier ones.
API 78, versions 1-2, flexible from 0.

Versions:
  1  the first stable one (KIP-932); 0 was early access and is gone
  2  share_acquire_mode (KIP-1206), renewal of locks (KIP-1222)
"""

from collections.abc import Sized

from brokers.protocol.schema import (
    INT8,
    INT32,
    Message,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uuid,
)


class AcknowledgementBatch(Message):
    first_offset: int = int64()
    last_offset: int = int64("Inclusive.")
    acknowledge_types: list[int] = array(
        INT8,
        "0 gap, 1 accept, 2 release, 3 reject, 4 renew: one for the batch, or one for each record.",
    )


class FetchPartition(Message):
    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


class FetchTopic(Message):
    topic_id: bytes = uuid()
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Message):
    topic_id: bytes = uuid()
    partitions: list[int] = array(INT32)


class ShareFetchRequest(Message, key=78, versions=(1, 2), flexible=0):
    group_id: str | None = string("No client sends null.", default=None, nullable=0)
    member_id: str | None = string("No client sends null.", nullable=0)
    share_session_epoch: int = int32("0 opens a session, -1 closes it, then 1, 2 and so on.")
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8(
        "0 whole batches, 1 a strict number of records.", since=2, ignorable=True
    )
    is_renew_ack: bool = boolean("Whether acknowledgements of type 4 are in the request.", since=2)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


class LeaderIdAndEpoch(Message):
    leader_id: int = int32()
    leader_epoch: int = int32()


class AcquiredRecords(Message):
    first_offset: int = int64()
    last_offset: int = int64("Inclusive.")
    delivery_count: int = int16()


class PartitionData(Message):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch)
    records: Sized | None = records()
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


class ShareFetchableTopicResponse(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Message):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("Null if the broker names no rack.", default=None, nullable=0)


class ShareFetchResponse(Message, key=78, versions=(1, 2), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    acquisition_lock_timeout_ms: int = int32("Milliseconds until acquired records go to others.")
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
