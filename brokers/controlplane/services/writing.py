"""Writes the records of a change to rows.

One writer for every record, whoever decided on it: brokers and tables get the same values. Knows no
rules; a record that does not fit the rows is a bug. Consecutive records of one kind are written
together, which makes a call with five hundred topics cheap.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from django.db.models import F

from brokers.cluster.changes import (
    BrokerChanged,
    BrokerRemoved,
    ConfigsChanged,
    PartitionChanged,
    PartitionsAdded,
    Record,
    TopicCreated,
    TopicRemoved,
)
from brokers.cluster.image import PartitionState, ResourceType
from brokers.cluster.topic_names import collision_key
from brokers.controlplane import models

# Rows of one INSERT: enough to make its overhead small, with few enough variables for SQLite.
ROWS_AT_ONCE: Final = 100


def write(cluster: models.Cluster, records: Sequence[Record], *, version: int, now_ms: int) -> None:
    """Write the records of the change of this version, in their order."""
    for kind, some in groupby(records, key=type):
        WRITERS[kind](cluster, list(some), version, now_ms)


def _change_brokers(
    cluster: models.Cluster, records: Iterable[BrokerChanged], version: int, _now_ms: int
) -> None:
    for record in records:
        broker = record.broker
        changed = cluster.brokers.filter(broker_id=broker.id).update(
            epoch=broker.epoch,
            host=broker.host,
            port=broker.port,
            rack=broker.rack,
            is_fenced=broker.is_fenced,
            inspection_port=broker.inspection_port,
            agent_id=broker.agent_id,
            boot_id=broker.boot_id,
            version=version,
        )
        assert changed == 1, f"broker {broker.id} has no row to change"


def _remove_brokers(
    cluster: models.Cluster, records: Iterable[BrokerRemoved], _version: int, _now_ms: int
) -> None:
    cluster.brokers.filter(broker_id__in=[record.broker_id for record in records]).delete()


def _create_topics(
    cluster: models.Cluster, records: Sequence[TopicCreated], version: int, now_ms: int
) -> None:
    rows = models.Topic.objects.bulk_create(
        [
            models.Topic(
                cluster=cluster,
                topic_id=record.topic_id,
                name=record.name,
                collision_key=collision_key(record.name),
                version=version,
                created_at_ms=now_ms,
            )
            for record in records
        ],
        batch_size=ROWS_AT_ONCE,
    )
    states = [(row, 0, record.partitions) for row, record in zip(rows, records, strict=True)]
    _insert_partitions(cluster, states)


def _add_partitions(
    cluster: models.Cluster, records: Sequence[PartitionsAdded], version: int, _now_ms: int
) -> None:
    rows = _topics_by_id(cluster, [record.topic_id for record in records])
    cluster.topics.filter(pk__in=[row.pk for row in rows.values()]).update(version=version)
    states = [(rows[record.topic_id], record.first_index, record.partitions) for record in records]
    _insert_partitions(cluster, states)


def _change_partitions(
    cluster: models.Cluster, records: Sequence[PartitionChanged], version: int, _now_ms: int
) -> None:
    for record in records:
        changed = models.Partition.objects.filter(
            topic__cluster=cluster, topic__topic_id=record.topic_id, index=record.index
        ).update(**_columns(record.state))
        assert changed == 1, f"{record} names no partition"
    cluster.topics.filter(topic_id__in={record.topic_id for record in records}).update(
        version=version
    )


def _remove_topics(
    cluster: models.Cluster, records: Sequence[TopicRemoved], version: int, _now_ms: int
) -> None:
    rows = _topics_by_id(cluster, [record.topic_id for record in records])
    keys = [row.pk for row in rows.values()]
    gone, _ = models.Partition.objects.filter(topic_id__in=keys).delete()
    cluster.topics.filter(pk__in=keys).delete()
    cluster.configs.filter(
        resource_type=ResourceType.TOPIC, name__in=[record.name for record in records]
    ).delete()
    _count_partitions(cluster, -gone)
    models.DeletedTopic.objects.bulk_create(
        [
            models.DeletedTopic(
                cluster=cluster, topic_id=record.topic_id, name=record.name, version=version
            )
            for record in records
        ],
        batch_size=ROWS_AT_ONCE,
    )


def _change_configs(
    cluster: models.Cluster, records: Sequence[ConfigsChanged], version: int, _now_ms: int
) -> None:
    # The last record of a resource counts: every record contains all its configs.
    last = {(record.resource_type, record.name): record for record in records}
    models.ResourceConfig.objects.bulk_create(
        [
            models.ResourceConfig(
                cluster=cluster,
                resource_type=kind,
                name=name,
                configs=dict(record.configs),
                version=version,
            )
            for (kind, name), record in last.items()
        ],
        batch_size=ROWS_AT_ONCE,
        update_conflicts=True,
        unique_fields=["cluster", "resource_type", "name"],
        update_fields=["configs", "version"],
    )


# A writer per kind of record; each gets consecutive records of its kind.
WRITERS: Final[Mapping[type[Record], Callable[[models.Cluster, Any, int, int], None]]] = {
    BrokerChanged: _change_brokers,
    BrokerRemoved: _remove_brokers,
    TopicCreated: _create_topics,
    PartitionsAdded: _add_partitions,
    PartitionChanged: _change_partitions,
    TopicRemoved: _remove_topics,
    ConfigsChanged: _change_configs,
}


def _insert_partitions(
    cluster: models.Cluster,
    topics: Iterable[tuple[models.Topic, int, Sequence[PartitionState]]],
) -> None:
    rows = [
        models.Partition(topic=topic, index=first + step, **_columns(state))
        for topic, first, states in topics
        for step, state in enumerate(states)
    ]
    models.Partition.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)
    _count_partitions(cluster, len(rows))


def _count_partitions(cluster: models.Cluster, more: int) -> None:
    models.Cluster.objects.filter(pk=cluster.pk).update(partition_count=F("partition_count") + more)


def _columns(state: PartitionState) -> dict[str, Any]:
    return {
        "replicas": state.replicas,
        "isr": state.isr,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
    }


def _topics_by_id(cluster: models.Cluster, ids: Sequence[bytes]) -> dict[bytes, models.Topic]:
    return {bytes(row.topic_id): row for row in cluster.topics.filter(topic_id__in=ids)}
