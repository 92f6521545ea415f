"""ElectLeaders: elect leaders: the preferred replicas, or any replica where none is in sync.
API 43, versions 0-2, flexible from 2.

Versions:
  0  preferred leaders only (KIP-183)
  1  election_type and the error code of the whole answer (KIP-460)
  2  flexible (KIP-482)
"""

from brokers.protocol.schema import INT32, Message, array, int8, int16, int32, string


class TopicPartitions(Message):
    topic: str = string()
    partitions: list[int] = array(INT32)


class ElectLeadersRequest(Message, key=43, versions=(0, 2), flexible=2):
    election_type: int = int8(
        "0 the preferred replica, 1 any living one, at the price of lost records.", since=1
    )
    topic_partitions: list[TopicPartitions] | None = array(
        TopicPartitions, "Null for all partitions.", nullable=0
    )
    timeout_ms: int = int32(default=60000)


class PartitionResult(Message):
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )


class ReplicaElectionResult(Message):
    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


class ElectLeadersResponse(Message, key=43, versions=(0, 2), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16(since=1)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
