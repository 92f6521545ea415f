"""Rows of a cluster as the control plane keeps them, every value defaulted."""

import time
from collections.abc import Mapping

from brokers.cluster.image import ResourceType
from brokers.controlplane import models

CLUSTER_ID = "0hUvQ2rWSx6lJ3u8T6kRrg"
NOW_MS = int(time.time() * 1000)


def cluster(
    *, cluster_id: str = CLUSTER_ID, name: str = "orders-prod", version: int = 7
) -> models.Cluster:
    return models.Cluster.objects.create(
        cluster_id=cluster_id,
        name=name,
        version=version,
        change_id=bytes(16),
        created_at_ms=NOW_MS,
    )


def broker(
    of: models.Cluster, broker_id: int, *, is_fenced: bool = False, rack: str | None = None
) -> models.Broker:
    return models.Broker.objects.create(
        cluster=of,
        broker_id=broker_id,
        epoch=100 + broker_id,
        incarnation=bytes(16),
        log_dir_id=bytes(16),
        host="127.0.0.1",
        port=9091 + broker_id,
        rack=rack,
        is_fenced=is_fenced,
        agent_id="agent",
        boot_id="boot",
        # Long ago, so that it is not taken for one that starts.
        registered_at_ms=NOW_MS - 3_600_000,
    )


def topic(
    of: models.Cluster,
    name: str,
    *,
    partitions: int = 1,
    leader: int = 1,
    configs: Mapping[str, str] | None = None,
) -> models.Topic:
    made = models.Topic.objects.create(
        cluster=of,
        topic_id=name.encode().ljust(16, b"\0")[:16],
        name=name,
        collision_key=name.replace(".", "_"),
        version=1,
        created_at_ms=NOW_MS,
    )
    for index in range(partitions):
        models.Partition.objects.create(
            topic=made, index=index, replicas=[leader], isr=[leader], leader=leader
        )
    of.partition_count += partitions
    of.save()
    if configs:
        models.ResourceConfig.objects.create(
            cluster=of, resource_type=ResourceType.TOPIC, name=name, configs=dict(configs)
        )
    return made


def audit_entry(
    of: models.Cluster,
    number: int,
    *,
    name: str = "orders",
    at_ms: int = NOW_MS,
    **fields: object,
) -> models.AuditEntry:
    values: dict[str, object] = {
        "actor": "User:alice",
        "via": "wire",
        "kind": "alter configs",
        "subject": "topic",
        "outcome": "NONE",
        "before": {},
        "after": {},
        "version": 7,
        "digest": "d" * 64,
        "last_at_ms": at_ms,
    }
    return models.AuditEntry.objects.create(
        cluster=of, number=number, name=name, made_at_ms=at_ms, **(values | fields)
    )


def change(
    of: models.Cluster,
    version: int,
    summary: str,
    *,
    at_ms: int = NOW_MS,
    actor: str = "User:alice",
    kind: str = "",
) -> None:
    models.Change.objects.create(
        cluster=of,
        version=version,
        change_id=version.to_bytes(16),
        encoded=b"",
        summary=summary,
        actor=actor,
        made_at_ms=at_ms,
        kind=kind,
    )
