"""Fixtures of the tests in a browser: one Chromium and one home for the whole run."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.suite.services import shared_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The Chromium of the run, which other workers use too: open a context of your own."""
    # For one file of tests only: until the driver ends, this thread passes for one that serves an
    # event loop, where Django would refuse to ask a database.
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as driver:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield driver.chromium.connect_over_cdp(shared_chromium())
