"""Images of clusters for tests, every value defaulted."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from brokers.cluster.image import (
    Broker,
    ClusterImage,
    DeletedTopic,
    PartitionState,
    Position,
    ResourceType,
    Topic,
)

CLUSTER_ID = "test-cluster-of-samsa-A"


def broker(number: int = 1, *, rack: str | None = None, is_fenced: bool = False) -> Broker:
    return Broker(
        id=number,
        epoch=number * 10,
        host=f"broker-{number}.test",
        port=9090 + number,
        rack=rack,
        is_fenced=is_fenced,
    )


def topic_id(name: str) -> bytes:
    return name.encode()[:16].rjust(16, b"\x01")


def topic(
    name: str,
    *,
    partitions: int = 1,
    replicas: tuple[int, ...] = (1,),
    leader: int | None = None,
    leader_epoch: int = 0,
) -> Topic:
    state = PartitionState(
        replicas=replicas,
        isr=replicas,
        leader=replicas[0] if leader is None else leader,
        leader_epoch=leader_epoch,
    )
    return Topic(name=name, id=topic_id(name), partitions=(state,) * partitions)


def image(
    topics: Iterable[Topic] = (),
    *,
    brokers: Iterable[Broker] = (broker(),),
    configs: Mapping[tuple[ResourceType, str], Mapping[str, str]] | None = None,
) -> ClusterImage:
    known = {each.name: each for each in topics}
    return ClusterImage(
        cluster_id=CLUSTER_ID,
        position=Position(version=7, id=b"7" * 16),
        brokers=MappingProxyType({each.id: each for each in brokers}),
        topics=MappingProxyType(known),
        names=MappingProxyType({each.id: name for name, each in known.items()}),
        configs=MappingProxyType(dict(configs or {})),
    )


def without(before: ClusterImage, *names: str) -> ClusterImage:
    """Return the image once these topics are deleted, with their tombstones."""
    gone = {before.topics[name].id: before.topics[name] for name in names}
    version = before.version + 1
    tombstones = {
        topic.id: DeletedTopic(name=topic.name, id=topic.id, version=version)
        for topic in gone.values()
    }
    return replace(
        before,
        position=replace(before.position, version=version),
        topics=MappingProxyType({k: v for k, v in before.topics.items() if k not in names}),
        names=MappingProxyType({k: v for k, v in before.names.items() if k not in gone}),
        deleted=MappingProxyType({**before.deleted, **tombstones}),
    )


def with_topics(before: ClusterImage, *topics: Topic) -> ClusterImage:
    """Return the image once these topics are created."""
    return replace(
        before,
        position=replace(before.position, version=before.version + 1),
        topics=MappingProxyType({**before.topics, **{each.name: each for each in topics}}),
        names=MappingProxyType({**before.names, **{each.id: each.name for each in topics}}),
    )
