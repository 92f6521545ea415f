"""Fixtures of the pages in a browser: the databases, the collector and the user of the console's
own tests, and a tab that they are served to.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

import pytest
from django.test import Client
from playwright.sync_api import Browser

from tests.browser.site import Site
from tests.browser.visitor import Visitor, visiting
from tests.console.conftest import alice, database, told

# pytest finds them here by their names.
__all__ = ["alice", "database", "told"]

Theme = Literal["light", "dark"]
Opened = Callable[..., AbstractContextManager[Visitor]]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site()
    with made.running():
        yield made


@pytest.fixture
def visit(browser: Browser, site: Site) -> Opened:
    """Open a tab in which a user of Django's test client is signed in."""

    @contextmanager
    def opened(user: Client, theme: Theme = "light") -> Iterator[Visitor]:
        # The tab is gone before its user is.
        with site.seen_by(user), visiting(browser, site.base, theme=theme) as visitor:
            yield visitor

    return opened
