"""Defines the arguments and results of the client: topics, partitions, configs, records.

Frozen values without a client behind them, so that code that shows or stores them needs no Kafka.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

Header: TypeAlias = tuple[str, bytes | None]

# The value of a request that stands for the cluster's own setting.
CLUSTER_DEFAULT: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker in the cluster's metadata."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    id: str
    controller: int | None
    brokers: tuple[Broker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSummary:
    """A topic in a list."""

    name: str
    partitions: int
    replication_factor: int
    is_internal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    index: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    id: str  # as Kafka's tools write it
    is_internal: bool
    partitions: tuple[Partition, ...]
    # Operations that this client may do with it, in Kafka's words; None if not requested.
    operations: tuple[str, ...] | None = None

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    name: str
    partitions: int = CLUSTER_DEFAULT
    replication_factor: int = CLUSTER_DEFAULT
    configs: Mapping[str, str] = field(default_factory=dict)
    # The brokers of each partition, preferred leader first; replaces the numbers above.
    assignments: tuple[tuple[int, ...], ...] = ()


class ResourceKind(Enum):
    """The kind of resource that a config belongs to."""

    TOPIC = "topic"
    BROKER = "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    """A source of a config's value; the first one that is set wins."""

    key: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One config in effect. `value` is None if the broker does not reveal it."""

    key: str
    value: str | None
    source: str  # Kafka's word: DEFAULT_CONFIG, DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG …
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()


class EditKind(Enum):
    SET = "set"
    DELETE = "delete"
    APPEND = "append"
    SUBTRACT = "subtract"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEdit:
    key: str
    kind: EditKind = EditKind.SET
    value: str | None = None


class TimestampKind(Enum):
    CREATE_TIME = "create"
    LOG_APPEND_TIME = "logappend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record that was read. A null key or value is None, unlike an empty one."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    timestamp_kind: TimestampKind | None = None
    # It has headers, but the client library cannot read them: a name is not UTF-8.
    has_unread_headers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to write. Without a partition, the key decides, as in Java's client."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The partition, offset and timestamp of an acknowledged record."""

    partition: int
    offset: int
    timestamp_ms: int | None = None


class PositionKind(Enum):
    BEGINNING = "beginning"
    END = "end"
    OFFSET = "offset"
    TAIL = "tail"  # so many before the end
    TIME = "time"  # the first record at or after a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in a partition; `value` is an offset, a number of records or milliseconds."""

    kind: PositionKind
    value: int = 0


BEGINNING: Final = Position(kind=PositionKind.BEGINNING)
END: Final = Position(kind=PositionKind.END)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The offsets to read from one partition; `end` is exclusive."""

    partition: int
    start: int
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """A partition by its topic's name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}"


class GroupState(Enum):
    """Kafka's words. The client library reports Assigning and Reconciling as Unknown."""

    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    EMPTY = "Empty"
    DEAD = "Dead"
    UNKNOWN = "Unknown"


class GroupType(Enum):
    CLASSIC = "classic"
    CONSUMER = "consumer"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """A group in a list. A simple one holds offsets and never had members."""

    name: str
    state: GroupState
    type: GroupType
    is_simple: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    id: str
    client_id: str
    host: str
    instance_id: str | None
    assignment: tuple[Place, ...]
    # During a rebalance: the assignment that this member will get.
    target: tuple[Place, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    name: str
    state: GroupState
    type: GroupType
    assignor: str
    coordinator: int | None
    members: tuple[Member, ...]
    # Whether members of a consumer protocol group use the classic one, if requested.
    is_mixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """The lag of a group in a partition.

    `end` and `records` are None if no leader reports the end; `ms`, the age of the next record, is
    None if that record could not be read in time. `is_lost` says that the partition no longer holds
    the committed offset: the lag counts from its first one.
    """

    group: str
    place: Place
    committed: int
    end: int | None
    records: int | None
    ms: int | None
    is_lost: bool = False
