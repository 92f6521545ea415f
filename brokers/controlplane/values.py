"""Converts rows to the values of `brokers.cluster.image`, which brokers and pages share.

Reads only. Whole clusters are read as tuples of columns rather than as Django objects: a hundred
thousand partitions take about a second that way, and three times as long as objects.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from types import MappingProxyType

from brokers.cluster.apply import MAX_DELETED
from brokers.cluster.image import (
    Broker,
    ClusterImage,
    DeletedTopic,
    PartitionState,
    Position,
    ResourceType,
    Topic,
)
from brokers.controlplane import models

STATE_COLUMNS = ("topic_id", "replicas", "isr", "leader", "leader_epoch", "partition_epoch")


def broker(row: models.Broker) -> Broker:
    return Broker(
        id=row.broker_id,
        epoch=row.epoch,
        host=row.host,
        port=row.port,
        rack=row.rack,
        is_fenced=row.is_fenced,
        inspection_port=row.inspection_port,
        agent_id=row.agent_id,
        boot_id=row.boot_id,
    )


def topic(row: models.Topic, partitions: Sequence[PartitionState]) -> Topic:
    return Topic(
        name=row.name,
        id=bytes(row.topic_id),
        partitions=tuple(partitions),
        version=row.version,
    )


def partition_states(**which: object) -> Iterator[tuple[int, PartitionState]]:
    """Return partitions by the key of their topic, in the order of topics and indexes."""
    rows = models.Partition.objects.filter(**which).order_by("topic_id", "index")
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    for key, replicas, isr, leader, leader_epoch, partition_epoch in rows.values_list(
        *STATE_COLUMNS
    ).iterator():
        # Thousands of partitions have the same few sets of replicas: one tuple each.
        everywhere = tuple(replicas)
        in_sync = tuple(isr)
        yield (
            key,
            PartitionState(
                replicas=shared.setdefault(everywhere, everywhere),
                isr=shared.setdefault(in_sync, in_sync),
                leader=leader,
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
            ),
        )


def position(row: models.Cluster) -> Position:
    return Position(version=row.version, id=bytes(row.change_id))


def image(row: models.Cluster) -> ClusterImage:
    """Return the whole cluster; the caller's transaction makes it a consistent snapshot."""
    states: defaultdict[int, list[PartitionState]] = defaultdict(list)
    for key, state in partition_states(topic__cluster=row):
        states[key].append(state)
    topics = {found.name: topic(found, states[found.pk]) for found in row.topics.order_by("name")}
    deleted = row.deleted_topics.order_by("-version", "-pk")[:MAX_DELETED]
    return ClusterImage(
        cluster_id=row.cluster_id,
        position=position(row),
        brokers=MappingProxyType(
            {found.broker_id: broker(found) for found in row.brokers.order_by("broker_id")}
        ),
        topics=MappingProxyType(topics),
        names=MappingProxyType({found.id: found.name for found in topics.values()}),
        configs=MappingProxyType(
            {
                (ResourceType(found.resource_type), found.name): MappingProxyType(found.configs)
                for found in row.configs.all()
                if found.configs
            }
        ),
        deleted=MappingProxyType(
            {
                bytes(found.topic_id): DeletedTopic(
                    name=found.name, id=bytes(found.topic_id), version=found.version
                )
                for found in reversed(deleted)
            }
        ),
    )
