"""Defines the numbered changes that advance every image in the cluster.

A change is the result of one transaction of the store, as records; `apply` in `apply.py` derives
the next image from an image and a change. Records carry whole values rather than differences, so
that a record means the same to every reader, and applying one twice does no harm.
"""

from dataclasses import dataclass
from typing import TypeAlias

from brokers.cluster.image import Broker, PartitionState, Position, ResourceType


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """A broker registered, was fenced, or was unfenced."""

    broker: Broker


@dataclass(frozen=True, slots=True)
class BrokerRemoved:
    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicCreated:
    name: str
    topic_id: bytes
    partitions: tuple[PartitionState, ...]


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """Partitions from `first_index` on; the topic has exactly that many before."""

    topic_id: bytes
    first_index: int
    partitions: tuple[PartitionState, ...]


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    topic_id: bytes
    index: int
    state: PartitionState


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """The topic's configuration goes with it; brokers delete its folders by this id."""

    name: str
    topic_id: bytes


@dataclass(frozen=True, slots=True)
class ConfigsChanged:
    """All that is set for a resource from now on; empty if nothing is set."""

    resource_type: ResourceType
    name: str
    configs: tuple[tuple[str, str], ...]


Record: TypeAlias = (
    BrokerChanged
    | BrokerRemoved
    | TopicCreated
    | PartitionsAdded
    | PartitionChanged
    | TopicRemoved
    | ConfigsChanged
)


@dataclass(frozen=True, slots=True)
class Change:
    """One transaction of the store: its records, and the position that they lead to."""

    position: Position
    records: tuple[Record, ...]
