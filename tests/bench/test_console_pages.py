"""The console under a benchmark, with so few topics that only its being there means anything."""

import socket
from collections.abc import Iterator

import pytest

from bench import console_pages
from bench.console_pages import IMPORTED, NAMED, Page, assets_table, chart_table, row_of, stream
from bench.console_site import HOST, Site, running_site

pytestmark = pytest.mark.slow

SIZE = {"topics": 120, "partitions": 2, "groups": 150, "committed": 2, "moving": 12}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_site(SIZE, people=1) as running:
        yield running


def pages() -> list[Page]:
    sizes = {"topics": SIZE["topics"], "groups": SIZE["groups"]}
    return [*console_pages.lists(**sizes), *console_pages.others(**sizes)]


def test_every_page_answers_and_asks_no_broker(site: Site) -> None:
    before = site.calls.count

    rows = [row_of(site, page, len(page.paths)) for page in pages()]

    assert len(rows) >= 6
    assert site.calls.count == before


def test_a_call_of_a_broker_would_be_counted(site: Site) -> None:
    before = site.calls.count

    with socket.create_connection((HOST, site.calls.port)) as caller:
        # It is counted before it is closed.
        assert caller.recv(1) == b""

    assert site.calls.count == before + 1


def test_charts_reach_back_seven_days_within_their_points(site: Site) -> None:
    points = [row[5] for row in chart_table(site, samples=1).rows]

    assert len(points) == 4
    assert all(isinstance(number, int) and 1_000 <= number <= 2_000 for number in points)


def test_the_first_page_is_weighed_with_the_modules_that_modules_import(site: Site) -> None:
    rows = {row[0]: row[1] for row in assets_table(site).rows}

    assert {"/", "/static/console/look.css", "/static/console/vendor/htmx.min.js"} <= rows.keys()
    # Named by modules only: one that is imported, and one that comes with the first chart.
    assert {"/static/console/renewal.js", "/static/console/vendor/uPlot.iife.min.js"} <= rows.keys()


def test_an_event_stream_begins(site: Site) -> None:
    stream(site, 0).close()


def test_assets_are_found_in_pages_and_modules() -> None:
    page = b'<link href="/static/a.css"><script src="/static/b.js">'
    module = b'import { x } from "./c.js"; import "../d.js"; const e = await import("./f.js")'
    module += b'; const g = new URL("./g.css", import.meta.url)'

    assert NAMED.findall(page) == [b"/static/a.css", b"/static/b.js"]
    assert IMPORTED.findall(module) == [b"./c.js", b"../d.js", b"./f.js", b"./g.css"]
