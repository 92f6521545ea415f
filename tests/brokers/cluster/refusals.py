"""What may not be asked of a cluster: actions with the code and words of their refusal.

Of a cluster with the brokers 1, 2 and, fenced, 3; with the topics orders (3 partitions), a.b, and
set, which has configurations. The codes are Kafka's, but for those rows that say so.
"""

from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    ConfigEdit,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from brokers.protocol.errors import ErrorCode

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER
SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE
APPEND, SUBTRACT = ConfigOperation.APPEND, ConfigOperation.SUBTRACT


def edits(*changes: tuple[str, ConfigOperation, str | None]) -> tuple[ConfigEdit, ...]:
    return tuple(ConfigEdit(key=k, operation=o, value=v) for k, o, v in changes)


def alter(
    name: str, *changes: tuple[str, ConfigOperation, str | None], kind: ResourceType = TOPIC
) -> AlterConfigs:
    return AlterConfigs(resource_type=kind, name=name, edits=edits(*changes))


REFUSED: list[tuple[Action, ErrorCode, str]] = [
    # Names.
    (CreateTopic(name=""), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty"),
    (CreateTopic(name=".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "folder"),
    (CreateTopic(name="a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "'a.b'"),
    (CreateTopic(name="orders"), ErrorCode.TOPIC_ALREADY_EXISTS, "'orders'"),
    (CreateTopic(name="__cluster_metadata"), ErrorCode.INVALID_REQUEST, "own metadata"),
    # A name that is taken comes before whatever else is wrong.
    (CreateTopic(name="orders", partitions=0), ErrorCode.TOPIC_ALREADY_EXISTS, ""),
    # Counts.
    (CreateTopic(name="n", partitions=0), ErrorCode.INVALID_PARTITIONS, "0 partitions"),
    (CreateTopic(name="n", partitions=-2), ErrorCode.INVALID_PARTITIONS, "-2"),
    (CreateTopic(name="n", partitions=10_001), ErrorCode.POLICY_VIOLATION, "10000"),
    (CreateTopic(name="n", partitions=2**31 - 1), ErrorCode.POLICY_VIOLATION, "10000"),
    (CreateTopic(name="n", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR, "0"),
    (CreateTopic(name="n", replication_factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR, "-2"),
    (CreateTopic(name="n", replication_factor=2), ErrorCode.INVALID_REPLICATION_FACTOR, "served"),
    (
        CreateTopic(name="n", partitions=0, replication_factor=0),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "",
    ),
    # Assignments.
    (
        CreateTopic(name="n", partitions=1, assignments=((1,),)),
        ErrorCode.INVALID_REQUEST,
        "number of partitions is 1",
    ),
    (
        CreateTopic(name="n", replication_factor=1, assignments=((1,),)),
        ErrorCode.INVALID_REQUEST,
        "replication factor is 1",
    ),
    (CreateTopic(name="n", assignments=()), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no partition"),
    (CreateTopic(name="n", assignments=((),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no broker"),
    (CreateTopic(name="n", assignments=((1, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "twice"),
    (CreateTopic(name="n", assignments=((9,),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 9"),
    (
        CreateTopic(name="n", assignments=((1,), (1, 2))),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "partition 1 has 2",
    ),
    (CreateTopic(name="n", assignments=((3,),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "fenced"),
    (
        CreateTopic(name="n", assignments=((1, 2),)),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "not served",
    ),
    # Configurations of a new topic.
    (CreateTopic(name="n", configs=(("nope", "1"),)), ErrorCode.INVALID_CONFIG, "nope"),
    (CreateTopic(name="n", configs=(("retention.ms", None),)), ErrorCode.INVALID_CONFIG, "value"),
    (CreateTopic(name="n", configs=(("preallocate", "true"),)), ErrorCode.INVALID_CONFIG, "effect"),
    (
        CreateTopic(
            name="n",
            configs=(("max.compaction.lag.ms", "5"), ("min.compaction.lag.ms", "6")),
        ),
        ErrorCode.INVALID_CONFIG,
        "min.compaction.lag.ms is 6 and max.compaction.lag.ms is 5",
    ),
    # Deletion.
    (DeleteTopic(name="unknown"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown"),
    (DeleteTopic(), ErrorCode.INVALID_REQUEST, "neither the name nor the id"),
    (DeleteTopic(topic_id=bytes([9] * 16)), ErrorCode.UNKNOWN_TOPIC_ID, "CQkJCQkJ"),
    # More partitions.
    (CreatePartitions(name="unknown", count=4), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown"),
    (CreatePartitions(name="orders", count=3), ErrorCode.INVALID_PARTITIONS, "has 3 partitions"),
    (CreatePartitions(name="orders", count=2), ErrorCode.INVALID_PARTITIONS, "only be added"),
    (CreatePartitions(name="orders", count=-1), ErrorCode.INVALID_PARTITIONS, "-1"),
    (CreatePartitions(name="orders", count=10_001), ErrorCode.POLICY_VIOLATION, "10000"),
    (
        CreatePartitions(name="orders", count=5, assignments=((1,),)),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "2 partitions are to be added, and 1",
    ),
    (
        CreatePartitions(name="orders", count=4, assignments=((1, 2),)),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "partition 3 has 2 replicas",
    ),
    (
        CreatePartitions(name="orders", count=4, assignments=((9,),)),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "partition 3",
    ),
    # Configurations.
    (alter("unknown", ("retention.ms", SET, "5")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown"),
    (alter("or ders", ("retention.ms", SET, "5")), ErrorCode.INVALID_TOPIC_EXCEPTION, "letters"),
    (alter("", ("retention.ms", SET, "5")), ErrorCode.INVALID_REQUEST, "name a topic"),
    (alter("orders", ("nope", SET, "5")), ErrorCode.INVALID_CONFIG, "nope"),
    (alter("orders", ("retention.ms", SET, "soon")), ErrorCode.INVALID_CONFIG, "whole number"),
    (
        alter("orders", ("max.compaction.lag.ms", SET, "5"), ("min.compaction.lag.ms", SET, "6")),
        ErrorCode.INVALID_CONFIG,
        "no more than the second",
    ),
    (alter("orders", ("retention.ms", SET, None)), ErrorCode.INVALID_REQUEST, "no value"),
    (alter("orders", ("cleanup.policy", APPEND, None)), ErrorCode.INVALID_REQUEST, "no value"),
    (alter("orders", ("retention.ms", APPEND, "5")), ErrorCode.INVALID_CONFIG, "not a list"),
    (alter("orders", ("nope", SUBTRACT, "5")), ErrorCode.INVALID_CONFIG, "not a list"),
    (alter("orders", ("cleanup.policy", APPEND, "burn")), ErrorCode.INVALID_CONFIG, "burn"),
    (
        alter("orders", ("retention.ms", SET, "5"), ("retention.ms", DELETE, None)),
        ErrorCode.INVALID_REQUEST,
        "twice",
    ),
    (
        alter("9", ("log.retention.ms", SET, "5"), kind=BROKER),
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "broker 9",
    ),
    (alter("-1", ("log.retention.ms", SET, "5"), kind=BROKER), ErrorCode.INVALID_REQUEST, "'-1'"),
    (alter("x", ("log.retention.ms", SET, "5"), kind=BROKER), ErrorCode.INVALID_REQUEST, "'x'"),
    (alter("1", ("log.dirs", SET, "/x"), kind=BROKER), ErrorCode.INVALID_REQUEST, "brokers run"),
    (alter("1", ("num.partitions", SET, "5"), kind=BROKER), ErrorCode.INVALID_REQUEST, "cluster"),
]

# Where our answer is not Kafka's, by intention, with the reason.
OURS: dict[Action, str] = {
    CreateTopic(name="n", assignments=()): "on the wire an empty assignment is none",
    CreateTopic(name="n", assignments=((1, 2),)): "Kafka would serve two replicas",
    CreateTopic(name="n", configs=(("preallocate", "true"),)): "Kafka would preallocate",
    CreatePartitions(name="orders", count=10_001): "Kafka limits a request, not a topic",
    alter("9", ("log.retention.ms", SET, "5"), kind=BROKER): "Kafka asks the broker before that",
}
