"""DescribeTopicPartitions: describe topics page by page, eligible leaders included.
API 75, version 0, flexible from 0.

The topics of Metadata, for clusters whose answer would grow too large: topics come
sorted by name and stop at a limit, and next_cursor says where to continue.

Versions:
  0  (KIP-966)
"""

from brokers.protocol.schema import (
    INT32,
    Message,
    array,
    boolean,
    int16,
    int32,
    nested,
    string,
    uuid,
)


class TopicRequest(Message):
    name: str = string("A topic that is not there is UNKNOWN_TOPIC_OR_PARTITION in the answer.")


class Cursor(Message):
    topic_name: str = string("Topics that sort before it are skipped.")
    partition_index: int = int32(
        "First partition wanted of that topic; below 0 is INVALID_REQUEST."
    )


class DescribeTopicPartitionsRequest(Message, key=75, versions=(0, 0), flexible=0):
    topics: list[TopicRequest] = array(
        TopicRequest, "Empty for all topics that the principal may describe."
    )
    response_partition_limit: int = int32(
        "Most partitions in one answer, a topic that is not there counting as one; below 1 means "
        "1. The broker has a limit of its own, 2000.",
        default=2000,
    )
    cursor: Cursor | None = nested(Cursor, "Where to begin; null for the first topic.", nullable=0)


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: int = int16(
        "LEADER_NOT_AVAILABLE without a leader, LISTENER_NOT_FOUND if the leader lacks this "
        "listener."
    )
    partition_index: int = int32()
    leader_id: int = int32("Broker id; -1 while there is no leader.")
    leader_epoch: int = int32("-1 if not known.", default=-1)
    replica_nodes: list[int] = array(INT32, "Broker ids, the preferred leader first.")
    isr_nodes: list[int] = array(
        INT32, "Broker ids of the replicas in sync, the leader among them."
    )
    eligible_leader_replicas: list[int] | None = array(
        INT32,
        "Broker ids out of sync that still hold everything acknowledged; none is known here, so "
        "it is empty and never null.",
        default=None,
        nullable=0,
    )
    last_known_elr: list[int] | None = array(
        INT32,
        "The last such replicas before an unclean event; empty here and never null.",
        default=None,
        nullable=0,
    )
    offline_replicas: list[int] = array(
        INT32, "Broker ids of replicas whose broker is away or whose log dir has failed."
    )


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: int = int16(
        "UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED; "
        "INVALID_REQUEST for a cursor that makes no sense."
    )
    name: str | None = string(
        "Null is reserved for asking by id, which no version has yet.", nullable=0
    )
    topic_id: bytes = uuid("All zero on error.")
    is_internal: bool = boolean("True for __consumer_offsets, __transaction_state and their like.")
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = int32(
        "Bit n set: the principal may do ACL operation n.", default=-2147483648
    )


class DescribeTopicPartitionsResponse(Message, key=75, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    topics: list[DescribeTopicPartitionsResponseTopic] = array(
        DescribeTopicPartitionsResponseTopic, "Sorted by name."
    )
    next_cursor: Cursor | None = nested(
        Cursor, "Where the next request begins; null when complete.", nullable=0
    )
