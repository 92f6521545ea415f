"""ShareAcknowledge: acknowledge records that a member of a share group has acquired.
API 79, versions 1-2, flexible from 0.

Versions:
  1  the first stable one (KIP-932); 0 was early access and is gone
  2  renewal of locks (KIP-1222)
"""

from brokers.protocol.schema import (
    INT8,
    Message,
    array,
    boolean,
    int16,
    int32,
    int64,
    nested,
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


class AcknowledgePartition(Message):
    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


class AcknowledgeTopic(Message):
    topic_id: bytes = uuid()
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


class ShareAcknowledgeRequest(Message, key=79, versions=(1, 2), flexible=0):
    group_id: str | None = string("No client sends null.", default=None, nullable=0)
    member_id: str | None = string("No client sends null.", nullable=0)
    share_session_epoch: int = int32(
        "-1 closes the session, else 1, 2 and so on; 0 cannot open one here."
    )
    is_renew_ack: bool = boolean("Whether acknowledgements of type 4 are in the request.", since=2)
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


class LeaderIdAndEpoch(Message):
    leader_id: int = int32()
    leader_epoch: int = int32()


class PartitionData(Message):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Message):
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Message):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("Null if the broker names no rack.", default=None, nullable=0)


class ShareAcknowledgeResponse(Message, key=79, versions=(1, 2), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    acquisition_lock_timeout_ms: int = int32(
        "Milliseconds until acquired records go to others.", since=2, ignorable=True
    )
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
