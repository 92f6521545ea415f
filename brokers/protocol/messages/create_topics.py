"""CreateTopics: create topics, each with its partitions, replicas and configuration.
API 19, versions 2-7, flexible from 5.

Topics succeed or fail one by one.  The answer comes when the brokers that clients will ask next
know the topics, or with REQUEST_TIMED_OUT.  A name listed twice is INVALID_REQUEST, one that
differs from an existing one only by "." and "_" INVALID_TOPIC_EXCEPTION.  An unknown configuration
key or a bad value is INVALID_CONFIG.

Versions:
  2  throttle time; the oldest left by KIP-896
  3  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  4  -1 asks for the broker's default of partitions and replication factor (KIP-464)
  5  flexible (KIP-482); the answer shows what was created, configuration included (KIP-525)
  6  the client knows THROTTLING_QUOTA_EXCEEDED (KIP-599)
  7  topic_id in the answer (KIP-516)
"""

from brokers.protocol.schema import INT32, Message, array, boolean, int8, int16, int32, string, uuid


class CreatableReplicaAssignment(Message):
    partition_index: int = int32("The assignments must name every partition from 0 on, once.")
    broker_ids: list[int] = array(
        INT32,
        "The preferred leader first; unknown or repeated brokers are INVALID_REPLICA_ASSIGNMENT.",
    )


class CreatableTopicConfig(Message):
    name: str = string()
    value: str | None = string(
        "Null is INVALID_CONFIG: a key at its default is left out.", nullable=0
    )


class CreatableTopic(Message):
    name: str = string(
        '1 to 249 of letters, digits, ".", "_" and "-", not "." or ".."; else '
        "INVALID_TOPIC_EXCEPTION."
    )
    num_partitions: int = int32(
        "-1 for the default, or where assignments are given; else 0 or less is INVALID_PARTITIONS."
    )
    replication_factor: int = int16(
        "-1 for the default, or where assignments are given; more than there are brokers is "
        "INVALID_REPLICATION_FACTOR."
    )
    assignments: list[CreatableReplicaAssignment] = array(
        CreatableReplicaAssignment,
        "Replicas chosen by the caller; empty leaves the choice to the cluster.",
    )
    configs: list[CreatableTopicConfig] = array(
        CreatableTopicConfig, "Only the keys that differ from the default."
    )


class CreateTopicsRequest(Message, key=19, versions=(2, 7), flexible=5):
    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32("How long to wait until the topics can be seen.", default=60000)
    validate_only: bool = boolean("Check everything and answer as if done, but create nothing.")


class CreatableTopicConfigs(Message):
    name: str = string(since=5)
    value: str | None = string("Null if sensitive or without a value.", since=5, nullable=5)
    read_only: bool = boolean("Whether the value cannot be changed at run time.", since=5)
    config_source: int = int8(
        "Where the value comes from, numbered as in DescribeConfigs; -1 if not known.",
        default=-1,
        since=5,
        ignorable=True,
    )
    is_sensitive: bool = boolean("True for secrets, whose value is null.", since=5)


class CreatableTopicResult(Message):
    name: str = string()
    topic_id: bytes = uuid("All zero on error.", since=7, ignorable=True)
    error_code: int = int16(
        "TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, "
        "INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, "
        "POLICY_VIOLATION, TOPIC_AUTHORIZATION_FAILED, REQUEST_TIMED_OUT, INVALID_REQUEST for a "
        "name that is listed twice, NOT_CONTROLLER while the broker starts."
    )
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
    topic_config_error_code: int = int16(
        "TOPIC_AUTHORIZATION_FAILED where the principal may create but not describe; the next "
        "three fields are then meaningless.",
        since=5,
        tag=0,
        ignorable=True,
    )
    num_partitions: int = int32(
        "The created number; -1 on error.", default=-1, since=5, ignorable=True
    )
    replication_factor: int = int16(
        "The created number; -1 on error.", default=-1, since=5, ignorable=True
    )
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs,
        "All keys of the new topic; null or empty on error.",
        since=5,
        nullable=5,
        ignorable=True,
    )


class CreateTopicsResponse(Message, key=19, versions=(2, 7), flexible=5):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    topics: list[CreatableTopicResult] = array(
        CreatableTopicResult, "One entry for each topic of the request."
    )
