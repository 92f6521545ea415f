"""A cluster in which every text that a stranger may choose tries to become markup."""

from typing import Final

from brokers.controlplane import models
from tests.builders import live
from tests.builders.addresses import NAME
from tests.builders.live import Told
from tests.console import cluster_rows

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
    told.put(
        live.broker(1, address=HOSTILE, failure=HOSTILE),
        live.topic(NAME, partitions=2, lag=9, verdict="stalled", worst_group=HOSTILE),
        live.group(HOSTILE, lag=9, verdict="stalled", state=HOSTILE, type=HOSTILE),
        live.group(NAME, lag=9, verdict="slow"),
        live.pair(HOSTILE, NAME, lag=9, verdict="stalled"),
        live.pair(NAME, NAME, lag=9, verdict="slow"),
    )
