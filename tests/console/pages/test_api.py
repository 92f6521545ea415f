"""The page about the interfaces for programs, as a browser gets it."""

import re

from django.test import Client

from gateway.middleware import DATA_IMAGES, POLICY
from tests.console import cluster_rows


def test_nobody_sees_it_without_signing_in(client: Client) -> None:
    assert client.get("/api")["Location"] == "/login?next=/api"


def test_everybody_who_is_signed_in_sees_it(olga: Client) -> None:
    cluster_rows.cluster()

    answer = olga.get("/api")

    assert answer.status_code == 200
    assert 'data-url="/v3/openapi.json"' in answer.content.decode()


def test_it_alone_may_show_images_of_its_own_text(alice: Client) -> None:
    cluster_rows.cluster()

    assert alice.get("/api")["Content-Security-Policy"] == DATA_IMAGES
    assert alice.get("/topics")["Content-Security-Policy"] == POLICY
    assert POLICY.replace("img-src 'self'", "img-src 'self' data:") == DATA_IMAGES


def test_the_viewer_comes_from_this_host(alice: Client) -> None:
    cluster_rows.cluster()
    text = alice.get("/api").content.decode()

    loaded = re.findall(r'(?:src|href)="(/static/drf_[^"]+)"', text)

    assert len(loaded) == 2
    for address in loaded:
        answer = alice.get(address)
        assert answer.status_code == 200
        answer.close()


def test_the_description_is_open_to_the_page(client: Client) -> None:
    answer = client.get("/v3/openapi.json")

    assert answer.status_code == 200
    assert answer.json()["openapi"].startswith("3.")


def test_it_is_found_by_the_search_box(alice: Client) -> None:
    cluster_rows.cluster()

    assert 'href="/api?cluster=' in alice.get("/search?q=openapi").content.decode()
