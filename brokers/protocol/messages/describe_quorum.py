"""DescribeQuorum: show the state of a metadata quorum.
API 55, versions 0-2, flexible from 0.

A KRaft matter: here the SQL store is the authority, and tools still ask.

Versions:
  0  (KIP-595)
  1  times of the last fetch and of catching up (KIP-836)
  2  error messages, directory ids and nodes (KIP-853)
"""

from brokers.protocol.schema import Message, array, int16, int32, int64, string, uint16, uuid


class PartitionData(Message):
    partition_index: int = int32()


class TopicData(Message):
    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


class DescribeQuorumRequest(Message, key=55, versions=(0, 2), flexible=0):
    topics: list[TopicData] = array(TopicData)


class ReplicaState(Message):
    replica_id: int = int32()
    replica_directory_id: bytes = uuid(since=2)
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(
        "Milliseconds since 1970 by the leader's clock; -1 if not known.",
        default=-1,
        since=1,
        ignorable=True,
    )
    last_caught_up_timestamp: int = int64(
        "Milliseconds since 1970 by the leader's clock; -1 if not known.",
        default=-1,
        since=1,
        ignorable=True,
    )


class DescribeQuorumReplyPartitionData(Message):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.",
        since=2,
        nullable=2,
        ignorable=True,
    )
    leader_id: int = int32("-1 while there is no leader.")
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


class DescribeQuorumReplyTopicData(Message):
    topic_name: str = string()
    partitions: list[DescribeQuorumReplyPartitionData] = array(DescribeQuorumReplyPartitionData)


class Listener(Message):
    name: str = string(since=2)
    host: str = string(since=2)
    port: int = uint16(since=2)


class Node(Message):
    node_id: int = int32(since=2)
    listeners: list[Listener] = array(Listener, since=2)


class DescribeQuorumResponse(Message, key=55, versions=(0, 2), flexible=0):
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.",
        since=2,
        nullable=2,
        ignorable=True,
    )
    topics: list[DescribeQuorumReplyTopicData] = array(DescribeQuorumReplyTopicData)
    nodes: list[Node] = array(Node, since=2)
