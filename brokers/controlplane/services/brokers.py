"""Registers, fences and unfences brokers.

Agents find out whether a broker is alive; these services write the result. An epoch is the version
of the change that registered the incarnation, so it grows with every registration, and a call for
an older epoch changes no row.
"""

from dataclasses import replace
from typing import Final

from django.db.models import Max

from brokers.cluster import levels
from brokers.cluster.changes import BrokerChanged
from brokers.cluster.decisions import MAX_PRODUCER_ID
from brokers.cluster.image import Broker
from brokers.cluster.store import Registered, Registration
from brokers.controlplane import models, values
from brokers.controlplane.database import transactional
from brokers.controlplane.logs import log
from brokers.controlplane.services.levels import raise_level
from brokers.controlplane.services.transactions import append_change
from brokers.protocol.errors import ErrorCode, KafkaError

AGENT: Final = "agent"  # the actor of registrations and fences in the list of changes
MAX_PORT: Final = 2**16 - 1
MAX_BROKER_ID: Final = 2**31 - 1  # as the protocol has it


@transactional
def register_broker(
    *, cluster_id: str, registration: Registration, agent_id: str, process: str, now_ms: int
) -> Registered:
    """Give an incarnation its epoch, and a broker without an id its id.

    The same incarnation registers again after a lost answer or link, and keeps its epoch. Another
    one replaces it; the caller has made sure that the former is dead, or was never this host's.
    """
    _check(registration)
    cluster = models.Cluster.objects.get(cluster_id=cluster_id)
    if registration.cluster_id not in {"", cluster_id}:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"the log dir belongs to cluster {registration.cluster_id}, this is cluster "
            f"{cluster_id}: start the broker with the home it was made in, or with an empty one",
        )
    row = _locked(cluster, registration)
    _raise_producer_ids(cluster, registration.highest_producer_id)
    if row is not None and bytes(row.incarnation) == registration.incarnation:
        if (row.agent_id, row.process) != (agent_id, process):
            cluster.brokers.filter(pk=row.pk).update(agent_id=agent_id, process=process)
        return _registered(cluster_id, values.broker(row))
    row = row or _new_row(cluster, registration, agent_id, now_ms)
    cluster.brokers.filter(pk=row.pk).update(
        incarnation=registration.incarnation,
        log_dir_id=registration.log_dir_id,
        process=process,
        registered_at_ms=now_ms,
        metadata_level=registration.metadata_level,
    )
    broker = _broker(row.broker_id, registration, agent_id)
    change = append_change(
        cluster,
        lambda version: [BrokerChanged(replace(broker, epoch=version))],
        actor=AGENT,
        now_ms=now_ms,
    )
    # The change has locked the cluster's row: the level cannot change before the commit.
    if registration.metadata_level > cluster.metadata_level:
        raise_level(cluster)
    levels.check_member(f"broker {broker.id}", registration.metadata_level, cluster.metadata_level)
    return _registered(cluster_id, replace(broker, epoch=change.position.version))


def fence_broker(*, cluster_id: str, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
    """Fence a broker: it leads nothing and may propose nothing. False: not under this epoch."""
    return _set_fenced(
        cluster_id=cluster_id,
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        is_fenced=True,
        now_ms=now_ms,
    )


def unfence_broker(*, cluster_id: str, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
    """Unfence a broker that has applied its own registration. False: not under this epoch."""
    return _set_fenced(
        cluster_id=cluster_id,
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        is_fenced=False,
        now_ms=now_ms,
    )


@transactional
def _set_fenced(
    *, cluster_id: str, broker_id: int, broker_epoch: int, is_fenced: bool, now_ms: int
) -> bool:
    cluster = models.Cluster.objects.get(cluster_id=cluster_id)
    row = (
        cluster.brokers.select_for_update()
        .filter(broker_id=broker_id, epoch=broker_epoch, is_fenced=not is_fenced)
        .first()
    )
    if row is None:
        return False
    record = BrokerChanged(replace(values.broker(row), is_fenced=is_fenced))
    append_change(cluster, lambda _version: [record], actor=AGENT, now_ms=now_ms)
    return True


def _check(registration: Registration) -> None:
    """Refuse values that no row can hold and that could not be sent to clients."""
    texts = {
        "host": (registration.host, models.HOST_CHARS),
        "rack": (registration.rack or "", models.RACK_CHARS),
        "boot id": (registration.boot_id, models.UUID_CHARS),
    }
    for name, (text, limit) in texts.items():
        if len(text) > limit or "\0" in text:
            raise KafkaError(
                ErrorCode.INVALID_REGISTRATION,
                f"the {name} {text[:limit]!r} of a broker is longer than {limit} characters or "
                f"holds a NUL",
            )
    numbers = {
        "port": (registration.port, MAX_PORT),
        "inspection port": (registration.inspection_port, MAX_PORT),
        "id": (max(registration.broker_id, 0), MAX_BROKER_ID),
        "wanted id": (max(registration.wanted_id, 0), MAX_BROKER_ID),
        # The counter stands one above it.
        "highest producer id": (max(registration.highest_producer_id, 0), MAX_PRODUCER_ID - 1),
        "metadata level": (registration.metadata_level, levels.MAX_LEVEL),
    }
    for name, (number, limit) in numbers.items():
        if not 0 <= number <= limit:
            raise KafkaError(
                ErrorCode.INVALID_REGISTRATION,
                f"the {name} {number} of a broker is not between 0 and {limit}",
            )


def _raise_producer_ids(cluster: models.Cluster, highest: int) -> None:
    """Move the counter above an id that a broker has seen, if the database went back behind it."""
    counter = models.ProducerIds.objects.filter(cluster=cluster, next_id__lte=highest)
    if highest >= 0 and counter.update(next_id=highest + 1):
        log.warning("producer_ids.raised", above=highest)


def _locked(cluster: models.Cluster, registration: Registration) -> models.Broker | None:
    rows = cluster.brokers.select_for_update()
    if registration.broker_id >= 0:
        return rows.filter(broker_id=registration.broker_id).first()
    # The answer with the id may have been lost.
    return rows.filter(incarnation=registration.incarnation).first()


def _new_row(
    cluster: models.Cluster, registration: Registration, agent_id: str, now_ms: int
) -> models.Broker:
    broker_id = registration.broker_id
    if broker_id < 0:
        broker_id = _free_id(cluster, registration.wanted_id)
    return models.Broker.objects.create(
        cluster=cluster,
        broker_id=broker_id,
        epoch=0,
        incarnation=registration.incarnation,
        log_dir_id=registration.log_dir_id,
        host=registration.host,
        port=registration.port,
        agent_id=agent_id,
        registered_at_ms=now_ms,
    )


def _free_id(cluster: models.Cluster, wanted_id: int) -> int:
    """Return the id that a new broker wants, or the next one if it is taken."""
    if wanted_id > 0 and not cluster.brokers.filter(broker_id=wanted_id).exists():
        return wanted_id
    highest: int = cluster.brokers.aggregate(highest=Max("broker_id"))["highest"] or 0
    return highest + 1


def _broker(broker_id: int, registration: Registration, agent_id: str) -> Broker:
    return Broker(
        id=broker_id,
        epoch=0,
        host=registration.host,
        port=registration.port,
        rack=registration.rack,
        is_fenced=True,
        inspection_port=registration.inspection_port,
        agent_id=agent_id,
        boot_id=registration.boot_id,
    )


def _registered(cluster_id: str, broker: Broker) -> Registered:
    return Registered(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        cluster_id=cluster_id,
        version=broker.epoch,
    )
