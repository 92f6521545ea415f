"""The end of a session, in a real browser: a warning before, and a sign-in that loses nothing."""

from datetime import timedelta

import pytest
from django.test import Client
from django.test.utils import override_settings
from playwright.sync_api import expect

from gateway.access.models import Account
from tests.browser.pages.conftest import Opened
from tests.builders.users import PASSWORD
from tests.console import cluster_rows
from tests.extras import requires

pytestmark = [requires("chromium"), pytest.mark.slow]


def test_the_page_warns_and_keeps_what_is_typed_while_its_user_signs_in_again(
    visit: Opened, alice: Client
) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "orders")
    with visit(alice) as visitor:
        page = visitor.page
        with override_settings(SESSION_IDLE=timedelta(seconds=100)):
            visitor.open(f"/topics/orders/produce?cluster={cluster_rows.CLUSTER_ID}")
            visitor.write("Value", '{"typed": "an hour"}')
            visitor.sees("Your session ends at")
            alice.logout()
            visitor.press("button", "Stay signed in")

        expect(page.get_by_role("dialog")).to_be_visible()
        page.get_by_role("dialog").get_by_label("Password").fill("wrong")
        visitor.press("button", "Sign in", within=page.get_by_role("dialog"))
        visitor.sees("Wrong user name or password")
        page.get_by_role("dialog").get_by_label("Password").fill(PASSWORD)
        visitor.press("button", "Sign in", within=page.get_by_role("dialog"))

        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_label("Value", exact=True)).to_have_value('{"typed": "an hour"}')
        assert page.get_by_text("Your session ends at").count() == 0
    assert visitor.complaints == []


def test_a_password_that_has_to_be_changed_first_is_asked_for_once(
    visit: Opened, alice: Client
) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "orders")
    with visit(alice) as visitor:
        page = visitor.page
        visitor.open(f"/topics/orders/produce?cluster={cluster_rows.CLUSTER_ID}")
        visitor.write("Value", "typed")
        alice.logout()
        page.evaluate("document.dispatchEvent(new Event('samsa:signed-out'))")
        Account.objects.filter(user__username="alice").update(must_change_password=True)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.get_by_role("dialog").get_by_label("Password").fill(PASSWORD)
        visitor.press("button", "Sign in", within=page.get_by_role("dialog"))

        expect(page.get_by_role("link", name="Change password")).to_be_visible()
        assert len([each for each in asked if each.endswith("/account/session")]) == 1
        Account.objects.filter(user__username="alice").update(must_change_password=False)
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_label("Value", exact=True)).to_have_value("typed")
    assert visitor.complaints == []
