"""Caches the encoded topics of Metadata responses.

Knows no requests and no sockets. Clients request the same topics repeatedly while almost nothing
changes, so each topic is encoded once for each requested layout and reused until the topic changes,
or until a broker comes or goes. Images share unchanged topics, so an entry is valid exactly as long
as its topic is the same object; a response then costs one lookup for each topic, and one for all of
them if the image is still the same.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from brokers.cluster.image import NO_LEADER, ClusterImage, PartitionState, Topic
from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from brokers.server.encoded_arrays import EncodedArray

# Without access control all operations are allowed: read 3, write 4, create 5, delete 6, alter 7,
# describe 8, describe configs 10, alter configs 11.
ALL_TOPIC_OPERATIONS: Final = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
NOT_ASKED: Final = -(2**31)
# Layouts kept at a time: one for each generation of clients that a cluster has at once. One of
# 100,000 partitions takes some 6 MB.
MAX_LAYOUTS: Final = 4


def _first_versions() -> tuple[int, ...]:
    """Return the versions in which the layout of a topic changes, derived from its fields."""
    fields = (*MetadataResponseTopic.FIELDS, *MetadataResponsePartition.FIELDS)
    assert MetadataResponse.FLEXIBLE is not None
    return tuple(sorted({field.since for field in fields} | {MetadataResponse.FLEXIBLE}))


_TOPICS: Final = EncodedArray(MetadataResponse, "topics")
# The first version of each layout of a topic.
LAYOUTS: Final = _first_versions()


def availability(state: PartitionState, alive: frozenset[int]) -> tuple[ErrorCode, int, list[int]]:
    """Return a partition's error, leader and offline replicas. Only a live broker can lead."""
    offline = [replica for replica in state.replicas if replica not in alive]
    if state.leader in alive:
        return ErrorCode.NONE, state.leader, offline
    return ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, offline


def describe_partition(
    state: PartitionState, index: int, alive: frozenset[int], version: int
) -> MetadataResponsePartition:
    error, leader, offline = availability(state, alive)
    replicas, isr = state.replicas, state.isr
    if version == 0 and offline:
        # The oldest versions have no offline replicas and get an error instead.
        replicas = tuple(replica for replica in replicas if replica in alive)
        isr = tuple(replica for replica in isr if replica in alive)
        error = error or ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(replicas),
        isr_nodes=list(isr),
        offline_replicas=offline,
    )


def describe_topic(
    topic: Topic, alive: frozenset[int], version: int, operations: int
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            describe_partition(state, index, alive, version)
            for index, state in enumerate(topic.partitions)
        ],
        topic_authorized_operations=operations,
    )


def encode_topic(topic: MetadataResponseTopic, version: int) -> bytes:
    """Encode one topic for a response of this version."""
    return _TOPICS.element(topic, version)


def encode_answer(response: MetadataResponse, version: int, topics: Sequence[bytes]) -> bytes:
    """Encode a response without topics, with the encoded topics inserted."""
    return _TOPICS.whole(response, version, topics)


class MetadataCache:
    """See the module. One for each broker; belongs to the event loop."""

    __slots__ = ("_alive", "_brokers", "_layouts")

    def __init__(self) -> None:
        self._brokers: object = None  # those of the image from which `_alive` was made
        self._alive: frozenset[int] = frozenset()
        self._layouts: dict[tuple[int, int], _Layout] = {}  # the one used last stands last

    def __len__(self) -> int:
        """Return the number of encoded topics in all layouts."""
        return sum(layout.size for layout in self._layouts.values())

    def alive(self, image: ClusterImage) -> frozenset[int]:
        """Return the brokers that serve. If they have changed, clear the cache."""
        if image.brokers is not self._brokers:
            alive = frozenset(
                broker.id for broker in image.brokers.values() if not broker.is_fenced
            )
            if alive != self._alive:
                self._layouts.clear()
            self._brokers, self._alive = image.brokers, alive
        return self._alive

    def topic(self, image: ClusterImage, topic: Topic, version: int, *, operations: int) -> bytes:
        """Return one topic of the image, encoded."""
        return self._layout(image, version, operations).piece(topic)

    def all_topics(
        self, image: ClusterImage, version: int, *, operations: int, at_most: int
    ) -> Sequence[bytes] | None:
        """Return all topics, encoded; None if more than `at_most` partitions are unencoded."""
        return self._layout(image, version, operations).all(at_most)

    def missing(
        self, image: ClusterImage, topics: Iterable[Topic], version: int, *, operations: int
    ) -> list[Topic]:
        """Return those of the topics that are not encoded yet."""
        return self._layout(image, version, operations).missing(topics)

    def _layout(self, image: ClusterImage, version: int, operations: int) -> "_Layout":
        alive = self.alive(image)
        first = LAYOUTS[bisect_right(LAYOUTS, version) - 1]
        layout = self._layouts.pop((first, operations), None) or _Layout(first, alive, operations)
        self._layouts[first, operations] = layout
        if len(self._layouts) > MAX_LAYOUTS:
            del self._layouts[next(iter(self._layouts))]
        layout.follow(image)
        return layout


class _Layout:
    """The requested topics, encoded for one generation of clients."""

    __slots__ = ("_alive", "_all", "_image_topics", "_operations", "_pieces", "_version")

    def __init__(self, version: int, alive: frozenset[int], operations: int) -> None:
        self._version = version
        self._alive = alive
        self._operations = operations
        self._pieces: dict[bytes, tuple[Topic, bytes]] = {}  # by topic id
        self._image_topics: Mapping[str, Topic] = {}  # of the image that was followed last
        self._all: list[bytes] | None = None  # all of these

    @property
    def size(self) -> int:
        return len(self._pieces)

    def follow(self, image: ClusterImage) -> None:
        if image.topics is self._image_topics:
            return
        self._image_topics = image.topics
        self._all = None
        if len(self._pieces) > len(image.topics):
            kept = self._pieces.items()
            self._pieces = {key: piece for key, piece in kept if key in image.names}

    def piece(self, topic: Topic) -> bytes:
        kept = self._pieces.get(topic.id)
        if kept is not None and kept[0] is topic:
            return kept[1]
        described = describe_topic(topic, self._alive, self._version, self._operations)
        encoded = encode_topic(described, self._version)
        self._pieces[topic.id] = (topic, encoded)
        return encoded

    def missing(self, topics: Iterable[Topic]) -> list[Topic]:
        pieces = self._pieces
        return [
            topic
            for topic in topics
            if (kept := pieces.get(topic.id)) is None or kept[0] is not topic
        ]

    def all(self, at_most: int) -> list[bytes] | None:
        if self._all is None:
            topics = self._image_topics.values()
            if sum(len(topic.partitions) for topic in self.missing(topics)) > at_most:
                return None
            self._all = list(map(self.piece, topics))
        return self._all
