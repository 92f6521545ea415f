"""The page of docs/howto/use-websockets.md, in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.extras import requires
from tests.fakes.socket_door import EXAMPLES, TOKEN, door_beside

pytestmark = [requires("chromium"), pytest.mark.slow]

FIRST_TWO = """([gateway, token]) => new Promise((done) => {
  const shown = [];
  const socket = follow(gateway, token, "orders", (record) => {
    shown.push(record.value);
    if (shown.length === 2) {
      socket.close();
      done(shown);
    }
  });
})"""


def test_a_page_shows_the_records_of_a_topic(browser: Browser, tmp_path: Path) -> None:
    with door_beside(tmp_path) as address:
        context = browser.new_context()
        try:
            page = context.new_page()
            page.add_script_tag(content=EXAMPLES["js"])
            assert page.evaluate(FIRST_TWO, [address, TOKEN]) == ["one", "two"]
        finally:
            context.close()
