"""Reads from rows the state that an admin decision needs.

Answers `brokers.cluster.decisions.View` within one transaction. The topics that the actions of a
call name are read and locked at once, in the order of their keys, and the configurations when the
caller has locked the brokers. After that the view follows the records decided on, so that the
second action of a call sees what the first has done, with no row written yet. Lives as long as its
transaction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from django.db.models import Q

from brokers.cluster.changes import (
    ConfigsChanged,
    PartitionsAdded,
    Record,
    TopicCreated,
    TopicRemoved,
)
from brokers.cluster.image import NO_CONFIGS, Broker, PartitionState, ResourceType, Topic
from brokers.cluster.proposals import (
    Action,
    AllocateProducerIds,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from brokers.cluster.topic_names import collision_key
from brokers.controlplane import models, values

# SQLite takes no more variables than this in one statement, in the oldest supported version.
MAX_VARIABLES: Final = 900

# The only resource without a row in another table that its editors could lock instead.
COMMON_DEFAULTS: Final = (ResourceType.BROKER, "")

T = TypeVar("T")


class RowsView:
    """See the module. Serves one cluster; created inside of a transaction.

    Without locks it serves a preview, which reads a snapshot and writes nothing.
    """

    def __init__(
        self, cluster: models.Cluster, actions: Sequence[Action], *, is_locking: bool = True
    ) -> None:
        self._cluster = cluster
        self._is_locking = is_locking
        self._partition_count = cluster.partition_count
        # None: searched, and not found.
        self._topics: dict[str, Topic | None] = {}
        self._names: dict[bytes, str | None] = {}
        self._likes: dict[str, str | None] = {}  # collision key → the topic that has it
        self._configs: dict[tuple[ResourceType, str], Mapping[str, str]] = {}
        self._brokers: list[Broker] | None = None
        self._read_topics(names=set(_names_in(actions)), ids=set(_ids_in(actions)))

    def lock_configs(self, actions: Sequence[Action]) -> None:
        """Read and lock the configs that the actions edit, once their brokers are locked.

        A broker's configs have no row before their first edit; the broker's row is locked instead.
        """
        edited = _configs_in(actions)
        if COMMON_DEFAULTS in edited:
            self._make_common_defaults()
        self._read_configs(edited)

    def brokers(self) -> Sequence[Broker]:
        if self._brokers is None:
            rows = self._cluster.brokers.order_by("broker_id")
            self._brokers = [values.broker(row) for row in rows]
        return self._brokers

    def topic(self, name: str) -> Topic | None:
        if name not in self._topics:
            self._read_topics(names={name}, ids=set())
        return self._topics[name]

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        if topic_id not in self._names:
            self._read_topics(names=set(), ids={topic_id})
        name = self._names[topic_id]
        return None if name is None else self._topics[name]

    def colliding(self, name: str) -> str | None:
        """Return the name of another topic whose metrics names a new topic's would collide with."""
        key = collision_key(name)
        if key not in self._likes:
            self._read_topics(names={name}, ids=set())
        other = self._likes[key]
        return None if other == name else other

    def configs_of(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        if (kind, name) not in self._configs:
            self._read_configs({(kind, name)})
        return self._configs[kind, name]

    def partition_count(self) -> int:
        return self._partition_count

    def next_producer_id(self) -> int:
        assert self._is_locking, "blocks of producer ids are never previewed"
        counter = models.ProducerIds.objects.select_for_update().get(cluster=self._cluster)
        return counter.next_id

    def follow(self, records: Iterable[Record]) -> None:
        """Update the view as if these records were written."""
        for record in records:
            match record:
                case TopicCreated():
                    topic = Topic(
                        name=record.name, id=record.topic_id, partitions=record.partitions
                    )
                    self._put(topic)
                    self._partition_count += len(record.partitions)
                case PartitionsAdded():
                    grown = self.topic_by_id(record.topic_id)
                    assert grown is not None, "partitions are added to a topic that is there"
                    self._put(
                        Topic(
                            name=grown.name,
                            id=grown.id,
                            partitions=grown.partitions + record.partitions,
                        )
                    )
                    self._partition_count += len(record.partitions)
                case TopicRemoved():
                    self._forget(record)
                case ConfigsChanged():
                    self._configs[record.resource_type, record.name] = dict(record.configs)
                case _:
                    raise AssertionError(f"no admin action decides on {record}")

    def _put(self, topic: Topic) -> None:
        self._topics[topic.name] = topic
        self._names[topic.id] = topic.name
        self._likes[collision_key(topic.name)] = topic.name

    def _forget(self, record: TopicRemoved) -> None:
        topic = self.topic(record.name)
        assert topic is not None, "a topic that is removed is there"
        self._partition_count -= len(topic.partitions)
        self._topics[record.name] = None
        self._names[record.topic_id] = None
        self._likes[collision_key(record.name)] = None
        self._configs[ResourceType.TOPIC, record.name] = NO_CONFIGS

    def _read_topics(self, *, names: set[str], ids: set[bytes]) -> None:
        """Read and lock the topics of these names, those that collide with them, and these ids."""
        keys = {collision_key(name) for name in names}
        self._topics.update(dict.fromkeys(names))
        self._likes.update(dict.fromkeys(keys))
        self._names.update(dict.fromkeys(ids))
        rows: dict[int, models.Topic] = {}
        for some_keys in _portions(filter(_can_be_there, keys)):
            rows |= self._locked(Q(collision_key__in=some_keys))
        for some_ids in _portions(ids):
            rows |= self._locked(Q(topic_id__in=some_ids))
        states: dict[int, list[PartitionState]] = {key: [] for key in rows}
        for some_rows in _portions(rows):
            for topic, state in values.partition_states(topic_id__in=some_rows):
                states[topic].append(state)
        for key, row in rows.items():
            self._put(values.topic(row, states[key]))

    def _locked(self, which: Q) -> dict[int, models.Topic]:
        rows = self._cluster.topics.filter(which).order_by("pk")
        if self._is_locking:
            rows = rows.select_for_update()
        return {row.pk: row for row in rows}

    def _make_common_defaults(self) -> None:
        """Create a row to lock: of two first edits, the second must see the first."""
        kind, name = COMMON_DEFAULTS
        models.ResourceConfig.objects.bulk_create(
            [
                models.ResourceConfig(
                    cluster=self._cluster, resource_type=kind, name=name, configs={}
                )
            ],
            ignore_conflicts=True,
        )

    def _read_configs(self, wanted: set[tuple[ResourceType, str]]) -> None:
        self._configs.update(dict.fromkeys(wanted, NO_CONFIGS))
        for kind in ResourceType:
            named = {name for of, name in wanted if of is kind and _can_be_there(name)}
            for names in _portions(named):
                rows = self._cluster.configs.filter(resource_type=kind, name__in=names).order_by(
                    "pk"
                )
                if self._is_locking:
                    rows = rows.select_for_update()
                self._configs.update({(kind, row.name): row.configs for row in rows})


def _can_be_there(name: str) -> bool:
    """Tell whether a row may have this name; PostgreSQL refuses even queries for others."""
    return "\0" not in name


def _portions(items: Iterable[T]) -> Iterator[list[T]]:
    listed = list(items)
    for start in range(0, len(listed), MAX_VARIABLES):
        yield listed[start : start + MAX_VARIABLES]


def _names_in(actions: Iterable[Action]) -> Iterable[str]:
    for action in actions:
        match action:
            case CreateTopic() | CreatePartitions():
                yield action.name
            case DeleteTopic(name=str(name)):
                yield name
            case AlterConfigs(resource_type=ResourceType.TOPIC):
                yield action.name
            case DeleteTopic() | AlterConfigs() | AllocateProducerIds():
                pass


def _ids_in(actions: Iterable[Action]) -> Iterable[bytes]:
    for action in actions:
        if isinstance(action, DeleteTopic) and action.topic_id is not None:
            yield action.topic_id


def _configs_in(actions: Iterable[Action]) -> set[tuple[ResourceType, str]]:
    return {
        (action.resource_type, action.name)
        for action in actions
        if isinstance(action, AlterConfigs)
    }
