"""The search box, with and without a script."""

from django.test import Client

from tests.console import cluster_rows
from tests.console.pages.test_overview import lose_the_control_plane


def test_the_dialog_gets_a_fragment_and_a_browser_without_a_script_a_page(alice: Client) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "orders")

    fragment = alice.get("/search?q=ord", headers={"HX-Request": "true"})
    page = alice.get("/search?q=ord")

    assert "orders" in fragment.content.decode()
    assert "<html" not in fragment.content.decode()
    assert "orders" in page.content.decode()
    assert '<html lang="en">' in page.content.decode()
    assert fragment["Vary"].startswith("HX-Request")


def test_what_is_looked_for_stays_text(alice: Client) -> None:
    cluster_rows.cluster()

    page = alice.get("/search", {"q": '"><script>alert(1)</script>'}).content.decode()

    assert "<script>alert" not in page
    assert "Nothing is called" in page


def test_a_failure_is_told_in_the_box(alice: Client) -> None:
    lose_the_control_plane()

    answer = alice.get("/search?q=x", headers={"HX-Request": "true"})

    assert answer.status_code == 503
    assert "The database does not answer" in answer.content.decode()


def test_every_page_has_the_box_and_the_stream_of_its_cluster(alice: Client) -> None:
    cluster_rows.cluster()

    page = alice.get("/").content.decode()

    assert 'id="seek" href="/search?cluster=' in page
    topics = (f"topic={kind}:{cluster_rows.CLUSTER_ID}" for kind in ("cluster", "live", "health"))
    assert f'sse-connect="/events?{"&amp;".join(topics)}"' in page
    assert '"allowEval":false' in page
    assert '"includeIndicatorStyles":false' in page
