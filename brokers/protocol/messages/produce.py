"""Produce: append record batches to the logs of partitions that this broker leads.
API 0, versions 3-13, flexible from 9.

Each partition brings exactly one v2 record batch.  The broker checks its size, CRC-32C, counts and
timestamps, patches base offset and leader epoch in place and appends the bytes as they came.  An
idempotent producer's batch is also checked against the producer's last five; a repeated one is
answered with its first offset and no error.

With acks 0 there is no answer at all, not even for an error: the broker then closes the
connection, which is all the client can notice.  With acks -1 the answer waits for the high
watermark.  Versions 0 to 2 are advertised, since librdkafka compresses only where it sees them
(KAFKA-18659), but using them closes the connection.

Versions:
  3  record format v2 and transactional ids (KIP-98); the oldest left by KIP-896
  4  the client knows KAFKA_STORAGE_ERROR (KIP-112)
  5  log_start_offset in the answer (KIP-192)
  6  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  7  zstd is allowed (KIP-110); below it is UNSUPPORTED_COMPRESSION_TYPE
  8  record_errors and error_message (KIP-467)
  9  flexible (KIP-482)
  10 current_leader and node_endpoints, so that a retry needs no Metadata (KIP-951)
  11 the client knows TRANSACTION_ABORTABLE (KIP-890)
  12 a transactional batch adds its partition to the transaction by itself (KIP-890)
  13 topic ids in place of names (KIP-516)
"""

from brokers.protocol.schema import (
    Message,
    array,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uuid,
)


class PartitionProduceData(Message):
    index: int = int32()
    records: memoryview | None = records(
        "One record batch of format v2; null, none at all or several are INVALID_RECORD.",
        nullable=0,
    )


class TopicProduceData(Message):
    name: str = string(until=12, ignorable=True)
    topic_id: bytes = uuid(
        "An id that this broker does not know is UNKNOWN_TOPIC_ID.", since=13, ignorable=True
    )
    partition_data: list[PartitionProduceData] = array(
        PartitionProduceData, "One entry for each partition written to."
    )


class ProduceRequest(Message, key=0, versions=(3, 13), flexible=9):
    transactional_id: str | None = string(
        "Null unless the producer is transactional; needs WRITE, else "
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED.",
        default=None,
        nullable=0,
    )
    acks: int = int16(
        "0 asks for no answer, 1 for the leader's write, -1 for all in-sync replicas; any other "
        "is INVALID_REQUIRED_ACKS."
    )
    timeout_ms: int = int32(
        "How long acks -1 may wait for the replicas before REQUEST_TIMED_OUT; what was written "
        "stays."
    )
    topic_data: list[TopicProduceData] = array(
        TopicProduceData, "Every partition succeeds or fails for itself."
    )


class BatchIndexAndErrorMessage(Message):
    batch_index: int = int32("Position of the refused record inside of the batch, from 0.", since=8)
    batch_index_error_message: str | None = string(
        "Why this record was refused; null where the partition's error_message says it all.",
        default=None,
        since=8,
        nullable=8,
    )


class LeaderIdAndEpoch(Message):
    leader_id: int = int32(
        "Broker id of the leader as this broker knows it; -1 for none.", default=-1, since=10
    )
    leader_epoch: int = int32("The epoch of that leader; -1 if not known.", default=-1, since=10)


class PartitionProduceResponse(Message):
    index: int = int32()
    error_code: int = int16(
        "NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION and the rest of routing; "
        "CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE, "
        "UNSUPPORTED_COMPRESSION_TYPE for the batch; OUT_OF_ORDER_SEQUENCE_NUMBER, "
        "INVALID_PRODUCER_EPOCH for the producer; NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT for "
        "acks -1; INVALID_REQUIRED_ACKS for unknown acks; KAFKA_STORAGE_ERROR while the disk is "
        "full; TRANSACTIONAL_ID_AUTHORIZATION_FAILED for all that is transactional, while that "
        "is not served."
    )
    base_offset: int = int64(
        "Offset given to the first record, for a repeated batch the one given then; -1 on error."
    )
    log_append_time_ms: int = int64(
        "The broker's clock where the topic uses LogAppendTime; -1 where the producer's "
        "timestamps are kept.",
        default=-1,
    )
    log_start_offset: int = int64(
        "First offset that the log still holds, also if the log refused the batch for its "
        "contents; -1 on any other error.",
        default=-1,
        since=5,
        ignorable=True,
    )
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage,
        "Records that made the broker refuse the batch, where it knows them; nothing of the batch "
        "was written.",
        since=8,
        ignorable=True,
    )
    error_message: str | None = string(
        "Why the batch was refused; null on success or where the code says it all.",
        default=None,
        since=8,
        nullable=8,
        ignorable=True,
    )
    current_leader: LeaderIdAndEpoch | None = nested(
        LeaderIdAndEpoch,
        "Set with NOT_LEADER_OR_FOLLOWER when this broker knows the leader; else absent.",
        since=10,
        tag=0,
    )


class TopicProduceResponse(Message):
    name: str = string("Named as in the request.", until=12, ignorable=True)
    topic_id: bytes = uuid(
        "As in the request, also with UNKNOWN_TOPIC_ID.", since=13, ignorable=True
    )
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Message):
    node_id: int = int32("Broker id.", since=10)
    host: str = string(
        "As the broker advertises itself on the listener the request came in by.", since=10
    )
    port: int = int32(since=10)
    rack: str | None = string(
        "Null if the broker names no rack.", default=None, since=10, nullable=10
    )


class ProduceResponse(Message, key=0, versions=(3, 13), flexible=9):
    responses: list[TopicProduceResponse] = array(
        TopicProduceResponse, "One entry for each topic of the request."
    )
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    node_endpoints: list[NodeEndpoint] = array(
        NodeEndpoint,
        "Addresses of all leaders that current_leader names; else left out.",
        since=10,
        tag=0,
    )
