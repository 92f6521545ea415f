"""AlterPartitionReassignments: move partitions to other replicas, or call off such a move.
API 45, versions 0-1, flexible from 0.

Versions:
  0  (KIP-455)
  1  allow_replication_factor_change (KIP-860)
"""

from brokers.protocol.schema import INT32, Message, array, boolean, int16, int32, string


class ReassignablePartition(Message):
    partition_index: int = int32()
    replicas: list[int] | None = array(
        INT32,
        "Broker ids to move to, the preferred leader first; null cancels the ongoing move.",
        default=None,
        nullable=0,
    )


class ReassignableTopic(Message):
    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


class AlterPartitionReassignmentsRequest(Message, key=45, versions=(0, 1), flexible=0):
    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean(
        "Whether the number of replicas may change.", default=True, since=1
    )
    topics: list[ReassignableTopic] = array(ReassignableTopic)


class ReassignablePartitionResponse(Message):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )


class ReassignableTopicResponse(Message):
    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


class AlterPartitionReassignmentsResponse(Message, key=45, versions=(0, 1), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    allow_replication_factor_change: bool = boolean(default=True, since=1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
