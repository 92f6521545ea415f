"""The page of one topic, as a browser gets it."""

from html import unescape

import pytest
from django.test import Client

from brokers.controlplane import models
from console.queries.topic import Tab
from gateway.access.operations import Kind, Operation
from tests.builders import live, users
from tests.builders.live import Told
from tests.console import cluster_rows

CLUSTER = f"cluster={cluster_rows.CLUSTER_ID}"


@pytest.fixture
def cluster() -> models.Cluster:
    made = cluster_rows.cluster()
    cluster_rows.broker(made, 1)
    return made


def tell_of_payments(told: Told) -> None:
    told.put(
        live.topic(
            "payments",
            size_bytes=2048,
            records_per_s=4.0,
            lag=7,
            verdict="falling behind",
            worst_group="b",
        ),
        live.group("b", members=2),
        live.pair("b", "payments", lag=7, verdict="falling behind", oldest_ms=live.NOW_MS - 70_000),
        live.group("a", state="Empty", members=0),
        live.pair("a", "payments", lag=90, verdict="stopped", eta_low_s=None, eta_high_s=None),
    )
    told.answers["/topic"] = lambda **_: {
        "ms": live.NOW_MS,
        "partitions": [[0, 1, 10, 30, 1024, [1.0, 2.5]], [1, 1, 0, 5, 1024, []]],
        "groups": ["a", "b"],
        "is_cut": False,
    }


def test_nobody_sees_it_without_signing_in(client: Client) -> None:
    assert client.get("/topics/payments")["Location"] == "/login?next=/topics/payments"


def test_partitions_stand_with_leaders_offsets_and_rates(
    cluster: models.Cluster, alice: Client, told: Told
) -> None:
    cluster_rows.topic(cluster, "payments", partitions=2)
    tell_of_payments(told)

    page = alice.get(f"/topics/payments?tab=partitions&{CLUSTER}").content.decode()

    for text in (
        "2 × 1 replica",
        "2 KiB",
        "4 records/s",
        "cGF5bWVudHMAAAAAAAAAAA",
        "Falling behind",
    ):
        assert text in page
    for cell in (">10<", ">30<", ">20<", "<polyline", " 2.5<", "1 KiB"):
        assert cell in page
    assert told.asked == [("/topic", {"name": "payments", "first": 0, "rows": 100})]


def test_a_partition_without_leader_says_so(cluster: models.Cluster, alice: Client) -> None:
    cluster_rows.topic(cluster, "payments", partitions=2, leader=9)

    page = alice.get("/topics/payments?tab=partitions").content.decode()

    assert "2 without leader" in page
    assert page.count("No leader") == 2


def test_consumers_are_worst_first_with_lag_time_and_forecast(
    cluster: models.Cluster, alice: Client, told: Told
) -> None:
    cluster_rows.topic(cluster, "payments", partitions=2)
    tell_of_payments(told)

    page = alice.get("/topics/payments?tab=consumers").content.decode()

    assert page.index("Stopped") < page.rindex("Falling behind")
    for text in ("1 min 10 s", "does not catch up", "Empty"):
        assert text in page


def test_configs_stand_with_their_source_and_what_follows(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(cluster, "payments", configs={"retention.ms": "3600000"})

    page = unescape(alice.get("/topics/payments?tab=configs").content.decode())

    for text in ("this topic", "604800000", "segments whose newest record", "1 h"):
        assert text in page
    assert "retention.ms (1 h) has no effect before a segment is closed" in page


def test_a_collector_that_is_away_leaves_what_is_set(
    cluster: models.Cluster, alice: Client, told: Told
) -> None:
    cluster_rows.topic(cluster, "payments")
    told.begin_silent()

    page = alice.get("/topics/payments?tab=partitions").content.decode()
    readers = alice.get("/topics/payments?tab=consumers").content.decode()

    assert "The collector has sent nothing yet" in page
    assert "offsets, sizes and rates are missing below" in page
    assert "Has leader" in page
    assert "The consumers of this topic are unknown" in readers


def test_a_topic_just_made_says_that_its_numbers_come(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(cluster, "payments")

    page = alice.get("/topics/payments?tab=partitions").content.decode()
    readers = alice.get("/topics/payments?tab=consumers").content.decode()

    assert "No broker has reported this topic so far" in page
    assert "No group reads this topic" in readers


def test_a_database_that_went_away_leaves_the_page_as_it_was(
    cluster: models.Cluster, alice: Client, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import DatabaseError  # noqa: PLC0415 - after Django is set up

    def away() -> None:
        raise DatabaseError("away")

    cluster_rows.topic(cluster, "payments", partitions=2)
    tell_of_payments(told)
    alice.get("/topics/payments?tab=partitions")
    monkeypatch.setattr("brokers.controlplane.selectors.clusters", away)

    known, unknown = alice.get("/topics/payments?tab=partitions"), alice.get("/topics/other")

    assert "The database does not answer" in known.content.decode()
    assert "2 KiB" in known.content.decode()
    assert unknown.status_code == 503


@pytest.mark.parametrize("name", ["nothing", "..", "%3Cb%3E", "a" * 300, "%00", "é"])
def test_a_topic_that_is_not_there_is_said_to_be_missing(
    cluster: models.Cluster, alice: Client, name: str
) -> None:
    cluster_rows.topic(cluster, "payments")

    answer = alice.get(f"/topics/{name}")

    assert answer.status_code == 404
    assert "<b>" not in answer.content.decode()


def test_a_topic_that_the_user_may_not_see_looks_like_one_that_is_missing(
    cluster: models.Cluster,
) -> None:
    cluster_rows.topic(cluster, "secret")
    some = users.user("some", role=None)
    users.grant(some, Operation.VIEW, kind=Kind.TOPIC, pattern="orders*")
    browser = Client()
    browser.force_login(some)

    hidden, missing = browser.get("/topics/secret"), browser.get("/topics/secrex")

    assert hidden.status_code == missing.status_code == 404
    assert "There is no topic “secret” that you may see" in hidden.content.decode()


def test_a_topic_of_another_cluster_is_another_topic(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(cluster, "payments")

    assert alice.get("/topics/payments?cluster=another").status_code == 404


def test_a_topic_opens_on_its_messages_and_every_tab_has_its_actions(
    cluster: models.Cluster, alice: Client
) -> None:
    cluster_rows.topic(cluster, "payments", partitions=2)
    actions = ("produce", "edit", "partitions", "delete")

    pages = [
        alice.get(f"/topics/payments{path}").content.decode()
        for path in ("", "/messages", *(f"?tab={tab.value}" for tab in Tab))
    ]

    assert 'data-address="/messages/stream"' in pages[0]
    assert 'action="/topics/payments/messages"' in pages[0]
    for page in pages:
        assert [f"/topics/payments/{action}?{CLUSTER}" in page for action in actions] == [True] * 4
        assert page.index('class="tabs"') < page.find("data-chart", page.index("<main")) or (
            "data-chart" not in page
        )


def test_a_topic_whose_records_the_user_may_not_read_opens_on_its_partitions(
    cluster: models.Cluster, victor: Client
) -> None:
    cluster_rows.topic(cluster, "payments", partitions=2)

    page = victor.get("/topics/payments").content.decode()

    assert 'aria-label="Partitions"' in page
    assert "/topics/payments/produce" not in page


def test_a_topic_may_be_called_new(cluster: models.Cluster, alice: Client) -> None:
    before = alice.get(f"/topics/new?{CLUSTER}")
    cluster_rows.topic(cluster, "new")

    after = alice.get("/topics/new")

    assert before["Location"] == f"/topics/+new?{CLUSTER}"
    assert after.status_code == 200
    assert "<h1" in after.content.decode()


@pytest.mark.parametrize("page", ["1000000000", "-1", "x", "0"])
def test_a_page_that_cannot_be_meant_is_some_page(
    cluster: models.Cluster, alice: Client, page: str
) -> None:
    cluster_rows.topic(cluster, "payments")

    for tab in ("partitions", "consumers", "configs", "<b>"):
        answer = alice.get("/topics/payments", {"page": page, "tab": tab})
        assert answer.status_code == 200


def test_groups_of_any_name_never_become_markup(
    cluster: models.Cluster, alice: Client, told: Told
) -> None:
    cluster_rows.topic(cluster, "payments")
    name = "<img src=x>\n\0"
    told.put(live.group(name), live.pair(name, "payments", lag=1))
    told.answers["/topic"] = {"ms": 1, "partitions": [], "groups": [name], "is_cut": False}

    page = alice.get("/topics/payments?tab=consumers").content.decode()

    assert "<img" not in page
    assert "&lt;img src=x&gt;" in page


def test_groups_that_the_user_may_not_see_are_counted(cluster: models.Cluster, told: Told) -> None:
    cluster_rows.topic(cluster, "payments")
    tell_of_payments(told)
    some = users.user("some", role=None)
    users.grant(some, Operation.VIEW, kind=Kind.TOPIC)
    browser = Client()
    browser.force_login(some)

    page = browser.get("/topics/payments?tab=consumers").content.decode()

    assert "No group that you may see reads this topic" in page
    assert "2 others do" in page
