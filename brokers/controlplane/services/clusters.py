"""Creates and finds clusters, and starts epochs of the agents of their hosts."""

import base64
import secrets
import uuid
from typing import Final

from django.db.models import F

from brokers.cluster import levels
from brokers.cluster.image import NO_ID
from brokers.controlplane import models
from brokers.controlplane.database import transactional
from brokers.controlplane.services.cluster_secrets import add_missing
from brokers.controlplane.services.levels import raise_level

# The producer ids of a new cluster begin at a random multiple of 2^20 below 2^60, so that they do
# not meet those in folders of another cluster, nor those of an earlier one in the same log dirs.
_FIRST_ID_BITS: Final = 40
_FIRST_ID_SHIFT: Final = 20


def new_cluster_id() -> str:
    """Return 16 random bytes as Kafka writes them, never with a dash that looks like an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode("ascii")
        if not text.startswith("-"):
            return text


@transactional
def ensure_cluster(*, name: str, now_ms: int) -> models.Cluster:
    """Return the cluster of this name with its secrets; create what is missing."""
    cluster, is_new = models.Cluster.objects.get_or_create(
        name=name,
        defaults={"cluster_id": new_cluster_id(), "change_id": NO_ID, "created_at_ms": now_ms},
    )
    if is_new:
        models.ProducerIds.objects.create(cluster=cluster, next_id=_first_producer_id())
    # A cluster that an earlier release made has none.
    add_missing(cluster, now_ms=now_ms)
    return cluster


@transactional
def start_agent(
    *, cluster_id: str, agent_id: str, host: str, boot_id: str, now_ms: int
) -> models.Agent:
    """Begin the next epoch of a host's agent; KafkaError if its code is too old."""
    cluster = models.Cluster.objects.get(cluster_id=cluster_id)
    agent, _ = models.Agent.objects.update_or_create(
        cluster=cluster,
        agent_id=agent_id,
        defaults={
            "host": host,
            "boot_id": boot_id,
            "started_at_ms": now_ms,
            "metadata_level": levels.KNOWN_LEVEL,
        },
    )
    # It takes orders in this epoch only: an older release may start next.
    cluster.agents.filter(pk=agent.pk).update(epoch=F("epoch") + 1, orders_epoch=F("epoch") + 1)
    agent.refresh_from_db()
    raise_level(cluster)
    levels.check_member(f"the agent of {host}", levels.KNOWN_LEVEL, cluster.metadata_level)
    return agent


@transactional
def prove_writable(*, cluster_id: str, agent_id: str, writes: bool) -> None:
    """Take the lock that every change takes last, and write an unchanged row if asked."""
    # On SQLite, the transaction has taken the lock already.
    cluster = models.Cluster.objects.select_for_update(no_key=True).get(cluster_id=cluster_id)
    if writes:
        cluster.agents.filter(agent_id=agent_id).update(started_at_ms=F("started_at_ms"))


def _first_producer_id() -> int:
    return (1 + secrets.randbelow(2**_FIRST_ID_BITS - 1)) << _FIRST_ID_SHIFT
