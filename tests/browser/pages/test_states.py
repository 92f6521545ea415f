"""Every page in each of its states: usable by everybody, and within the content policy."""

import pytest
from django.test import Client
from playwright.sync_api import Page

from console.queries.reading import State
from tests.browser import accessibility
from tests.browser.pages.conftest import Opened
from tests.browser.pages.states import enter
from tests.builders.live import Told
from tests.extras import requires

pytestmark = [requires("chromium", "axe"), pytest.mark.slow]


@pytest.mark.parametrize(
    "states", [(State.EMPTY, State.LOADED), (State.STALE, State.FAILED)], ids=["healthy", "broken"]
)
def test_pages_keep_nobody_out_and_break_no_rule(
    states: tuple[State, ...], visit: Opened, alice: Client, told: Told
) -> None:
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    with visit(alice) as visitor:
        for state in states:
            pages = enter(state, alice, told)
            assert len(pages) >= 8
            # Many pages say the same in both states.
            for path in (path for content, path in pages.items() if content not in seen):
                visitor.open(path)
                for said in looked_at(visitor.page):
                    found.setdefault(said, []).append(f"{state.name} {path}")
            seen.update(pages)
            # A page that renews itself would meet the next state half made.
            visitor.page.goto("about:blank")

    lines = [f"{said} on {', '.join(places)}" for said, places in found.items()]
    assert not lines, "\n".join(lines)
    assert visitor.complaints == []


def looked_at(page: Page) -> list[str]:
    """Return what is wrong with a page in the light theme, and with the colours of the dark one."""
    page.emulate_media(color_scheme="light")
    light = accessibility.complaints(page)
    page.emulate_media(color_scheme="dark")
    return light + [f"dark: {said}" for said in accessibility.complaints(page, only_colours=True)]
