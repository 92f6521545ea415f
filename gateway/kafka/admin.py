"""Reads and changes topics and configs of a cluster.

Every call has the connection's deadline and fails as `KafkaFailure`. No read creates a topic.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from enum import Enum
from typing import Any, Final, TypeVar

from confluent_kafka import Node, TopicCollection, TopicPartition
from confluent_kafka import TopicPartitionInfo as ConfluentPartition
from confluent_kafka.admin import DescribeClusterResult, OffsetSpec, TopicDescription
from confluent_kafka.cimpl import NewPartitions
from confluent_kafka.cimpl import NewTopic as ConfluentTopic

from gateway.kafka import configs
from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.bounds import bounds
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.kept_topics import INTERNAL_PREFIX
from gateway.kafka.values import (
    Broker,
    Cluster,
    Config,
    ConfigEdit,
    NewTopic,
    Partition,
    Place,
    Position,
    PositionKind,
    ResourceKind,
    Topic,
    TopicSummary,
)

T = TypeVar("T")

EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]
# Broker errors for a missing topic, or an impossible topic name.
ABSENT: Final = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"})


class Admin:
    """An admin connection for topics and configs. Not thread-safe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._calls = AdminCalls(connection)

    def topics(self) -> list[TopicSummary]:
        """Return every topic, by name."""
        # The cheapest request: it fails within a second if the cluster is down.
        self.brokers()
        metadata = self._calls.read(
            lambda deadline: self._calls.send(
                lambda: self._calls.client.list_topics(timeout=deadline.left())
            )
        )
        return [
            TopicSummary(
                name=name,
                partitions=len(topic.partitions),
                replication_factor=max(
                    (len(partition.replicas) for partition in topic.partitions.values()), default=0
                ),
                is_internal=name.startswith(INTERNAL_PREFIX),
            )
            for name, topic in sorted(metadata.topics.items())
        ]

    def brokers(self) -> list[int]:
        """Return the ids of all brokers in the cluster's metadata."""
        return [broker.id for broker in self.cluster().brokers]

    def cluster(self) -> Cluster:
        """Return the cluster's id, its controller and its brokers, in order of id."""

        def ask(deadline: Deadline) -> DescribeClusterResult:
            future = self._calls.send(
                lambda: self._calls.client.describe_cluster(request_timeout=deadline.left())
            )
            # The stubs declare a future of Any.
            answer: DescribeClusterResult = self._calls.wait(
                future, deadline, self._connection.bootstrap
            )
            return answer

        found = self._calls.read(ask)
        # The stubs declare it as always present.
        controller: Node | None = found.controller
        return Cluster(
            id=found.cluster_id or "",
            controller=None if controller is None else controller.id,
            brokers=tuple(
                Broker(id=node.id, host=node.host, port=node.port, rack=node.rack or None)
                for node in sorted(found.nodes, key=lambda node: node.id)
            ),
        )

    def describe(self, names: Iterable[str], *, has_operations: bool = False) -> list[Topic]:
        """Return topics in the requested order; raise for the first missing one."""
        wanted = list(names)

        def ask(deadline: Deadline) -> list[TopicDescription]:
            futures = self._calls.send(
                lambda: self._calls.client.describe_topics(
                    TopicCollection(wanted),
                    request_timeout=deadline.left(),
                    include_authorized_operations=has_operations,
                )
            )
            return self._all(futures, deadline, "topic")

        return [_topic(found) for found in self._calls.read(ask)]

    def find(self, names: Iterable[str]) -> dict[str, Topic]:
        """Return the existing ones of these topics, by name."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}

        def ask(deadline: Deadline) -> dict[str, Topic]:
            futures = self._calls.send(
                lambda: self._calls.client.describe_topics(
                    TopicCollection(wanted), request_timeout=deadline.left()
                )
            )
            found = {}
            for name, future in futures.items():
                try:
                    found[name] = _topic(self._calls.wait(future, deadline, f"topic {name}"))
                except KafkaFailure as failed:
                    if failed.name not in ABSENT:
                        raise
            return found

        return self._calls.read(ask)

    def create(self, topics: Sequence[NewTopic], *, is_dry_run: bool = False) -> None:
        asked = self._calls.send(lambda: [_new_topic(topic) for topic in topics])
        deadline = self._connection.deadline()
        futures = self._calls.send(
            lambda: self._calls.client.create_topics(
                asked, request_timeout=deadline.left(), validate_only=is_dry_run
            )
        )
        self._all(futures, deadline, "topic")

    def delete(self, names: Sequence[str]) -> None:
        deadline = self._connection.deadline()
        futures = self._calls.send(
            lambda: self._calls.client.delete_topics(list(names), request_timeout=deadline.left())
        )
        self._all(futures, deadline, "topic")

    def add_partitions(self, name: str, total: int, *, is_dry_run: bool = False) -> None:
        """Increase a topic's partitions to a total number."""
        asked = [NewPartitions(name, total)]
        deadline = self._connection.deadline()
        futures = self._calls.send(
            lambda: self._calls.client.create_partitions(
                asked, request_timeout=deadline.left(), validate_only=is_dry_run
            )
        )
        self._all(futures, deadline, "topic")

    def configs(self, kind: ResourceKind, name: str) -> list[Config]:
        """Return every config of a resource, by key; those set for all brokers for no name."""
        if kind is ResourceKind.BROKER and not name:
            from gateway.kafka import default_configs  # noqa: PLC0415 - loads the codec

            return default_configs.describe(self._connection)
        if kind is ResourceKind.BROKER:
            self._require_broker(name)
        return configs.describe(self._calls, kind, [name])[name]

    def configs_of_topics(self, names: Sequence[str]) -> dict[str, list[Config]]:
        """Return every config of topics, in one request; raise for the first missing one."""
        return configs.describe(self._calls, ResourceKind.TOPIC, names)

    def find_configs(self, names: Sequence[str]) -> dict[str, list[Config]]:
        """Return every config of the existing ones of these topics, in one request."""
        try:
            return self.configs_of_topics(names)
        except KafkaFailure as failed:
            if failed.name not in ABSENT:
                raise
        # A topic was deleted since its name was read.
        return self.configs_of_topics(list(self.find(names)))

    def alter_configs(
        self,
        kind: ResourceKind,
        name: str,
        edits: Sequence[ConfigEdit],
        *,
        is_dry_run: bool = False,
    ) -> None:
        """Change some configs and keep the others; an empty name means all brokers."""
        if kind is ResourceKind.BROKER and not name:
            from gateway.kafka import default_configs  # noqa: PLC0415 - loads the codec

            default_configs.alter(self._connection, edits, is_dry_run=is_dry_run)
            return
        if kind is ResourceKind.BROKER:
            self._require_broker(name)
        for failed in configs.alter(
            self._calls, kind, {name: edits}, is_dry_run=is_dry_run
        ).values():
            raise failed

    def alter_configs_of_topics(
        self, edits: Mapping[str, Sequence[ConfigEdit]], *, is_dry_run: bool = False
    ) -> dict[str, KafkaFailure]:
        """Change some configs of topics in one request; return the refused topics."""
        return configs.alter(self._calls, ResourceKind.TOPIC, edits, is_dry_run=is_dry_run)

    def offsets(self, topic: str, partitions: Iterable[int], at: Position) -> dict[int, int]:
        """Return the offset of a position for each partition; see `Position`.

        A time after the last record gives the end, as does any position not there yet.
        """
        wanted = list(partitions)
        match at.kind:
            case PositionKind.OFFSET:
                return dict.fromkeys(wanted, at.value)
            case PositionKind.BEGINNING:
                return self._list_offsets(topic, wanted, EARLIEST)
            case PositionKind.END:
                return self._list_offsets(topic, wanted, LATEST)
            case PositionKind.TAIL:
                first = self._list_offsets(topic, wanted, EARLIEST)
                end = self._list_offsets(topic, wanted, LATEST)
                return {index: max(first[index], end[index] - at.value) for index in wanted}
            case PositionKind.TIME:
                found = self._list_offsets(topic, wanted, OffsetSpec.for_timestamp(at.value))
                later = [index for index in wanted if found[index] < 0]
                return found | self._list_offsets(topic, later, LATEST)

    def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        """Return the first offset and the end of each place with an available leader."""
        return bounds(self._calls, places)

    def _list_offsets(self, topic: str, partitions: list[int], spec: OffsetSpec) -> dict[int, int]:
        if not partitions:
            return {}
        asked = {TopicPartition(topic, index): spec for index in partitions}

        def ask(deadline: Deadline) -> dict[int, int]:
            futures = self._calls.send(
                lambda: self._calls.client.list_offsets(asked, request_timeout=deadline.left())
            )
            return {
                place.partition: self._calls.wait(
                    future, deadline, f"topic {topic}, partition {place.partition}"
                ).offset
                for place, future in futures.items()
            }

        return self._calls.read(ask)

    def _require_broker(self, name: str) -> None:
        """Raise at once for a broker that does not exist; librdkafka would wait for it."""
        known = self.brokers()
        if name not in {str(broker) for broker in known}:
            listed = ", ".join(map(str, known)) or "none"
            raise failure(
                "RESOURCE_NOT_FOUND", f"broker {name}", f"there is no such broker (known: {listed})"
            )

    def _all(self, futures: "Mapping[Any, Future[T]]", deadline: Deadline, kind: str) -> list[T]:
        """Return all answers, or raise the first failure; keys name the object of each answer."""
        return [
            self._calls.wait(future, deadline, f"{kind} {getattr(key, 'name', key)}")
            for key, future in futures.items()
        ]


def _new_topic(topic: NewTopic) -> ConfluentTopic:
    if topic.assignments:
        return ConfluentTopic(
            topic.name,
            num_partitions=len(topic.assignments),
            replica_assignment=[list(brokers) for brokers in topic.assignments],
            config=dict(topic.configs),
        )
    return ConfluentTopic(
        topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        config=dict(topic.configs),
    )


def _topic(found: TopicDescription) -> Topic:
    # The stubs declare it as always requested.
    operations: list[Enum] | None = found.authorized_operations
    return Topic(
        name=found.name,
        # librdkafka encodes the id in another base64 alphabet than Kafka's tools.
        id=str(found.topic_id).replace("+", "-").replace("/", "_"),
        is_internal=found.is_internal,
        partitions=tuple(_partition(info) for info in found.partitions),
        operations=None if operations is None else tuple(sorted(one.name for one in operations)),
    )


def _partition(info: ConfluentPartition) -> Partition:
    # The stubs declare it as always present.
    leader: Node | None = info.leader
    return Partition(
        index=info.id,
        leader=None if leader is None else leader.id,
        replicas=tuple(node.id for node in info.replicas),
        isr=tuple(node.id for node in info.isr),
    )
