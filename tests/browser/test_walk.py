"""A newcomer's walk through the console, with the mouse and by the keyboard alone."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.home import (
    GIVEN_PASSWORD,
    address_of,
    alone_in,
    first_password,
    logs_of,
    make_newcomer,
    secrets_of,
)
from tests.browser.steps import take
from tests.browser.visitor import Visitor, visiting
from tests.browser.walk import STEPS, Newcomer
from tests.extras import requires
from tests.suite.services import SharedHome, shared_console

pytestmark = [requires("chromium", "axe"), pytest.mark.slow]


def walk(walker: Newcomer, home: SharedHome, pictures: Path) -> None:
    """Take every step, and look for secrets in all that was shown and logged."""
    visitor = walker.visitor
    shown = take(STEPS, walker, visitor, pictures)
    sessions = {str(cookie["value"]) for cookie in visitor.page.context.cookies()}
    told = logs_of(home)
    assert "user.signed_in" in told
    secrets = secrets_of(home) | {walker.password}
    assert [secret for secret in secrets if secret in shown] == []
    assert [secret for secret in secrets | sessions if secret in told] == []


def newcomer(name: str, password: str, visitor: Visitor, home: SharedHome) -> Newcomer:
    return Newcomer(name=name, password=password, visitor=visitor, bootstrap=home.bootstrap)


def test_a_newcomer_finds_the_way_with_the_mouse(browser: Browser, tmp_path: Path) -> None:
    home = shared_console()
    with alone_in(home), visiting(browser, address_of(home)) as visitor:
        password = first_password(home)
        walk(newcomer("admin", password, visitor, home), home, tmp_path)


def test_a_newcomer_finds_the_way_by_the_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    home = shared_console()
    make_newcomer(home, "kim")
    with alone_in(home), visiting(browser, address_of(home), by_keyboard=True) as visitor:
        walk(newcomer("kim", GIVEN_PASSWORD, visitor, home), home, tmp_path)
