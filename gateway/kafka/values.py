"""What goes into the client and comes out of it: topics, partitions, configs, records.

Frozen values without a client behind them, so that whoever shows or stores them needs no Kafka.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

Header: TypeAlias = tuple[str, bytes | None]

# What a client says where the cluster's own setting is meant.
CLUSTER_DEFAULT: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker as the cluster names it to its clients."""

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
    """A topic as a list shows it."""

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
    # What this client may do with it, in Kafka's words; None where nobody asked.
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
    # The brokers of each partition, the preferred leader first; then no number above counts.
    assignments: tuple[tuple[int, ...], ...] = ()


class ResourceKind(Enum):
    """What a config belongs to."""

    TOPIC = "topic"
    BROKER = "broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    """One place where the value of a config may come from; the first that is set wins."""

    key: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One config in effect. `value` is None where the broker keeps it to itself."""

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
    """A record as it was read. A null key or value is None, which an empty one is not."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    timestamp_kind: TimestampKind | None = None
    # It has headers, and the client library reads none of them: the name of one is not UTF-8.
    has_unread_headers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to be written. Without a partition the key decides, as in Java's client."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """Where the cluster has put a record that it acknowledged, and the time it has there."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What to read of one partition: from an offset up to, without, another one."""

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
    """Kafka's words. The client library calls Assigning and Reconciling Unknown."""

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
    """A group as a list shows it. A simple one holds offsets and never had members."""

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
    # Where a new group is still on its way: what this member will have.
    target: tuple[Place, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    name: str
    state: GroupState
    type: GroupType
    assignor: str
    coordinator: int | None
    members: tuple[Member, ...]
    # Whether some members of a group of the consumer protocol speak the classic one, where asked.
    is_mixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """How far a group is behind in a partition.

    `end` and `records` are None where no leader tells the end; `ms`, how long ago the next record
    was written, is None where that record could not be read in time. `is_lost` says that the
    partition no longer holds the committed offset: the lag counts from its first one.
    """

    group: str
    place: Place
    committed: int
    end: int | None
    records: int | None
    ms: int | None
    is_lost: bool = False
