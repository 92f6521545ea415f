"""Gives slices access to the cluster, through the gateway's Kafka client.

There is one per process: the admin client and producers are kept between slices, since a client
takes about 60 ms and three threads; consumers are not, since each belongs to one task.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from connectors.runtime import overrides as allowed
from connectors.runtime.inlet import ClusterInlet, partition_of, place_of
from connectors.runtime.ports import Inlet
from connectors.sdk.records import TopicPartition
from gateway.kafka.admin import Admin
from gateway.kafka.clients import CONNECT_WRITES
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.groups import Groups
from gateway.kafka.producer import Producer
from gateway.kafka.values import NewTopic, Record, ResourceKind, Span

# Producers with different settings to keep; most connectors have no settings of their own.
MAX_PRODUCERS: Final = 8
# Many light tasks run within a second, and each asks for the list of topics.
TOPICS_S: Final = 1.0
DEFAULT_RESET: Final = "earliest"
# Java's names of the reset policies, in librdkafka's terms.
RESETS: Final = {"earliest": "earliest", "latest": "latest", "none": "error"}
EXISTS: Final = "TOPIC_ALREADY_EXISTS"
AUTO_CREATE: Final = "auto.create.topics.enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReader:
    """A group that reads topics: its committed offsets and the number of its members."""

    committed: Mapping[TopicPartition, int]
    members: int


class ClusterWire:
    """The cluster of a process; for one thread."""

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connect = connection
        self._producers: OrderedDict[tuple[tuple[str, str], ...], Producer] = OrderedDict()
        self._topics: Mapping[str, int] | None = None
        self._topics_at = 0.0

    @cached_property
    def _connection(self) -> Connection:
        return self._connect()

    @cached_property
    def _admin(self) -> Admin:
        return Admin(self._connection)

    @cached_property
    def _groups(self) -> Groups:
        return Groups(self._connection)

    def bootstrap(self) -> str:
        return self._connection.bootstrap

    def topics(self) -> Mapping[str, int]:
        now = time.monotonic()
        if self._topics is None or now - self._topics_at > TOPICS_S:
            self._topics = {topic.name: topic.partitions for topic in self._admin.topics()}
            self._topics_at = now
        return self._topics

    def topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        return {name: topic.id for name, topic in self._admin.find(names).items()}

    def creates_topics(self) -> bool:
        broker = str(self._admin.brokers()[0])
        configs = self._admin.configs(ResourceKind.BROKER, broker)
        return any(one.key == AUTO_CREATE and one.value == "true" for one in configs)

    def create(self, topic: NewTopic) -> bool:
        try:
            self._admin.create([topic])
        except KafkaFailure as failed:
            if failed.name != EXISTS:
                raise
            return False
        self._topics = None
        return True

    def outlet(self, overrides: Mapping[str, str]) -> Producer:
        properties = allowed.producer(overrides)
        key = tuple(sorted(properties.items()))
        producer = self._producers.pop(key, None)
        if producer is None or producer.is_broken:
            producer = Producer(replace(self._connection, properties=properties), CONNECT_WRITES)
        self._producers[key] = producer
        while len(self._producers) > MAX_PRODUCERS:
            self._producers.popitem(last=False)
        return producer

    def inlet(self, group: str, overrides: Mapping[str, str]) -> Inlet:
        reset = RESETS.get(overrides.get("auto.offset.reset", DEFAULT_RESET).lower(), DEFAULT_RESET)
        properties = allowed.consumer(overrides)
        made = replace(self._connection, properties=properties)
        return ClusterInlet(made, group, reset=reset)

    def read(self, topic: str, spans: Sequence[Span]) -> Generator[list[Record]]:
        """Yield the records of spans, and empty lists while none arrive; ends with the spans."""
        if spans:
            with Reader(self._connection, topic, spans) as reader:
                yield from reader.batches()

    def committed(self, group: str) -> Mapping[TopicPartition, int]:
        found = self._groups.offsets([group]).get(group, {})
        return {partition_of(place): offset for place, offset in found.items()}

    def readers(self, topics: Sequence[str]) -> Mapping[str, TopicReader]:
        """Return the groups with offsets of these topics, or with members that read them."""
        names = [summary.name for summary in self._groups.summaries()]
        offsets, found = self._groups.offsets(names), {}
        for name, group in self._groups.find(names).items():
            committed = {
                partition_of(place): offset
                for place, offset in offsets.get(name, {}).items()
                if place.topic in topics
            }
            reading = [
                member
                for member in group.members
                if any(
                    place.topic in topics for place in (*member.assignment, *(member.target or ()))
                )
            ]
            if committed or reading:
                found[name] = TopicReader(committed=committed, members=len(group.members))
        return found

    def bounds(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]:
        if not places:
            return {}
        found = self._admin.bounds(map(place_of, places))
        return {partition_of(place): ends for place, ends in found.items()}
