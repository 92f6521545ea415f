"""A broker is started and stopped from a page by who may, once it was said what follows."""

import json
import time
from typing import Any

import pytest
from django.test import Client

from brokers.controlplane import audit, models
from console.queries.broker_log import MAX_ROUNDS
from tests.builders import live
from tests.builders.live import Told
from tests.console import cluster_rows
from tests.console.cluster_rows import CLUSTER_ID
from tests.console.pages.test_brokers import AT, HOSTILE, make_cluster, page_of
from tests.console.plan_pages import applied

EPOCH = 101


def form(epoch: int = EPOCH) -> dict[str, str]:
    return {"cluster": CLUSTER_ID, "epoch": str(epoch)}


def order(browser: Client, verb: str) -> Any:
    """Plan an order and give it; return the answer."""
    return applied(browser, browser.get(f"/brokers/1/{verb}{AT}"))


def orders() -> list[tuple[int, str, str, str]]:
    rows = models.BrokerOrder.objects.order_by("pk")
    return list(rows.values_list("broker_id", "verb", "state", "actor"))


def test_what_follows_is_said_before_anything_is_done(olga: Client, told: Told) -> None:
    cluster = make_cluster(told)
    cluster_rows.topic(cluster, HOSTILE[:20], partitions=2, leader=1)

    page = page_of(olga, f"/brokers/1/stop{AT}")

    for text in (
        "5 partitions of 2 topics pause until it is started",
        "7 connections are cut",
        "1 of its topics are being written at the moment, with 2 KiB/s in all",
        "1 groups have their coordinator here",
        "orders",
        "billing",
        "It stays stopped",
        "./samsa brokers stop 1",
        "broker 1 at epoch 101",
    ):
        assert text in page, text
    assert "<script>a" not in page
    assert orders() == []


def test_order_without_a_cluster_is_planned_in_the_shown_one(olga: Client, told: Told) -> None:
    make_cluster(told)

    assert olga.get("/brokers/1/stop").status_code == 200
    assert olga.get("/brokers/1/stop?cluster=unknown").status_code == 404


def test_an_order_is_given_with_its_audit_entry(olga: Client, told: Told) -> None:
    make_cluster(told)

    answer = order(olga, "restart")

    assert answer["Location"] == f"/brokers/1?cluster={CLUSTER_ID}"
    assert orders() == [(1, "restart", "waiting", "User:olga")]
    (entry,) = audit.entries(cluster_id=CLUSTER_ID)
    assert (entry.kind, entry.name, entry.actor) == ("restart broker", "1", "User:olga")
    assert "Waiting" in page_of(olga, str(answer["Location"]))


def test_an_order_that_rests_on_another_incarnation_is_refused(olga: Client, told: Told) -> None:
    make_cluster(told)
    shown = olga.get(f"/brokers/1/restart{AT}")
    models.Broker.objects.filter(broker_id=1).update(epoch=EPOCH + 1)

    answer = applied(olga, shown)

    assert answer.status_code == 409
    assert "has been restarted since the page was shown" in answer.content.decode()
    assert orders() == []


def test_a_second_order_waits_for_the_end_of_the_first(olga: Client, told: Told) -> None:
    make_cluster(told)
    order(olga, "restart")

    answer = order(olga, "stop")

    assert answer.status_code == 409
    assert "has an order to restart already, by User:olga" in answer.content.decode()


@pytest.mark.parametrize("verb", ["start", "stop", "restart", "log"])
def test_a_viewer_orders_nothing(victor: Client, told: Told, verb: str) -> None:
    make_cluster(told)

    assert victor.get(f"/brokers/1/{verb}{AT}").status_code == 403
    assert victor.post(f"/brokers/1/{verb}", form()).status_code == 403
    assert orders() == []


@pytest.mark.parametrize("path", ["/plans/apply", "/brokers/1/log", "/brokers/1/configs"])
def test_an_order_of_another_site_is_refused(olga: Client, told: Told, path: str) -> None:
    make_cluster(told)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = olga.cookies

    assert strict.post(path, form()).status_code == 403
    assert orders() == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/brokers/9/stop", 404),
        ("/brokers/99999999999999999999/stop", 404),
        ("/brokers/1/remove", 404),
    ],
)
def test_what_is_not_there_has_no_orders(olga: Client, told: Told, path: str, status: int) -> None:
    make_cluster(told)

    assert olga.get(f"{path}{AT}").status_code == status
    assert olga.get(f"{path}?cluster=nowhere").status_code in {403, 404}
    assert orders() == []


def test_a_broker_that_was_stopped_is_offered_a_start_and_nothing_else(
    olga: Client, told: Told
) -> None:
    make_cluster(told)
    models.Broker.objects.filter(broker_id=1).update(is_fenced=True, held_by="alice", held_at_ms=1)

    page = page_of(olga, f"/brokers/1{AT}")
    assert "/brokers/1/start" in page
    assert "/brokers/1/stop" not in page
    assert "start it instead" in page_of(olga, f"/brokers/1/restart{AT}")
    assert "served again" in page_of(olga, f"/brokers/1/start{AT}")


def test_a_host_of_an_older_release_is_told_from_one_that_takes_orders(
    olga: Client, told: Told
) -> None:
    make_cluster(told)
    models.Agent.objects.update(epoch=4)

    assert "takes no orders" in page_of(olga, f"/brokers/1/stop{AT}")
    assert order(olga, "stop").status_code == 409
    assert "takes no orders" in page_of(olga, f"/brokers/1{AT}&tab=log")


def test_what_is_written_is_not_known_without_a_collector(olga: Client, told: Told) -> None:
    make_cluster(told)
    told.begin_silent()

    page = page_of(olga, f"/brokers/1/stop{AT}")

    assert "Current traffic is unknown" in page
    assert "3 partitions of 1 topics pause" in page


def test_a_quiet_broker_is_said_to_be_quiet(olga: Client, told: Told) -> None:
    make_cluster(told)
    told.put(live.topic("orders"))

    assert "Nothing was written to or read from" in page_of(olga, f"/brokers/1/restart{AT}")


def test_lines_of_a_log_come_by_an_order(olga: Client, told: Told) -> None:
    make_cluster(told)
    htmx = {"HX-Request": "true"}
    waiting = olga.post("/brokers/1/log", form(), headers=htmx).content.decode()
    number = models.BrokerOrder.objects.get().pk
    assert f"/brokers/1/log/{number}" in waiting

    lines = [HOSTILE, '{"event": "log.opened", "level": "info", "timestamp_ms": 1}']
    answer = {"lines": lines, "cursor": "7:3", "has_gap": True}
    models.BrokerOrder.objects.update(state="done", answer=json.dumps(answer))
    part = page_of(olga, f"/brokers/1/log/{number}{AT}")

    assert HOSTILE not in part
    assert "log.opened" in part
    assert "Gap" in part
    assert 'value="7:3"' in part
    assert orders() == [(1, "log", "done", "User:olga")]
    assert audit.entries(cluster_id=CLUSTER_ID) == []
    other = olga.get(f"/brokers/2/log/{number}{AT}", headers={"HX-Request": "true"})
    assert other.status_code == 404


def test_a_log_that_is_followed_is_not_followed_for_ever(olga: Client, told: Told) -> None:
    make_cluster(told)
    olga.post("/brokers/1/log", form())
    number = models.BrokerOrder.objects.get().pk
    answer = {"lines": [], "cursor": "7:3", "has_gap": False}
    models.BrokerOrder.objects.update(state="done", answer=json.dumps(answer))
    path = f"/brokers/1/log/{number}{AT}&follow=1"

    following, last = (page_of(olga, f"{path}&round={number}") for number in (1, MAX_ROUNDS))

    # It asks by itself, and so is no sign that somebody is there.
    assert "load delay:3s" in following
    assert """hx-headers='{"Samsa-Poll": "1"}'""" in following
    assert "load delay:3s" not in last
    assert "Samsa-Poll" not in last


def test_a_log_is_had_without_a_script_too(olga: Client, told: Told) -> None:
    make_cluster(told)

    answer = olga.post("/brokers/1/log", form())

    page = page_of(olga, str(answer["Location"]))
    assert "looks for new orders once a second" in page


def test_a_log_that_nobody_sends_says_so(olga: Client, told: Told) -> None:
    make_cluster(told)
    olga.post("/brokers/1/log", form())
    models.BrokerOrder.objects.update(deadline_ms=int(time.time() * 1000) - 1)
    number = models.BrokerOrder.objects.get().pk

    part = page_of(olga, f"/brokers/1/log/{number}{AT}")

    assert "did not start it in time" in part
    assert "hx-trigger" not in part


def test_orders_stand_among_the_changes(alice: Client, told: Told) -> None:
    make_cluster(told)
    order(alice, "restart")

    page = alice.get("/changes", {"cluster": CLUSTER_ID, "kind": "restart broker"}).content.decode()

    assert "broker 1" in page
    assert "<option selected>restart broker</option>" in page
