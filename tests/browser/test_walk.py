"""A newcomer's walk through the console by the keyboard; a click would press the same."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.home import (
    address_of,
    first_password,
    logs_of,
    secrets_of,
)
from tests.browser.steps import take
from tests.browser.visitor import visiting
from tests.browser.walk import STEPS, Newcomer
from tests.extras import requires
from tests.suite.services import shared_console

pytestmark = [requires("chromium", "axe"), pytest.mark.slow]


def test_a_newcomer_finds_the_way_by_the_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    home = shared_console()
    with visiting(browser, address_of(home), by_keyboard=True) as visitor:
        password = first_password(home)
        newcomer = Newcomer(
            name="admin", password=password, visitor=visitor, bootstrap=home.bootstrap
        )

        shown = take(STEPS, newcomer, visitor, tmp_path)

        sessions = {str(cookie["value"]) for cookie in visitor.page.context.cookies()}
    told = logs_of(home)
    assert "user.signed_in" in told
    secrets = secrets_of(home) | {password}
    assert [secret for secret in secrets if secret in shown] == []
    assert [secret for secret in secrets | sessions if secret in told] == []
