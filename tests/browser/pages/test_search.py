"""The search box of every page, in a real browser."""

import pytest
from django.test import Client
from playwright.sync_api import Route, expect

from tests.browser.pages.conftest import Opened
from tests.console import cluster_rows
from tests.extras import requires

pytestmark = [requires("chromium"), pytest.mark.slow]

# Until the scripts of the page run, keys are the browser's own.
OPEN = """() => {
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }))
  return document.querySelector("#search")?.open
}"""


def test_what_is_typed_while_the_page_loads_its_scripts_is_searched(
    visit: Opened, alice: Client
) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "orders")
    held: list[Route] = []
    with visit(alice) as visitor:
        page = visitor.page
        page.route("**/messages/browser*.js", lambda route: held.append(route))  # noqa: PLW0108 - it keeps an attribute on it
        address = f"{visitor.base}/topics/orders/messages?cluster={cluster_rows.CLUSTER_ID}"
        page.goto(address, wait_until="commit")
        page.wait_for_function(OPEN)
        page.keyboard.type("orders")
        for route in held:
            route.fallback()

        expect(page.locator("#found a").first).to_be_visible()
    assert held
    assert visitor.complaints == []
