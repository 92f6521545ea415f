"""The state of the cluster at one version, as an immutable value.

Knows no store and no wire. An image is made from the one before and a numbered change; readers keep
the image they began with, so a request never sees half of a change. Unchanged parts are shared
between images, so a new one costs about what has changed and one shallow copy of a mapping.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

NO_LEADER: Final = -1
NO_BROKER: Final = -1
# The position of a reader without any change.
NO_ID: Final = bytes(16)


class ResourceType(IntEnum):
    """The kinds of resources that have configurations; Kafka's numbers."""

    TOPIC = 2
    BROKER = 4  # the name is a broker id; the empty name is the default of all brokers


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The position of a reader in the changes of a store.

    The id distinguishes stores, and a store from its own past, if it was set back.
    """

    version: int = 0
    id: bytes = NO_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """One broker, as of its last registration."""

    id: int
    epoch: int  # of this incarnation; grows with every registration
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = True
    inspection_port: int = 0  # on the same host; 0 if there is none
    agent_id: str = ""
    boot_id: str = ""  # of the host's kernel: brokers with the same one fail together


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """The replicas and the leader of a partition."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    id: bytes  # 16 bytes
    partitions: tuple[PartitionState, ...]
    # The version that last changed the topic, apart from its configuration; for caches.
    version: int = 0

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTopic:
    """A deleted topic: its id is what allows a broker to remove a partition's folder."""

    name: str
    id: bytes
    version: int


Configs = Mapping[str, str]
NO_CONFIGS: Final[Configs] = MappingProxyType({})


def written_id(topic_id: bytes) -> str:
    """Return a topic's id in the format of Kafka's tools."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def _frozen(source: Mapping[K, V] | None = None) -> Mapping[K, V]:
    return MappingProxyType(dict(source or {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    """See the module. `configs` holds explicit settings, without defaults."""

    cluster_id: str
    position: Position = Position()
    brokers: Mapping[int, Broker] = field(default_factory=_frozen)
    topics: Mapping[str, Topic] = field(default_factory=_frozen)
    names: Mapping[bytes, str] = field(default_factory=_frozen)  # topic id → name
    configs: Mapping[tuple[ResourceType, str], Configs] = field(default_factory=_frozen)
    deleted: Mapping[bytes, DeletedTopic] = field(default_factory=_frozen)

    @property
    def version(self) -> int:
        return self.position.version

    @property
    def controller_id(self) -> int:
        """The broker for admin requests: any would do, so the lowest unfenced one."""
        return min((b.id for b in self.brokers.values() if not b.is_fenced), default=NO_BROKER)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        name = self.names.get(topic_id)
        return None if name is None else self.topics[name]

    def configs_of(self, kind: ResourceType, name: str) -> Configs:
        return self.configs.get((kind, name), NO_CONFIGS)
