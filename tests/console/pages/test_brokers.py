"""The pages of brokers, as a browser gets them."""

import time
from typing import Any

import pytest
from django.test import Client

from brokers.cluster.image import ResourceType
from brokers.controlplane import models
from tests.builders import live
from tests.builders.live import Told
from tests.console import cluster_rows
from tests.console.cluster_rows import CLUSTER_ID, NOW_MS

HOSTILE = "<script>alert(1)</script>"
AT = f"?cluster={CLUSTER_ID}"
GB = 10**9


def series(**_query: Any) -> dict[str, Any]:
    return {"start_s": 0, "step_s": 300, "samples": [100 * GB - at * 10**8 for at in range(288)]}


def detail(**_query: Any) -> dict[str, Any]:
    return {
        "ms": 60_000,
        "bucket_bounds_ms": [1.0, 2.0],
        "apis": [["Produce", 600, 1, [300, 300, 0]]],
        "clients": [[HOSTILE, "librdkafka", "2.16", 3, 6000, 0, 60]],
        "earlier": {"ms": 0, "apis": [], "clients": []},
        "groups": ["billing"],
        "group_count": 1,
    }


def make_cluster(told: Told) -> models.Cluster:
    """Make a cluster of two brokers on a host whose agent takes orders."""
    cluster = cluster_rows.cluster()
    models.Agent.objects.create(
        cluster=cluster,
        agent_id="agent",
        epoch=3,
        orders_epoch=3,
        host="host-a",
        boot_id="",
        started_at_ms=NOW_MS,
    )
    cluster_rows.broker(cluster, 1, rack="rack-a")
    cluster_rows.broker(cluster, 2)
    cluster_rows.topic(cluster, "orders", partitions=3, leader=1)
    told.put(
        live.broker(1, bytes_in_per_s=2048.0, connections=7, partitions=3),
        live.broker(2, disk_free_bytes=5 * GB),
        live.topic("orders", bytes_in_per_s=2048.0, bytes_out_per_s=10.0),
    )
    told.answers.update({"/series": series, "/broker": detail})
    return cluster


def page_of(browser: Client, path: str) -> str:
    # Parts of a page, which its script asks for, lead to the page otherwise.
    is_part = "/order?" in path or "/log/" in path
    answer = browser.get(path, headers={"HX-Request": "true"} if is_part else {})
    assert answer.status_code == 200, (path, answer.status_code)
    return answer.content.decode()


def order(cluster: models.Cluster, **values: Any) -> models.BrokerOrder:
    row: dict[str, Any] = {
        "broker_id": 1,
        "broker_epoch": 101,
        "agent_id": "agent",
        "verb": "restart",
        "actor": "User:olga",
        "asked_at_ms": int(time.time() * 1000),
        "deadline_ms": int(time.time() * 1000) + 60_000,
        "state": "waiting",
    }
    return models.BrokerOrder.objects.create(cluster=cluster, **{**row, **values})


def test_the_list_says_how_each_broker_is(victor: Client, told: Told) -> None:
    make_cluster(told)

    page = page_of(victor, f"/brokers{AT}")

    for text in ("127.0.0.1:9092", "host-a", "rack-a", "Serving", "2 KiB/s", "95 %", "in 2"):
        assert text in page, text
    assert "2 of 2 serving" in page


def test_a_broker_that_somebody_stopped_says_who(victor: Client, told: Told) -> None:
    make_cluster(told)
    models.Broker.objects.filter(broker_id=2).update(
        is_fenced=True, held_by=HOSTILE, held_at_ms=NOW_MS
    )

    page = page_of(victor, f"/brokers{AT}")

    assert "Stopped" in page
    assert "by &lt;script&gt;" in page
    assert HOSTILE not in page


@pytest.mark.parametrize(
    ("sort", "first"), [("id", "9092"), ("-id", "9093"), ("-disk", "9093"), ("<b>", "9092")]
)
def test_the_list_is_sorted_by_any_column(
    victor: Client, told: Told, sort: str, first: str
) -> None:
    make_cluster(told)

    page = victor.get("/brokers", {"cluster": CLUSTER_ID, "sort": sort}).content.decode()

    other = {"9092": "9093", "9093": "9092"}[first]
    assert page.index(f"127.0.0.1:{first}") < page.index(f"127.0.0.1:{other}")


def test_the_list_goes_on_while_the_collector_is_away(victor: Client, told: Told) -> None:
    make_cluster(told)
    told.begin_silent()

    page = page_of(victor, f"/brokers{AT}")

    assert "The collector has sent nothing yet" in page
    assert "Serving" in page


def test_a_cluster_without_brokers_says_how_to_start_one(victor: Client) -> None:
    cluster_rows.cluster()

    assert "No broker has registered" in page_of(victor, f"/brokers{AT}")


def test_a_silent_broker_is_told_from_a_fenced_one(victor: Client, told: Told) -> None:
    make_cluster(told)
    told.put(live.broker(1, failure="connection refused"))
    models.Broker.objects.filter(broker_id=2).update(is_fenced=True, registered_at_ms=1)

    page = page_of(victor, f"/brokers{AT}")

    assert "Silent" in page
    assert "connection refused" in page
    assert "Fenced" in page


def test_the_page_of_a_broker_shows_requests_and_charts(victor: Client, told: Told) -> None:
    make_cluster(told)

    page = page_of(victor, f"/brokers/1{AT}")

    for text in ("Produce", "10/s", "of the last 60 s", 'data-metric="bytes_in,bytes_out"'):
        assert text in page, text
    # A viewer is offered nothing.
    assert "/brokers/1/stop" not in page


def test_clients_are_named_and_never_markup(victor: Client, told: Told) -> None:
    make_cluster(told)

    page = page_of(victor, f"/brokers/1{AT}&tab=clients")

    assert "&lt;script&gt;alert(1)" in page
    assert HOSTILE not in page
    assert "librdkafka 2.16" in page
    assert "billing" in page


def test_configs_stand_with_their_source(alice: Client, told: Told) -> None:
    cluster = make_cluster(told)
    models.ResourceConfig.objects.create(
        cluster=cluster,
        resource_type=ResourceType.BROKER,
        name="1",
        configs={"log.retention.ms": HOSTILE},
    )
    models.ResourceConfig.objects.create(
        cluster=cluster,
        resource_type=ResourceType.BROKER,
        name="",
        configs={"num.partitions": "12", "num.io.threads": "16", "their.password": "s3cret"},
    )

    page = page_of(alice, f"/brokers/1{AT}&tab=configs")

    assert "without the configs that broker 1 was started with" in page
    # What has no effect can be set back, and a config that brokers do not know may be a secret.
    for key in ("num.io.threads", "their.password"):
        assert f"key={key}#edit" in page
    assert "s3cret" not in page
    assert "Brokers do not know this config" in page
    assert "leader.replication.throttled.rate" not in page
    for text in ("this broker", "all brokers", "num.partitions", "&lt;script&gt;", "Ask broker 1"):
        assert text in page, text
    assert HOSTILE not in page


def test_a_change_of_a_config_is_previewed(alice: Client, told: Told) -> None:
    make_cluster(told)
    models.Cluster.objects.update(metadata_level=2)
    form = {
        "cluster": CLUSTER_ID,
        "key": "log.retention.ms",
        "value": "1 min",
        "scope": "one",
        "do": "set",
    }

    answer = alice.post("/brokers/1/configs", form)

    assert answer.status_code == 200
    page = answer.content.decode()
    assert "log.retention.ms" in page
    assert "60000" in page
    assert "/plans/apply" in page


def test_value_that_is_no_duration_is_refused_in_its_form(alice: Client, told: Told) -> None:
    make_cluster(told)
    models.Cluster.objects.update(metadata_level=2)
    form = {"cluster": CLUSTER_ID, "key": "log.retention.ms", "value": "2x", "do": "set"}

    answer = alice.post(f"/brokers/1/configs?cluster={CLUSTER_ID}", form)

    assert answer.status_code == 400
    assert "“2x” is not a duration: write 2d, 12h" in answer.content.decode()
    assert 'value="2x"' in answer.content.decode()


def test_what_holds_for_the_cluster_is_changed_for_all_brokers(alice: Client, told: Told) -> None:
    make_cluster(told)
    models.Cluster.objects.update(metadata_level=2)
    form = {"cluster": CLUSTER_ID, "key": "num.partitions", "value": "12", "scope": "one"}

    page = alice.post("/brokers/1/configs", form).content.decode()

    assert "Alter configs: all brokers" in page
    assert "/plans/apply" in page


def test_a_broker_that_is_not_up_counts_nothing(victor: Client, told: Told) -> None:
    make_cluster(told)
    models.Broker.objects.filter(broker_id=1).update(is_fenced=True, registered_at_ms=1)

    page = page_of(victor, f"/brokers/1{AT}")

    assert "Broker 1 is not up" in page
    # The rates of its last second are not told as if they were of now.
    assert "2 KiB/s" not in page


def test_a_viewer_changes_no_config(victor: Client, told: Told) -> None:
    make_cluster(told)

    answer = victor.post("/brokers/1/configs", {"cluster": CLUSTER_ID, "key": "log.retention.ms"})

    assert answer.status_code == 403
    assert "Preview the change" not in page_of(victor, f"/brokers/1{AT}&tab=configs")


def test_the_changes_of_a_broker_are_its_own(alice: Client, told: Told) -> None:
    cluster = make_cluster(told)
    cluster_rows.change(cluster, 5, "broker changed: 1 (registered)", actor="agent")
    cluster_rows.change(cluster, 6, "broker changed: 12 (fenced)", actor="agent")
    order(cluster, state="failed", message="no supervisor runs")
    after = {"log.retention.ms": "5"}
    cluster_rows.audit_entry(cluster, 1, name="1", subject="broker", after=after)
    cluster_rows.audit_entry(
        cluster, 2, name="11", subject="broker", after=after, actor="User:somebody"
    )

    page = page_of(alice, f"/brokers/1{AT}&tab=changes")

    for text in ("Broker 1 (registered)", "no supervisor runs", "log.retention.ms: not set → 5"):
        assert text in page, text
    assert "12 (fenced)" not in page
    assert "somebody" not in page


@pytest.mark.parametrize("number", ["9", "99999999999999999999"])
def test_a_broker_that_is_not_there_is_said_to_be_missing(
    alice: Client, told: Told, number: str
) -> None:
    make_cluster(told)

    answer = alice.get(f"/brokers/{number}{AT}")

    assert answer.status_code == 404
    assert f"There is no broker {number}" in answer.content.decode()


@pytest.mark.parametrize("tab", ["load", "clients", "configs", "log", "changes", "<b>"])
def test_every_tab_is_a_page_in_every_state(alice: Client, told: Told, tab: str) -> None:
    make_cluster(told)
    path = "/brokers/2"

    assert alice.get(path, {"cluster": CLUSTER_ID, "tab": tab}).status_code == 200
    told.begin_silent()
    assert alice.get(path, {"cluster": CLUSTER_ID, "tab": tab}).status_code == 200


def test_an_order_under_way_stands_on_the_page_and_asks_for_itself(
    alice: Client, told: Told
) -> None:
    cluster = make_cluster(told)
    made = order(cluster)

    page = page_of(alice, f"/brokers/1{AT}")
    assert "Restarting" in page
    assert "waits for the agent of host-a, and expires in" in page
    assert 'hx-trigger="every 1s"' in page
    models.BrokerOrder.objects.filter(pk=made.pk).update(
        state="done", message="broker-1 serves", ended_at_ms=int(time.time() * 1000)
    )

    part = page_of(alice, f"/brokers/1/order{AT}")

    assert "Restart, ordered by olga: broker-1 serves." in part
    assert "hx-trigger" not in part
