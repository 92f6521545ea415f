"""The first page, as a browser gets it."""

import re

import pytest
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.access.operations import Kind, Operation
from tests.builders import connectors, users
from tests.builders import live as rows
from tests.builders.live import Told
from tests.console import cluster_rows


def lose_the_control_plane() -> None:
    """Take its tables away, as a database that is not there does."""
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE controlplane_cluster RENAME TO elsewhere")


def test_nobody_sees_it_without_signing_in(client: Client) -> None:
    answer = client.get("/")

    assert (answer.status_code, answer["Location"]) == (302, "/login?next=/")


def test_it_shows_the_cluster_and_its_brokers(alice: Client) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1, rack="rack-a")
    cluster_rows.topic(shown, "orders", partitions=1)

    page = alice.get("/").content.decode()

    for text in ("orders-prod", cluster_rows.CLUSTER_ID, "127.0.0.1:9092", "rack-a", "Serving"):
        assert text in page
    assert "1 broker · 1 topic · 1 partition · all brokers serving" in page
    assert "Nothing needs attention" in page


def test_connectors_that_do_not_get_on_need_attention(alice: Client) -> None:
    cluster = cluster_rows.cluster().cluster_id
    connectors.task(connectors.connector(cluster, "fine"))
    connectors.connector(cluster, "broken", state="FAILED", trace="ConfigError: no table\n  at 3")
    partly = connectors.connector(cluster, "partly")
    connectors.task(partly, 0)
    connectors.task(partly, 1, state="FAILED", trace="DataError: 17 is not a number")
    slow = connectors.connector(cluster, "slow", kind="sink")
    connectors.task(slow, figures=connectors.retrying())
    for name in ("crash-1", "crash-2"):
        connectors.connector(cluster, name, state="FAILED")

    page = alice.get("/").content.decode()

    needs = page[page.index('id="needs"') : page.index("</section>", page.index('id="needs"'))]
    assert "Connector broken has failed<p>ConfigError: no table. It does nothing until" in needs
    assert needs.index("broken") < needs.index("crash-1") < needs.index("crash-2")
    assert "2 more connectors need attention" in needs
    assert "partly failed" in needs
    assert "fine" not in needs


def test_one_that_tries_again_is_told_with_what_fails(alice: Client) -> None:
    slow = connectors.connector(cluster_rows.cluster().cluster_id, "slow", kind="sink")
    connectors.task(slow, state="UNASSIGNED", figures=connectors.retrying("cannot connect."))

    page = alice.get("/").content.decode()

    assert "Connector slow makes no progress<p>9 attempts failed in 5 min" in page
    assert ": cannot connect. It continues once an attempt succeeds." in page


def test_connector_that_loses_records_needs_attention(alice: Client) -> None:
    cluster = cluster_rows.cluster().cluster_id
    told = connectors.losing(advice="set the converter")
    connectors.task(connectors.connector(cluster, "shop", kind="sink"), figures=told)
    connectors.task(connectors.connector(cluster, "idle", state="PAUSED"), figures=told)

    page = alice.get("/").content.decode()

    assert "Connector shop loses most of its records<p>100 of the last 100 records" in page
    assert ": set the converter.</p>" in page
    assert "Nothing needs attention" not in page
    assert "idle" not in page


def test_connector_that_no_worker_takes_does_not_explain_its_lag(alice: Client, told: Told) -> None:
    cluster = cluster_rows.cluster().cluster_id
    for name, state in (("left", "UNASSIGNED"), ("runs", "RUNNING"), ("idle", "PAUSED")):
        sink = connectors.connector(cluster, name, kind="sink", state=state)
        connectors.task(sink, state=state)
        told.put(rows.group(f"connect-{name}", lag=7, verdict="stopped"))

    page = alice.get("/").content.decode()

    assert "Connector left commits no more while records wait" in page
    assert "No worker has taken it yet, or all are busy. ./samsa status shows the workers" in page
    assert page.count("Its tasks run: their log says what they do") == 1
    assert "Connector idle" not in page
    assert '<span class="count bad" title="Connectors that need attention">2</span>' in page


def test_a_console_without_a_cluster_says_how_to_get_one(alice: Client) -> None:
    answer = alice.get("/")

    assert answer.status_code == 200
    assert "No cluster yet" in answer.content.decode()
    assert "./samsa up" in answer.content.decode()


def test_a_cluster_without_brokers_says_how_to_get_some(alice: Client) -> None:
    cluster_rows.cluster()

    assert "No broker has registered" in alice.get("/").content.decode()


def test_a_database_that_is_away_is_a_failure_and_never_an_empty_page(alice: Client) -> None:
    lose_the_control_plane()

    answer = alice.get("/")

    assert answer.status_code == 503
    assert "The database does not answer" in answer.content.decode()
    assert "No cluster yet" not in answer.content.decode()


def test_what_was_read_before_is_shown_as_stale(alice: Client) -> None:
    cluster_rows.cluster(name="remembered")
    alice.get("/")
    lose_the_control_plane()

    answer = alice.get("/")

    assert answer.status_code == 200
    page = answer.content.decode()
    assert "remembered" in page
    assert 'class="st stale"' in page
    assert 'class="old"' in page


def test_an_agent_that_has_ended_is_told_with_what_that_means(
    alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_rows.cluster()
    before = alice.get("/").content.decode()
    monkeypatch.setattr("brokers.controlplane.selectors.is_agent_gone", lambda: True)

    for page in ("/", "/topics"):
        shown = alice.get(page).content.decode()
        assert "The agent of this host has ended" in shown
        assert 'class="st warn" role="status">Agent away' in shown
    assert "has ended" not in before


def test_what_a_cluster_holds_stays_text(alice: Client) -> None:
    shown = cluster_rows.cluster(name="<script>alert(1)</script>")
    cluster_rows.change(shown, 8, "<img src=x onerror=alert(1)>")

    page = alice.get("/").content.decode()

    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow_with_the_cluster(alice: Client) -> None:
    shown = cluster_rows.cluster()

    def queries() -> int:
        with CaptureQueriesContext(connections["cluster"]) as captured:
            assert alice.get("/").status_code == 200
        return len(captured)

    cluster_rows.broker(shown, 1)
    cluster_rows.topic(shown, "first")
    few = queries()
    for number in range(2, 12):
        cluster_rows.broker(shown, number)
        cluster_rows.topic(shown, f"topic-{number}", partitions=3)
        cluster_rows.change(shown, number, "a change")

    assert queries() == few


def test_a_page_of_old_numbers_says_so_and_is_never_empty(alice: Client, told: Told) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    told.put(rows.broker(1, bytes_in_per_s=2048.0))
    told.go_silent(age_s=30.0)

    page = alice.get("/").content.decode()

    assert "Rates, sizes and lag are old" in page
    assert "30 s ago</time>" in page
    assert "2 KiB/s" in page
    assert 'class="old"' in page


def test_names_of_groups_stay_text(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    told.put(rows.group("<script>alert(1)</script>", verdict="stopped", lag=3))

    page = alice.get("/").content.decode()

    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page


def test_it_has_its_charts_as_figures_and_renews_itself(alice: Client) -> None:
    cluster_rows.cluster()

    page = alice.get("/").content.decode()

    assert page.count("<figure ") == 4
    assert 'data-metric="bytes_in,bytes_out"' in page
    assert "data-live" in page


def test_groups_that_need_somebody_are_counted_in_the_rail(alice: Client, told: Told) -> None:
    cluster_rows.cluster()
    calm = alice.get("/").content.decode()
    told.put(rows.group("dead", verdict="stopped", lag=3), rows.group("fine"))

    page = alice.get("/topics").content.decode()

    assert '<span class="count bad" hidden title="Groups that need attention">0</span>' in calm
    assert '<span class="count bad" title="Groups that need attention">1</span>' in page


def test_cause_of_a_connector_is_told_once_and_not_as_that_of_its_group(
    alice: Client, told: Told
) -> None:
    cluster = cluster_rows.cluster().cluster_id
    for name, state in (("broken", "FAILED"), ("slow", "RUNNING"), ("resting", "PAUSED")):
        connectors.task(connectors.connector(cluster, name, kind="sink", state=state))
    groups = ("connect-broken", "connect-slow", "connect-resting", "connect-foreign")
    told.put(*(rows.group(name, verdict="stopped", lag=3) for name in groups))

    page = alice.get("/").content.decode()

    needs = page[page.index('id="needs"') : page.index("</section>", page.index('id="needs"'))]
    sentences = re.findall(r"(?:Connector|Group) [\w-]+ [\w ]+<p>", needs)
    assert sentences == [
        "Group connect-foreign commits no more while records wait<p>",
        "Connector slow commits no more while records wait<p>",
        "Connector broken has failed<p>",
    ]
    assert f'href="/connectors/slow?cluster={cluster}">See the connector</a>' in needs
    assert 'title="Groups that need attention">1</span>' in page
    assert 'title="Connectors that need attention">2</span>' in page


def test_what_just_happened_has_its_time(alice: Client) -> None:
    cluster_rows.change(cluster_rows.cluster(), 8, "topic created: orders", kind="topic")

    page = alice.get("/").content.decode()

    assert "<time datetime=" in page.partition("Just happened")[2].partition("topic created")[0]


def test_only_reading_is_allowed(alice: Client) -> None:
    assert alice.post("/").status_code == 405


def test_user_without_groups_does_not_read_that_every_group_keeps_up(
    client: Client, told: Told
) -> None:
    cluster_rows.cluster()
    told.put(rows.group("billing", verdict="stopped", lag=9))
    user = users.user("tim", role=None)
    users.grant(user, Operation.VIEW, kind=Kind.TOPIC, pattern="walk-*")
    client.force_login(user)

    page = client.get("/").content.decode()

    assert "Nothing that you may see needs attention" in page
    assert "Groups: you may see none." in page
    assert "keeps up" not in page
