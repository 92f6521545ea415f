"""A cluster in which every text that a stranger may choose tries to become markup."""

from typing import Final

from brokers.controlplane import models
from tests.builders.addresses import NAME
from tests.builders.live import Told
from tests.console import cluster_rows
from tests.console.collected import collect
from tests.fakes.broker_feed import Feed

# Ends an attribute and an element, and begins a script.
HOSTILE: Final = "'\"></td></script><script>alert(1)</script><img src=x onerror=alert(2)>"


def make_hostile(told: Told) -> None:
    """Make rows; topics alone have harmless names, for Kafka allows no others."""
    cluster = cluster_rows.cluster(name=HOSTILE)
    cluster_rows.broker(cluster, 1, rack=HOSTILE)
    models.Broker.objects.update(host=HOSTILE)
    cluster_rows.topic(cluster, NAME, partitions=2, configs={HOSTILE: HOSTILE})
    cluster_rows.change(cluster, 7, HOSTILE, actor=HOSTILE, kind="create topic")
    cluster_rows.audit_entry(
        cluster,
        1,
        name=HOSTILE,
        actor=HOSTILE,
        client_id=HOSTILE,
        message=HOSTILE,
        before={HOSTILE: HOSTILE},
        after={HOSTILE: [HOSTILE]},
    )
    feed = Feed()
    feed.partition(NAME, 0, end=50, size=5_000)
    feed.partition(NAME, 1, end=50, size=5_000)
    for group in (HOSTILE, NAME):
        feed.put("groups", [group, HOSTILE, HOSTILE, 1, 1, 0])
        feed.commit(group, NAME, 0, 41)
        feed.put("members", [group, HOSTILE, HOSTILE, HOSTILE, HOSTILE, [[NAME, [0]]]])
    feed.put("topics", [NAME, 10, 10])
    feed.put("clients", [HOSTILE, HOSTILE, HOSTILE, 3, 6_000, 0, 60])
    feed.put("apis", ["Produce", 600, 1, [300, 300, 0]])
    collect(told, {1: feed}, {1: HOSTILE})
