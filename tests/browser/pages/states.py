"""A cluster in each of the four states that a page can be in."""

from collections.abc import Callable, Mapping

from django.db import connections
from django.test import Client

from console.queries.reading import State
from tests.builders import live
from tests.builders.addresses import NAME, addresses
from tests.builders.live import Told
from tests.console import cluster_rows

CLUSTER = cluster_rows.CLUSTER_ID


def make_empty(told: Told) -> None:
    """Have a cluster that nothing was done with."""
    cluster_rows.broker(cluster_rows.cluster(), 1)
    told.put(live.broker(1))


def make_loaded(told: Told) -> None:
    """Have a cluster with something of everything, good and bad."""
    cluster = cluster_rows.cluster()
    cluster_rows.broker(cluster, 1)
    cluster_rows.broker(cluster, 2, is_fenced=True, rack="rack-b")
    cluster_rows.topic(cluster, NAME, partitions=3, configs={"retention.ms": "3600000"})
    cluster_rows.topic(cluster, "payments", leader=-1)
    cluster_rows.change(cluster, 7, f"topic {NAME} was created", kind="create topic")
    cluster_rows.audit_entry(cluster, 1, before={"a": "1"}, after={"a": "2"})
    cluster_rows.audit_entry(cluster, 2, outcome="INVALID_CONFIG", message="why not")
    told.put(
        live.broker(1, bytes_in_per_s=1e6, partitions=4),
        live.broker(2, answered_ms=None, failure="connection refused"),
        live.topic(NAME, partitions=3, lag=120, verdict="slow", worst_group=NAME),
        live.topic("payments"),
        live.group(NAME, lag=120, verdict="slow", eta_low_s=60.0, eta_high_s=90.0),
        live.group("billing", lag=5_000, verdict="stalled", members=0, state="Empty"),
        live.pair(NAME, NAME, lag=120, verdict="slow", partitions=3),
        live.pair("billing", "payments", lag=5_000, verdict="stalled"),
    )


def break_down(told: Told) -> None:
    """Take the databases and the collector away."""
    told.failure = "the collector does not answer"
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE controlplane_cluster RENAME TO elsewhere")


def make_failed(told: Told) -> None:
    make_loaded(told)
    told.begin_silent()
    break_down(told)


MAKERS: Mapping[State, Callable[[Told], None]] = {
    State.EMPTY: make_empty,
    State.LOADED: make_loaded,
    State.FAILED: make_failed,
    # What was read before grows old.
    State.STALE: make_loaded,
}


def pages_of(user: Client) -> list[str]:
    """Return the address of every page that a browser shows to this user."""
    user.raise_request_exception = False
    found = []
    for address in addresses():
        path = f"{address.path}?cluster={CLUSTER}"
        answer = user.get(path)
        is_page = answer.get("Content-Type", "").startswith("text/html")
        if is_page and not answer.streaming and b"<html" in answer.content:
            found.append(path)
    return found
