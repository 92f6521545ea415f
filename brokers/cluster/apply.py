"""Derives the next image from an image and the change that follows it.

Pure. Mappings that a change does not touch are shared with the previous image, the others are
copied once; their values are shared too, except for the changed topics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeVar, assert_never

from brokers.cluster.changes import (
    BrokerChanged,
    BrokerRemoved,
    Change,
    ConfigsChanged,
    PartitionChanged,
    PartitionsAdded,
    Record,
    TopicCreated,
    TopicRemoved,
)
from brokers.cluster.image import (
    NO_CONFIGS,
    Broker,
    ClusterImage,
    Configs,
    DeletedTopic,
    PartitionState,
    Position,
    ResourceType,
    Topic,
    written_id,
)

# Deleted topics that an image remembers, the newest ones: only a broker that was away for longer
# than these keeps orphaned folders, and it keeps them safely.
MAX_DELETED: Final = 10_000

K = TypeVar("K")
V = TypeVar("V")


def apply(image: ClusterImage, change: Change) -> ClusterImage:
    """Return the image after a change, which must be the next one."""
    assert change.position.version == image.version + 1, (
        f"change {change.position.version} does not follow image {image.version}"
    )
    draft = ImageDraft(image)
    for record in change.records:
        draft.add(record, change.position.version)
    return draft.image(change.position)


class ImageDraft:
    """Builds an image of the next version: takes records, copies a mapping on its first change.

    It answers questions about its state so far, for decisions that follow each other in one change.
    Belongs to one task.
    """

    __slots__ = ("_before", "_brokers", "_configs", "_deleted", "_names", "_topics")

    def __init__(self, image: ClusterImage) -> None:
        self._before = image
        self._brokers: dict[int, Broker] | None = None
        self._topics: dict[str, Topic] | None = None
        self._names: dict[bytes, str] | None = None
        self._configs: dict[tuple[ResourceType, str], Configs] | None = None
        self._deleted: dict[bytes, DeletedTopic] | None = None

    def add(self, record: Record, version: int) -> None:
        match record:
            case BrokerChanged():
                self._own_brokers()[record.broker.id] = record.broker
            case BrokerRemoved():
                self._own_brokers().pop(record.broker_id, None)
            case TopicCreated():
                self._create_topic(record, version)
            case PartitionsAdded():
                self._add_partitions(record, version)
            case PartitionChanged():
                self._change_partition(record, version)
            case TopicRemoved():
                self._remove_topic(record, version)
            case ConfigsChanged():
                self._change_configs(record)
            case _:
                assert_never(record)

    def image(self, position: Position) -> ClusterImage:
        """Return the image so far. The draft must not change afterwards."""
        before = self._before
        return ClusterImage(
            cluster_id=before.cluster_id,
            position=position,
            brokers=_frozen(self._brokers, before.brokers),
            topics=_frozen(self._topics, before.topics),
            names=_frozen(self._names, before.names),
            configs=_frozen(self._configs, before.configs),
            deleted=_frozen(self._deleted, before.deleted),
        )

    def brokers(self) -> Sequence[Broker]:
        return tuple(self._now(self._brokers, self._before.brokers).values())

    def topic(self, name: str) -> Topic | None:
        return self._now(self._topics, self._before.topics).get(name)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        name = self._now(self._names, self._before.names).get(topic_id)
        return None if name is None else self.topic(name)

    def configs_of(self, kind: ResourceType, name: str) -> Configs:
        return self._now(self._configs, self._before.configs).get((kind, name), NO_CONFIGS)

    def _create_topic(self, record: TopicCreated, version: int) -> None:
        topics, names = self._own_topics()
        assert record.name not in topics or record.topic_id in names, (
            f"{record.name} is created beside another of its name"
        )
        topics[record.name] = Topic(
            name=record.name, id=record.topic_id, partitions=record.partitions, version=version
        )
        names[record.topic_id] = record.name

    def _add_partitions(self, record: PartitionsAdded, version: int) -> None:
        topic = self._topic(record.topic_id)
        kept = topic.partitions[: record.first_index]
        assert len(kept) == record.first_index, (
            f"{topic.name} has {len(kept)} partitions when those from {record.first_index} come"
        )
        self._replace_partitions(topic, kept + record.partitions, version)

    def _change_partition(self, record: PartitionChanged, version: int) -> None:
        topic = self._topic(record.topic_id)
        before = topic.partitions
        assert record.index < len(before), f"{topic.name} has no partition {record.index}"
        after = (*before[: record.index], record.state, *before[record.index + 1 :])
        self._replace_partitions(topic, after, version)

    def _remove_topic(self, record: TopicRemoved, version: int) -> None:
        topics, names = self._own_topics()
        topics.pop(record.name, None)
        names.pop(record.topic_id, None)
        if (ResourceType.TOPIC, record.name) in self._now(self._configs, self._before.configs):
            self._own_configs().pop((ResourceType.TOPIC, record.name))
        if self._deleted is None:
            self._deleted = _copied(self._before.deleted)
        self._deleted[record.topic_id] = DeletedTopic(
            name=record.name, id=record.topic_id, version=version
        )
        while len(self._deleted) > MAX_DELETED:
            # In the order of their deletion, the oldest first.
            self._deleted.pop(next(iter(self._deleted)))

    def _change_configs(self, record: ConfigsChanged) -> None:
        key = (record.resource_type, record.name)
        if record.configs:
            self._own_configs()[key] = MappingProxyType(dict(record.configs))
        else:
            self._own_configs().pop(key, None)

    def _topic(self, topic_id: bytes) -> Topic:
        topic = self.topic_by_id(topic_id)
        assert topic is not None, f"no topic has the id {written_id(topic_id)}"
        return topic

    def _replace_partitions(
        self, topic: Topic, partitions: tuple[PartitionState, ...], version: int
    ) -> None:
        topics, _ = self._own_topics()
        topics[topic.name] = replace(topic, partitions=partitions, version=version)

    def _own_brokers(self) -> dict[int, Broker]:
        if self._brokers is None:
            self._brokers = _copied(self._before.brokers)
        return self._brokers

    def _own_topics(self) -> tuple[dict[str, Topic], dict[bytes, str]]:
        if self._topics is None or self._names is None:
            self._topics = _copied(self._before.topics)
            self._names = _copied(self._before.names)
        return self._topics, self._names

    def _own_configs(self) -> dict[tuple[ResourceType, str], Configs]:
        if self._configs is None:
            self._configs = _copied(self._before.configs)
        return self._configs

    @staticmethod
    def _now(own: dict[K, V] | None, before: Mapping[K, V]) -> Mapping[K, V]:
        return before if own is None else own


def _copied(mapping: Mapping[K, V]) -> dict[K, V]:
    # The proxy copies the dict below it; dict(proxy) looks every key up by itself, which takes ten
    # times as long.
    return mapping.copy() if isinstance(mapping, MappingProxyType) else dict(mapping)


def _frozen(own: dict[K, V] | None, before: Mapping[K, V]) -> Mapping[K, V]:
    return before if own is None else MappingProxyType(own)
