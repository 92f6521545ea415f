"""The list of topics, as a browser gets it."""

import pytest
from django.test import Client

from console.queries.topics import PAGE_ROWS
from tests.console import cluster_rows


def test_nobody_sees_it_without_signing_in(client: Client) -> None:
    assert client.get("/topics")["Location"] == "/login?next=/topics"


def test_a_topic_stands_with_its_id_and_what_was_set(alice: Client) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    cluster_rows.topic(shown, "payments", partitions=6, configs={"retention.ms": "1209600000"})

    page = alice.get("/topics").content.decode()

    for text in (
        "payments",
        "retention.ms=1209600000",
        "cGF5bWVudHMAAAAAAAAAAA",
        "Led",
        "1–1 of 1",
    ):
        assert text in page


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
