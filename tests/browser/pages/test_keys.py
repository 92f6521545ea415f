"""Single keys in a real browser: they lead to pages, and change nothing by themselves."""

import re

import pytest
from django.test import Client
from playwright.sync_api import expect

from tests.browser.pages.conftest import Opened
from tests.builders import connectors
from tests.builders.live import CLUSTER_ID
from tests.console import cluster_rows
from tests.extras import requires

pytestmark = [requires("chromium"), pytest.mark.slow]
NOTE_ORDERS = """addEventListener("submit", (event) => {
  event.preventDefault();
  window.ordered = true;
}, true)"""


def test_the_key_of_the_main_action_opens_a_page_and_gives_no_order(
    visit: Opened, alice: Client
) -> None:
    cluster_rows.cluster()
    connectors.connector(CLUSTER_ID, "to-files", kind="sink", target="STOPPED", state="STOPPED")

    with visit(alice) as visitor:
        page = visitor.page
        visitor.open(f"/connectors/to-files?cluster={CLUSTER_ID}")
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        page.evaluate(NOTE_ORDERS)
        page.keyboard.press("n")
        assert page.evaluate("window.ordered") is None

        visitor.open(f"/topics?cluster={CLUSTER_ID}")
        page.keyboard.press("n")
        expect(page).to_have_url(re.compile(r"/topics/\+new\?"))
        # A tab that closes while its scripts are on their way complains.
        page.wait_for_load_state("load")
    assert visitor.complaints == []
