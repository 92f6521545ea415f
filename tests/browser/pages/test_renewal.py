"""A page renews itself while numbers move, and draws its charts, in a real browser."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Route, expect

from tests.browser.pages.conftest import Opened
from tests.browser.visitor import Visitor
from tests.builders import live
from tests.builders.live import CLUSTER_ID, Told
from tests.console import cluster_rows
from tests.extras import requires

pytestmark = [requires("chromium"), pytest.mark.slow]

BROKER_ROW = "#brokers tbody tr"


class Stream:
    """The event stream of a tab: each time the browser connects it is told what holds then."""

    def __init__(self) -> None:
        self.step = 1
        self.state = "fresh"
        # Neither streams nor pages are answered, as by a server that is gone.
        self.is_hung = False

    def page(self, route: Route) -> None:
        if self.is_hung and "samsa-poll" in route.request.headers:
            route.abort()
        else:
            route.fallback()

    def answer(self, route: Route) -> None:
        if self.is_hung:
            route.abort()
            return
        value = {"state": self.state, "step": f"run:{self.step}", "told_s": 1_790_000_000}
        route.fulfill(
            content_type="text/event-stream",
            body=f"retry: 100\nevent: live\ndata: {json.dumps(value)}\n\n",
        )


def samples(**query: str | int) -> Mapping[str, Any]:
    """Answer as the collector does: a sample, a gap, two samples."""
    return {"start_s": int(query["from"]), "step_s": 10, "samples": [2048.0, None, 1024.0, 4096.0]}


@contextmanager
def at_overview(visit: Opened, user: Client, told: Told) -> Iterator[tuple[Visitor, Stream]]:
    """Open the overview of a cluster with a broker that takes 1 KiB a second."""
    cluster_rows.broker(cluster_rows.cluster(), 1)
    told.put(live.broker(1, bytes_in_per_s=1024.0))
    told.answers["/series"] = samples
    stream = Stream()
    with visit(user) as visitor:
        visitor.page.context.route(f"{visitor.base}/events*", stream.answer)
        visitor.page.context.route(f"{visitor.base}/?cluster=*", stream.page)
        visitor.open(f"/?cluster={CLUSTER_ID}")
        yield visitor, stream
    assert visitor.complaints == []


def test_numbers_that_moved_are_shown_and_all_else_stays(
    visit: Opened, alice: Client, told: Told
) -> None:
    with at_overview(visit, alice, told) as (visitor, stream):
        page = visitor.page
        expect(page.locator("figure canvas").first).to_be_visible()
        page.locator("figure summary").first.click()
        page.evaluate("window.canvas = document.querySelector('figure canvas')")
        page.mouse.move(0, 0)

        told.put(live.broker(1, bytes_in_per_s=5 * 1024.0))
        stream.step += 1

        expect(page.locator(BROKER_ROW)).to_contain_text("5 KiB/s")
        assert page.evaluate("window.canvas === document.querySelector('figure canvas')")
        assert page.locator("figure details").first.get_attribute("open") is not None


def test_what_the_server_said_once_stays_until_somebody_goes_on(
    visit: Opened, alice: Client, told: Told
) -> None:
    with at_overview(visit, alice, told) as (visitor, stream):
        page = visitor.page
        page.mouse.move(0, 0)
        done = "<p class='notice ok' role='status' data-stays>Done: it was created</p>"
        page.evaluate(f'document.querySelector("main").insertAdjacentHTML("afterbegin", "{done}")')

        told.put(live.broker(1, bytes_in_per_s=5 * 1024.0))
        stream.step += 1

        expect(page.locator(BROKER_ROW)).to_contain_text("5 KiB/s")
        assert page.locator("main > .notice").text_content() == "Done: it was created"


def test_rows_under_the_pointer_stay_and_their_updates_are_offered(
    visit: Opened, alice: Client, told: Told
) -> None:
    with at_overview(visit, alice, told) as (visitor, stream):
        page = visitor.page
        # Charts that come later would move the row away from the pointer.
        expect(page.locator("figure canvas").last).to_be_visible()
        page.locator(BROKER_ROW).hover()

        told.put(live.broker(1, bytes_in_per_s=5 * 1024.0))
        stream.step += 1

        expect(page.locator("#updates")).to_be_visible()
        assert "1 KiB/s" in (page.locator(BROKER_ROW).text_content() or "")
        page.locator("#updates").click()
        expect(page.locator(BROKER_ROW)).to_contain_text("5 KiB/s")
        expect(page.locator("#updates")).to_be_hidden()


def test_a_collector_that_fell_silent_is_told_at_once_with_what_it_told_last(
    visit: Opened, alice: Client, told: Told
) -> None:
    with at_overview(visit, alice, told) as (visitor, stream):
        page = visitor.page
        expect(page.locator("#live")).to_have_text("Live")

        told.go_silent(age_s=5.0)
        stream.state = "stale"

        expect(page.locator("#live")).to_contain_text("Stale since")
        expect(page.locator("#needs")).to_contain_text("Rates, sizes and lag are old")
        expect(page.locator(BROKER_ROW)).to_contain_text("1 KiB/s")
        expect(page.locator("figure .note").first).to_contain_text("the collector is away")


def test_a_server_that_hangs_is_told_within_seconds_and_its_numbers_are_dimmed(
    visit: Opened, alice: Client, told: Told
) -> None:
    with at_overview(visit, alice, told) as (visitor, stream):
        page = visitor.page
        page.clock.install()
        visitor.open(f"/?cluster={CLUSTER_ID}")
        page.clock.run_for(1_000)
        expect(page.locator("#live")).to_have_text("Live")

        stream.is_hung = True
        page.clock.run_for(14_000)

        expect(page.locator("#live")).to_have_text(re.compile(r"^Not connected since \d\d:\d\d"))
        expect(page.locator("#live")).to_have_class("st warn")
        expect(page.locator("main")).to_have_class("old")

        stream.is_hung = False
        page.clock.run_for(14_000)

        expect(page.locator("#live")).to_have_text("Live")
        expect(page.locator("main")).not_to_have_class("old")


def test_a_chart_has_its_newest_numbers_a_table_and_a_range(
    visit: Opened, alice: Client, told: Told
) -> None:
    with at_overview(visit, alice, told) as (visitor, _):
        page = visitor.page
        chart = page.locator("#chart-bytes")
        expect(chart.locator("canvas")).to_be_visible()
        expect(chart.locator(".legend")).to_contain_text("In 4 KiB/s")

        chart.locator("summary").click()
        expect(chart.locator("tbody tr")).to_have_count(3)
        expect(chart.locator("tbody tr").first).to_contain_text("4 KiB/s")
        told.asked.clear()
        with page.expect_response("**/series?*metric=log_bytes*"):
            visitor.press("button", "7 d")
        expect(visitor.find("button", "7 d")).to_have_attribute("aria-pressed", "true")

    ranges = {int(q["to"]) - int(q["from"]) for path, q in told.asked if path == "/series"}
    assert ranges == {604_800}


def test_a_chart_that_cannot_be_read_says_why(visit: Opened, alice: Client, told: Told) -> None:
    with at_overview(visit, alice, told) as (visitor, _):
        told.begin_silent()
        visitor.open(f"/?cluster={CLUSTER_ID}")

        note = visitor.page.locator("#chart-lag .note")
        expect(note).to_contain_text("Not read: the collector does not answer")
