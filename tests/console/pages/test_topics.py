"""The list of topics, as a browser gets it."""

import pytest
from django.test import Client

from console.queries.topics import PAGE_ROWS
from tests.builders import live
from tests.builders.live import Told
from tests.console import cluster_rows


def test_nobody_sees_it_without_signing_in(client: Client) -> None:
    assert client.get("/topics")["Location"] == "/login?next=/topics"


def test_a_topic_stands_with_its_rates_and_what_was_set(alice: Client, told: Told) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    cluster_rows.topic(shown, "payments", partitions=6, configs={"retention.ms": "1209600000"})
    told.put(
        live.topic(
            "payments",
            size_bytes=3 * 1024**3,
            records_per_s=18_234.0,
            lag=1_234,
            verdict="stopped",
            worst_group="billing",
        )
    )

    page = alice.get("/topics").content.decode()

    for text in (
        "payments",
        "retention.ms=1209600000",
        "3 GiB",
        ">18.2 k<",
        '<span class="unseen">Stopped</span>1.2 k',
        f'href="/group?name=billing&amp;cluster={cluster_rows.CLUSTER_ID}" title="billing"',
        "1–1 of 1",
    ):
        assert text in page


def test_a_collector_that_is_away_leaves_the_list_and_says_so(alice: Client, told: Told) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "payments")
    told.begin_silent()

    page = alice.get("/topics").content.decode()

    assert "The collector has sent nothing yet" in page
    assert "payments" in page


def test_names_and_configs_never_become_markup(alice: Client, told: Told) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.topic(shown, "a" * 249, configs={"retention.ms": "<script>"})
    told.put(live.topic("a" * 249, lag=1, verdict="falling behind", worst_group="<img src=x>"))

    page = alice.get("/topics?facet=<i>&sort=<i>&q=%3Ci%3E").content.decode()
    page += alice.get("/topics").content.decode()

    assert "<script>" not in page
    assert "<img" not in page
    assert "<i>" not in page
    assert "a" * 249 in page


def test_facets_are_links_that_say_how_many(alice: Client) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.topic(shown, "payments")
    cluster_rows.topic(shown, "__consumer_offsets")

    page = alice.get("/topics?facet=internal").content.decode()

    assert "__consumer_offsets" in page
    assert 'aria-current="true">Internal <b>1</b>' in page
    assert f'href="/topics/payments?cluster={cluster_rows.CLUSTER_ID}"' not in page


def test_the_button_that_creates_is_for_those_who_may(alice: Client, victor: Client) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "payments")

    assert "Create topic" in alice.get("/topics").content.decode()
    assert "Create topic" not in victor.get("/topics").content.decode()


def test_a_cluster_without_topics_says_how_to_make_one(alice: Client) -> None:
    cluster_rows.cluster()

    page = alice.get("/topics").content.decode()

    assert "No topics yet" in page
    assert "./samsa topics create" in page


def test_a_filter_that_finds_nothing_is_told_from_an_empty_cluster(alice: Client) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "payments")

    page = alice.get("/topics?q=<b>").content.decode()

    assert "No topic has “&lt;b&gt;” in its name" in page
    assert "Show all 1" in page


@pytest.mark.parametrize("page", ["0", "-1", "x", "", "9" * 30, "²"])
def test_a_page_that_cannot_be_meant_is_some_page(alice: Client, page: str) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "payments")

    answer = alice.get("/topics", {"page": page})

    assert answer.status_code == 200
    assert "payments" in answer.content.decode()


@pytest.mark.slow
def test_pages_lead_to_each_other_and_keep_filter_and_cluster(alice: Client) -> None:
    shown = cluster_rows.cluster()
    for number in range(PAGE_ROWS + 1):
        cluster_rows.topic(shown, f"topic-{number:03}")

    first = alice.get("/topics?q=topic").content.decode()

    link = f"?q=topic&amp;cluster={cluster_rows.CLUSTER_ID}&amp;page=2"
    assert link in first
    assert "topic-100" in alice.get(f"/topics{link}".replace("&amp;", "&")).content.decode()
