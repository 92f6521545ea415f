"""The form of a connector in a real browser: checked while somebody types, who is not disturbed."""

import pytest
from django.test import Client
from playwright.sync_api import expect

from tests.browser.pages.conftest import Opened
from tests.builders.live import CLUSTER_ID
from tests.console import cluster_rows
from tests.extras import requires

pytestmark = [requires("chromium"), pytest.mark.slow]


def test_what_is_wrong_is_said_beside_its_field_while_it_is_typed(
    visit: Opened, alice: Client
) -> None:
    cluster_rows.cluster()

    with visit(alice) as visitor:
        visitor.open(f"/connectors/+new/samsa.datagen?cluster={CLUSTER_ID}")
        page = visitor.page
        typed = page.locator('[name="key-tasks.max"]')
        typed.press_sequentially("many")

        expect(page.locator('[id="help-tasks.max"]')).to_contain_text("Not a number of type INT")
        expect(typed).to_be_focused()
        expect(typed).to_have_value("many")
        expect(page.locator("#json")).to_have_value(
            '{\n  "connector.class": "samsa.datagen",\n  "tasks.max": "many"\n}'
        )

        typed.fill("2")
        expect(page.locator("#verdict")).to_have_text("2 still to fill in")
        page.locator("summary", has_text="Transforms").click()
        page.locator('[name="key-transforms"]').fill("hide")
        expect(page.locator('[name="key-transforms.hide.type"]')).to_be_visible()
        expect(page.locator('[name="key-transforms"]')).to_be_focused()
    assert visitor.complaints == []
