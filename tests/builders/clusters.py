"""Images of clusters for tests, every value defaulted."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from brokers.cluster.image import (
    Broker,
    ClusterImage,
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
