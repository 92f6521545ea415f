"""Spark: its session as its worker told it, the connectors that run on it, and one's own Spark."""

import html
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from connectors import models
from console.queries import extras
from gateway.access.operations import Kind, Operation
from tests.builders import connectors as rows
from tests.builders import live, users
from tests.builders.live import Told
from tests.console import cluster_rows

CLUSTER = cluster_rows.CLUSTER_ID
URL = f"{reverse('console:spark')}?cluster={CLUSTER}"


@pytest.fixture(autouse=True)
def cluster() -> None:
    cluster_rows.broker(cluster_rows.cluster(), 1)


def page(user: Client) -> str:
    answer = user.get(URL)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def batch(**more: Any) -> dict[str, Any]:
    now_ms = int(1000 * time.time())
    return rows.spark_batch(ended_ms=now_ms - 1000, newest_ms=now_ms - 4000, **more)


def test_a_home_without_spark_connectors_says_what_they_are_and_where_to_begin(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.connector(CLUSTER, "plain")
    monkeypatch.setattr(extras, "is_installed", lambda _package: True)

    text = page(alice)

    assert "No Spark connectors yet" in text
    assert ">Not running<" in text
    assert "/connectors/+new/samsa.spark.sink" in text
    assert "/connectors/+new?cluster=" in text
    assert "/extras" not in text
    assert "plain" not in text


def test_where_spark_is_not_installed_the_page_leads_to_the_extra(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda _package: False)

    text = page(alice)

    assert ">Not installed<" in text
    assert "/extras" in text
    assert "./samsa extras install spark" in text


def test_a_worker_tells_what_runs_in_it(alice: Client) -> None:
    rows.spark_connector(CLUSTER, "lake")
    rows.spark_report(CLUSTER)

    text = page(alice)

    assert ">Running<" in text
    for fact in ("local[2]", "4.3.0", "17, PATH", ">640 MiB<", ">1 GiB<", "on here"):
        assert fact in text
    assert "SAMSA_SPARK_UI=true" in text


def test_spark_s_own_pages_are_linked_where_they_are_on(alice: Client) -> None:
    rows.spark_connector(CLUSTER, "lake")
    rows.spark_report(CLUSTER, wants_ui=True, engine={"ui_url": "http://127.0.0.1:4040"})

    assert 'href="http://127.0.0.1:4040"' in page(alice)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "http://elsewhere:4040"])
def test_no_other_address_becomes_a_link(alice: Client, url: str) -> None:
    rows.spark_report(CLUSTER, wants_ui=True, engine={"ui_url": url})

    assert url not in page(alice)


@pytest.mark.parametrize(
    ("told", "word"),
    [
        ({"stage": "none", "engine": None}, "Ready"),
        ({"stage": "starting", "engine": None}, "Starting"),
        ({"is_installed": False, "stage": "none", "engine": None}, "Not installed"),
        ({"stage": "ended", "failure": "Java has ended by signal 9"}, "Ended"),
        ({"stage": "none", "engine": None, "failure": "SAMSA_SPARK is 'x'"}, "Ended"),
        ({"stage": "ended", "is_stopped": True}, "Stopped"),
    ],
)
def test_each_stage_of_a_session_has_its_word(
    alice: Client, told: dict[str, Any], word: str
) -> None:
    rows.spark_report(CLUSTER, **told)

    text = page(alice)

    assert f">{word}</span>" in text
    assert told.get("failure", "") in text


def test_a_killed_worker_is_not_heard_of_since_it_spoke_last(alice: Client) -> None:
    rows.spark_connector(CLUSTER, "lake")
    rows.spark_report(CLUSTER)
    models.Worker.objects.all().delete()

    text = page(alice)

    assert ">Not heard of<" in text
    assert "4.3.0" in text
    assert ">Since<" not in text


def test_a_worker_that_says_nothing_new_for_long_is_not_believed(alice: Client) -> None:
    rows.spark_connector(CLUSTER, "lake")
    rows.spark_report(CLUSTER)
    late = datetime.now(UTC) - timedelta(minutes=5)
    models.WorkerReport.objects.update(told_at=late)

    text = page(alice)

    assert ">Not heard of<" in text
    assert "5 min ago" in text


def test_a_worker_of_another_host_takes_the_place_of_one_that_is_gone(alice: Client) -> None:
    rows.spark_connector(CLUSTER, "lake")
    rows.spark_report(CLUSTER, name="connect-spark.1.gone", host="gone")
    models.Worker.objects.all().delete()
    rows.spark_report(CLUSTER, name="connect-spark.2.new", host="new")

    text = page(alice)

    assert "on new" in text
    assert "on gone" not in text


def test_that_no_worker_is_there_is_said(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda _package: True)
    rows.spark_connector(CLUSTER, "lake")

    assert ">No worker<" in page(alice)


def test_a_query_shows_its_last_batch_and_how_far_it_is(alice: Client, told: Told) -> None:
    row = rows.spark_connector(CLUSTER, "lake")
    rows.task(row, figures={"last_batch": batch(records=24_000, rows=23_990)})
    told.put(live.group("connect-lake", lag=417))
    rows.spark_report(CLUSTER)

    text = page(alice)

    assert "24,000" in text
    assert "23,990 rows written" in text
    # 24,000 records within 2 s of work and 6 s of waiting.
    assert '<td class="num">3 k</td>' in text
    assert "2 s<small" in text
    assert "0.5 s read, 1.5 s written, 6 s waited" in text.replace("\u00a0", " ")
    assert "417" in text
    assert "files/lake/orders" in text
    assert "/connectors/lake?cluster=" in text


def test_a_query_whose_next_batch_is_late_gets_slower(alice: Client) -> None:
    row = rows.spark_connector(CLUSTER, "lake")
    rows.task(row, figures={"last_batch": rows.spark_batch(ended_ms=1_000_000, newest_ms=None)})

    assert '<td class="num">0</td>' in page(alice)


def test_a_query_that_fails_stands_first_with_its_cause(alice: Client) -> None:
    rows.task(rows.spark_connector(CLUSTER, "a-fine"))
    failed = rows.spark_connector(
        CLUSTER,
        "b-failed",
        plugin="samsa.spark.sql",
        config={"output.topic": "large", "query": "SELECT 1"},
        topics=["orders", "large"],
    )
    rows.task(failed, state="FAILED", trace="ConnectorError: there is no column <b>x</b>\n at 3")

    answer = alice.get(URL)

    text = html.unescape(answer.content.decode())
    assert text.index("/connectors/b-failed") < text.index("/connectors/a-fine")
    assert "ConnectorError: there is no column" in text
    assert b"<b>x</b>" not in answer.content
    assert "2 connectors run on it, 1 failed" in text
    assert "no batch yet" in text
    assert "/topics/large?cluster=" in text


def test_streams_of_the_session_are_shown_as_spark_tells_them(alice: Client) -> None:
    stream = {
        "name": "totals",
        "message": "Waiting for data to arrive",
        "batch": 7,
        "rows": 120,
        "rows_per_s": 60.0,
        "took_ms": 240,
        "watermark": "2026-01-31T07:00:00.000Z",
    }
    rows.spark_report(CLUSTER, streams=[stream])

    text = page(alice)

    assert "totals" in text
    assert "2026-01-31T07:00:00.000Z" in text


def test_who_sees_some_connectors_sees_no_session_and_no_others() -> None:
    rows.spark_connector(CLUSTER, "orders-lake")
    rows.spark_connector(CLUSTER, "salaries-lake")
    rows.spark_report(CLUSTER, failure="of all connectors")
    carl, user = users.user("carl", role=None), Client()
    users.grant(carl, Operation.VIEW, kind=Kind.CONNECTOR, pattern="orders-*")
    user.force_login(carl)

    text = page(user)

    assert "orders-lake" in text
    assert "salaries-lake" not in text
    assert "<h2>Session</h2>" not in text
    assert "of all connectors" not in text
    assert '"kafka.bootstrap.servers", "HOST:9092"' in text


def test_a_snippet_has_the_address_of_this_cluster(alice: Client) -> None:
    text = page(alice)

    assert "./samsa spark package --out dist" in text
    assert '.option("kafka.bootstrap.servers", "127.0.0.1:9092")' in text
    assert "docs/howto/use-from-your-spark.md" in text


def test_the_search_box_finds_the_page(alice: Client) -> None:
    found = alice.get(f"{reverse('console:search')}?q=spark&cluster={CLUSTER}")

    assert "/spark?cluster=" in html.unescape(found.content.decode())
