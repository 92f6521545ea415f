"""The samples of a chart, as its script gets them."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.test import Client

from console.monitoring.selectors import NotThere
from gateway.access.operations import Kind, Operation
from tests.builders import users
from tests.builders.live import CLUSTER_ID, Told

ORDERS = {"cluster": CLUSTER_ID, "kind": "topic", "name": "orders", "metric": "bytes_in,bytes_out"}


def two_samples(**query: str | int) -> Mapping[str, Any]:
    value = 1.0 if query["metric"] == "bytes_in" else 2.0
    return {"start_s": 1_000, "step_s": 10, "samples": [value, None]}


def asked(browser: Client, **query: str) -> tuple[int, dict[str, Any]]:
    answer = browser.get("/series", query)
    told: dict[str, Any] = answer.json()
    return answer.status_code, told


def test_each_metric_is_a_line_of_the_same_moments_with_gaps_as_null(
    alice: Client, told: Told
) -> None:
    told.answers["/series"] = two_samples

    status, answer = asked(alice, **ORDERS, range="21600", points="300")

    assert status == 200
    assert answer["samples"] == [[1.0, None], [2.0, None]]
    assert (answer["start_s"], answer["step_s"], answer["state"]) == (1_000, 10, "fresh")
    queries = [query for _, query in told.asked]
    assert {(q["to"], q["from"]) for q in queries} == {(q["to"], q["from"]) for q in queries[:1]}
    assert int(queries[0]["to"]) - int(queries[0]["from"]) == 21_600
    assert queries[0]["max_points"] == 300


def test_what_is_old_says_so_and_since_when(alice: Client, told: Told) -> None:
    told.answers["/series"] = two_samples
    told.age_s = 30.0

    _, answer = asked(alice, **ORDERS)

    assert (answer["state"], answer["age_s"]) == ("stale", 30)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"kind": "planet"}, "kind='planet': give one of cluster, broker, topic, group, pair"),
        ({"metric": "mass"}, "a topic has no metric 'mass': give some of records, size_bytes,"),
        ({"metric": ""}, "a topic has no metric ''"),
        ({"metric": ",".join(["records"] * 7)}, "7 metrics asked for; at most 6 fit"),
        ({"range": "5"}, "range='5': give one of 3600, 21600, 86400, 604800 seconds"),
        ({"points": "2001"}, "points='2001': give 1 to 2000"),
        ({"points": "-1"}, "points='-1': give 1 to 2000"),
        ({"name": "x" * 1001}, "a name has 1001 characters; at most 1000 fit"),
    ],
)
def test_a_question_without_an_answer_is_refused_in_a_sentence(
    alice: Client, changed: dict[str, str], sentence: str
) -> None:
    status, answer = asked(alice, **{**ORDERS, **changed})

    assert status == 400
    assert answer["error"].startswith(sentence)


def test_a_collector_that_is_away_is_a_failure_with_its_reason(alice: Client, told: Told) -> None:
    told.go_silent()
    silent = asked(alice, **ORDERS)
    told.begin_silent()
    away = asked(alice, **ORDERS)

    assert silent == (503, {"error": "the collector is away"})
    assert away[0] == 503
    assert "does not answer" in away[1]["error"]


def test_what_nobody_tells_of_is_not_there(alice: Client, told: Told) -> None:
    told.answers["/series"] = NotThere("no such thing")

    assert asked(alice, **ORDERS) == (404, {"error": "no such thing"})


def test_the_series_of_another_cluster_are_not_told_for_this_one(alice: Client, told: Told) -> None:
    told.answers["/series"] = two_samples

    status, answer = asked(alice, **{**ORDERS, "cluster": "a" * 22})

    assert (status, told.asked) == (503, [])
    assert "follows another cluster" in answer["error"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"kind": "topic", "name": "orders-eu", "metric": "records"}, 200),
        ({"kind": "topic", "name": "payments", "metric": "records"}, 403),
        ({"kind": "cluster", "metric": "lag"}, 403),
        ({"kind": "broker", "name": "1", "metric": "requests"}, 403),
        ({"kind": "group", "name": "billing", "metric": "lag"}, 200),
        ({"kind": "group", "name": "other", "metric": "lag"}, 403),
        ({"kind": "pair", "name": "billing", "topic": "orders-eu", "metric": "lag"}, 200),
        ({"kind": "pair", "name": "billing", "topic": "payments", "metric": "lag"}, 403),
        ({"kind": "pair", "name": "other", "topic": "orders-eu", "metric": "lag"}, 403),
    ],
)
def test_everybody_sees_the_series_of_what_one_may_view(
    told: Told, query: dict[str, str], status: int
) -> None:
    told.answers["/series"] = lambda **_: {"start_s": 0, "step_s": 10, "samples": [1.0]}
    some = users.user("some", role=None)
    users.grant(some, Operation.VIEW, kind=Kind.TOPIC, pattern="orders-*")
    users.grant(some, Operation.VIEW, kind=Kind.GROUP, pattern="billing")
    browser = Client()
    browser.force_login(some)

    found, answer = asked(browser, cluster=CLUSTER_ID, **query)

    assert found == status
    assert ("error" in answer) is (status == 403)
    assert bool(told.asked) is (status == 200)


def test_nobody_reads_series_without_signing_in(client: Client) -> None:
    assert client.get("/series", ORDERS).status_code == 302
