"""Raises the metadata level of a cluster once all registered agents and brokers know it.

A broker or agent counts from its registration until its row is removed, also while it is away: it
may come back at any time, and would not understand newer records.
"""

from django.db.models import Min

from brokers.cluster import levels
from brokers.cluster.levels import LevelTooLow
from brokers.controlplane import models
from brokers.protocol.errors import KafkaError


def raise_level(cluster: models.Cluster) -> None:
    """Raise the level to what every registered agent and broker knows, and this code too.

    Runs in the caller's transaction, which has written the registration. The cluster's row is
    locked first: of two that register at the same time, the second sees the first.
    """
    row = models.Cluster.objects.select_for_update().get(pk=cluster.pk)
    known = [
        rows.aggregate(lowest=Min("metadata_level"))["lowest"] for rows in (row.agents, row.brokers)
    ]
    level = min([levels.KNOWN_LEVEL, *(lowest for lowest in known if lowest is not None)])
    if level > row.metadata_level:
        models.Cluster.objects.filter(pk=row.pk).update(metadata_level=level)
        row.metadata_level = level
    cluster.metadata_level = row.metadata_level


def holders(cluster: models.Cluster, below: int) -> list[str]:
    """Return, in words, the agents and brokers that know less than a level."""
    agents = cluster.agents.filter(metadata_level__lt=below).order_by("pk")
    brokers = cluster.brokers.filter(metadata_level__lt=below).order_by("broker_id")
    return [
        *(f"the agent of {row.host} knows {row.metadata_level}" for row in agents),
        *(
            f"broker {row.broker_id} at {row.host}:{row.port} knows {row.metadata_level}"
            for row in brokers
        ),
    ]


def named(cluster: models.Cluster, refusal: LevelTooLow) -> KafkaError:
    """Return a refusal with the names of the agents and brokers that an operator has to update."""
    return refusal.held_back_by(holders(cluster, refusal.needed))
