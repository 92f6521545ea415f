"""Groups in a real browser: by keys, and with names that no address likes."""

import pytest
from django.test import Client
from playwright.sync_api import expect

from tests.browser.pages.conftest import Opened
from tests.builders import live
from tests.builders.live import CLUSTER_ID, Told
from tests.console import cluster_rows
from tests.extras import requires

pytestmark = [requires("chromium"), pytest.mark.slow]

# Where a browser would take a path for another one, in the order of the list.
NAMES = ("..", "50%2F50 #1?x=y&z", "<b>名前</b>", "a/../../login")


def test_rows_are_gone_to_and_opened_by_keys_whatever_their_names_are(
    visit: Opened, alice: Client, told: Told
) -> None:
    cluster_rows.broker(cluster_rows.cluster(), 1)
    told.put(*(live.group(name) for name in NAMES))

    with visit(alice) as visitor:
        for place, name in enumerate(NAMES, start=1):
            visitor.open(f"/groups?cluster={CLUSTER_ID}")
            for key in (*"j" * place, "Enter"):
                visitor.page.keyboard.press(key)

            expect(visitor.page.locator("h1")).to_have_text(name)
            expect(visitor.page.locator("#verdict h2")).to_have_text("Caught up: nothing waits")
            # A tab that leaves while its scripts are on their way complains.
            expect(visitor.page.locator("figure summary").first).to_be_visible()
    assert visitor.complaints == []
