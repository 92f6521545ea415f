"""Every page in each of its states: usable by everybody, and within the content policy."""

import pytest
from django.test import Client

from console.queries.reading import State
from tests.browser import accessibility
from tests.browser.pages.conftest import Opened
from tests.browser.pages.states import MAKERS, break_down, pages_of
from tests.builders.live import Told
from tests.extras import requires

pytestmark = [requires("chromium", "axe"), pytest.mark.slow]


@pytest.mark.parametrize("state", State)
def test_pages_keep_nobody_out_and_break_no_rule(
    state: State, visit: Opened, alice: Client, told: Told
) -> None:
    MAKERS[state](told)
    pages = pages_of(alice)
    if state is State.STALE:
        told.go_silent()
        break_down(told)

    found: dict[str, list[str]] = {}
    with visit(alice) as visitor:
        for path in pages:
            visitor.page.emulate_media(color_scheme="light")
            visitor.open(path)
            for said in accessibility.complaints(visitor.page):
                found.setdefault(said, []).append(path)
            visitor.page.emulate_media(color_scheme="dark")
            for said in accessibility.complaints(visitor.page, only_colours=True):
                found.setdefault(f"dark: {said}", []).append(path)

    assert len(pages) >= 8
    lines = [f"{said} on {', '.join(places)}" for said, places in found.items()]
    assert not lines, "\n".join(lines)
    assert visitor.complaints == []
