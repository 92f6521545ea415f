"""CreatePartitions: add partitions to topics; none can be removed.
API 37, versions 0-3, flexible from 2.

Topics succeed or fail one by one.  Records stay where they are, so keys may map to other
partitions from now on.

Versions:
  0  (KIP-195)
  1  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  2  flexible (KIP-482)
  3  the client knows THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from brokers.protocol.schema import INT32, Message, array, boolean, int16, int32, string


class CreatePartitionsAssignment(Message):
    broker_ids: list[int] = array(
        INT32, "Replicas of one new partition, the preferred leader first."
    )


class CreatePartitionsTopic(Message):
    name: str = string()
    count: int = int32(
        "How many partitions the topic shall have in all; not more than now is INVALID_PARTITIONS."
    )
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment,
        "One entry for each new partition, in order, else INVALID_REPLICA_ASSIGNMENT; null leaves "
        "the choice to the cluster.",
        nullable=0,
    )


class CreatePartitionsRequest(Message, key=37, versions=(0, 3), flexible=2):
    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32("How long to wait until the partitions can be seen.")
    validate_only: bool = boolean("Check everything and answer as if done, but create nothing.")


class CreatePartitionsTopicResult(Message):
    name: str = string()
    error_code: int = int16(
        "UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, "
        "TOPIC_AUTHORIZATION_FAILED, REASSIGNMENT_IN_PROGRESS, REQUEST_TIMED_OUT, "
        "INVALID_REQUEST for a name that is listed twice, POLICY_VIOLATION, NOT_CONTROLLER while "
        "the broker starts."
    )
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )


class CreatePartitionsResponse(Message, key=37, versions=(0, 3), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
