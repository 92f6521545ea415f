"""ListPartitionReassignments: list the partitions that are being moved.
API 46, version 0, flexible from 0.

Versions:
  0  (KIP-455)
"""

from brokers.protocol.schema import INT32, Message, array, int16, int32, string


class ListPartitionReassignmentsTopics(Message):
    name: str = string()
    partition_indexes: list[int] = array(INT32)


class ListPartitionReassignmentsRequest(Message, key=46, versions=(0, 0), flexible=0):
    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics,
        "Null for all ongoing moves.",
        default=None,
        nullable=0,
    )


class OngoingPartitionReassignment(Message):
    partition_index: int = int32()
    replicas: list[int] = array(INT32, "All present replicas, old and new.")
    adding_replicas: list[int] = array(INT32)
    removing_replicas: list[int] = array(INT32)


class OngoingTopicReassignment(Message):
    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


class ListPartitionReassignmentsResponse(Message, key=46, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
