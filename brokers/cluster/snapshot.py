"""Cuts an image into small pieces, and rebuilds an image from its pieces.

Knows no frames. A serving broker must not stall while it loads a large cluster, so a piece covers
at most a few hundred partitions and a topic may come in several; an image is not visible before it
is complete.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from brokers.cluster.changes import ConfigsChanged
from brokers.cluster.image import (
    Broker,
    ClusterImage,
    Configs,
    DeletedTopic,
    PartitionState,
    Position,
    ResourceType,
    Topic,
)

# About 0.3 ms to decode and add, a third of a slice.
PARTITIONS_PER_PIECE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPiece:
    """A topic from its partition `first_index` on; the pieces of a topic follow each other."""

    name: str
    id: bytes
    version: int
    first_index: int
    partitions: tuple[PartitionState, ...]


Piece: TypeAlias = Broker | TopicPiece | ConfigsChanged | DeletedTopic


def pieces_of(image: ClusterImage) -> Iterator[Piece]:
    """Yield the content of an image, except its cluster id and position."""
    yield from image.brokers.values()
    for topic in image.topics.values():
        for first in range(0, len(topic.partitions), PARTITIONS_PER_PIECE):
            yield TopicPiece(
                name=topic.name,
                id=topic.id,
                version=topic.version,
                first_index=first,
                partitions=topic.partitions[first : first + PARTITIONS_PER_PIECE],
            )
    for (kind, name), configs in image.configs.items():
        yield ConfigsChanged(kind, name, tuple(configs.items()))
    yield from image.deleted.values()


class ImageBuilder:
    """Makes one image out of pieces. Used once, by one task."""

    __slots__ = ("_brokers", "_cluster_id", "_configs", "_deleted", "_names", "_topics")

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._brokers: dict[int, Broker] = {}
        self._topics: dict[str, Topic] = {}
        self._names: dict[bytes, str] = {}
        self._configs: dict[tuple[ResourceType, str], Configs] = {}
        self._deleted: dict[bytes, DeletedTopic] = {}

    def add(self, piece: Piece) -> None:
        match piece:
            case TopicPiece():
                self._add_topic(piece)
            case Broker():
                self._brokers[piece.id] = piece
            case ConfigsChanged():
                key = (piece.resource_type, piece.name)
                self._configs[key] = MappingProxyType(dict(piece.configs))
            case DeletedTopic():
                self._deleted[piece.id] = piece

    def image(self, position: Position) -> ClusterImage:
        return ClusterImage(
            cluster_id=self._cluster_id,
            position=position,
            brokers=MappingProxyType(self._brokers),
            topics=MappingProxyType(self._topics),
            names=MappingProxyType(self._names),
            configs=MappingProxyType(self._configs),
            deleted=MappingProxyType(self._deleted),
        )

    def _add_topic(self, piece: TopicPiece) -> None:
        known = self._topics.get(piece.name)
        before = () if known is None else known.partitions
        assert len(before) == piece.first_index, (
            f"{piece.name} has {len(before)} partitions when those from {piece.first_index} come"
        )
        self._topics[piece.name] = Topic(
            name=piece.name,
            id=piece.id,
            version=piece.version,
            partitions=before + piece.partitions,
        )
        self._names[piece.id] = piece.name
