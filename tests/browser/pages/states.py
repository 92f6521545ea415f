"""A cluster in each of the four states that a page can be in."""

import re
from collections.abc import Mapping
from typing import Any

from django.db import connections
from django.test import Client

from brokers.controlplane.models import Cluster
from console.queries.reading import State
from tests.builders import connectors, live
from tests.builders.addresses import NAME, addresses
from tests.builders.live import Told
from tests.console import cluster_rows
from tests.console.collected import collect
from tests.console.conftest import forget_readings
from tests.fakes.broker_feed import Feed

CLUSTER = cluster_rows.CLUSTER_ID
# The token of a form, the target of a link, numbers.
VARYING = re.compile(r'value="\w{64}"|(?:href|action)="[^"]*"|\d+')


def make_empty(told: Told) -> None:
    """Have a cluster that nothing was done with."""
    cluster_rows.broker(cluster_rows.cluster(), 1)
    told.put(live.broker(1))


def fill(told: Told) -> None:
    """Have something of everything in the empty cluster, good and bad."""
    cluster = Cluster.objects.get()
    cluster_rows.broker(cluster, 2, is_fenced=True, rack="rack-b")
    cluster_rows.topic(cluster, NAME, partitions=3, configs={"retention.ms": "3600000"})
    cluster_rows.topic(cluster, "payments", leader=-1)
    cluster_rows.change(cluster, 7, f"topic {NAME} was created", kind="create topic")
    cluster_rows.audit_entry(cluster, 1, before={"a": "1"}, after={"a": "2"})
    cluster_rows.audit_entry(cluster, 2, outcome="INVALID_CONFIG", message="why not")
    make_connectors()
    collect(told, {1: loaded_feed()}, {1: "127.0.0.1:9092", 2: "127.0.0.1:9093"})


def make_connectors() -> None:
    """Have one connector that works in part, and one that is paused."""
    partly = connectors.connector(CLUSTER, NAME)
    connectors.task(partly, 0, figures={"written_per_s": 12.5, "records_written": 900})
    connectors.task(partly, 1, state="FAILED", trace="DataError: 17 is not text\n  at line 3")
    connectors.line(partly, "began at record 0", level="WARNING")
    connectors.offset(partly, {"task": 0}, {"record": 900})
    connectors.connector(CLUSTER, "to-files", kind="sink", target="PAUSED", state="PAUSED")
    make_spark()


def make_spark() -> None:
    """Have a session of Spark that has failed before, with a query at work and one that failed."""
    lake = connectors.spark_connector(CLUSTER, "lake")
    batch = connectors.spark_batch(ended_ms=1_790_000_000_000, newest_ms=1_790_000_000_000)
    connectors.task(lake, figures={"last_batch": batch})
    query = connectors.spark_connector(
        CLUSTER,
        "large-orders",
        plugin="samsa.spark.sql",
        config={"output.topic": "payments", "query": "SELECT id FROM orders"},
    )
    connectors.task(query, state="FAILED", trace="ConnectorError: there is no column x")
    stream = {"name": "totals", "message": "Waiting for data to arrive", "batch": 7, "rows": 120}
    connectors.spark_report(
        CLUSTER,
        failure="Spark's Java process has ended by signal 9",
        wants_ui=True,
        engine={"ui_url": "http://127.0.0.1:4040"},
        streams=[stream],
    )


def loaded_feed() -> Feed:
    feed = Feed()
    for index in range(3):
        feed.partition(NAME, index, end=500, size=50_000)
    feed.partition("payments", 0, start=20, end=9_000, size=900_000)
    feed.put("groups", [NAME, "consumer", "Stable", 3, 2, 1])
    feed.put("groups", ["billing", "classic", "Empty", 1, 0, 4])
    for index in range(3):
        feed.commit(NAME, NAME, index, 460)
    feed.commit("billing", "payments", 0, 10)
    feed.put("members", [NAME, "m-1", None, "app", "10.0.0.1", [[NAME, [0, 1]]]])
    feed.put("members", [NAME, "m-2", "static-2", "app", "10.0.0.2", [[NAME, [2]]]])
    feed.put("topics", [NAME, 10_000, 20_000])
    feed.put("clients", ["app", "librdkafka", "2.16", 3, 6_000, 0, 60])
    feed.put("apis", ["Produce", 600, 1, [300, 300, 0]])
    return feed


def break_down() -> None:
    """Take the rows of the cluster away."""
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE controlplane_cluster RENAME TO elsewhere")


def enter(state: State, user: Client, told: Told) -> Mapping[str, str]:
    """Bring a cluster into a state; return the addresses of its pages by what they say.

    A cluster is empty before it is loaded, and stale before it is failed.
    """
    if state is State.FAILED:
        told.begin_silent()
        forget_readings()
        return pages_of(user)
    if state is not State.LOADED:
        make_empty(told)
    if state is State.EMPTY:
        return pages_of(user)
    fill(told)
    pages = pages_of(user)
    if state is State.LOADED:
        return pages
    # What was read just now grows old.
    told.go_silent()
    break_down()
    return {content_of(user.get(path)): path for path in pages.values()}


def pages_of(user: Client) -> Mapping[str, str]:
    """Return the addresses of the pages that a browser shows to this user, one for each content."""
    user.raise_request_exception = False
    found: dict[str, str] = {}
    for address in addresses():
        # Pages about a group take its name from the query.
        path = f"{address.path}?cluster={CLUSTER}&name={NAME}"
        answer = user.get(path)
        is_page = answer.get("Content-Type", "").startswith("text/html")
        if is_page and not answer.streaming and b"<html" in answer.content:
            found.setdefault(content_of(answer), path)
    return found


def content_of(answer: Any) -> str:
    """Return what a page says within its frame, without ids, times and links.

    Dozens of addresses answer with the same words where there is no such topic or no cluster.
    """
    _, _, content = answer.content.decode().partition("<main")
    return VARYING.sub("", content)
