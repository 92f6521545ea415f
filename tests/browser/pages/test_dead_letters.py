"""Dead letters in a real browser: accessible, chosen, planned and sent again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client

from connectors import models
from console.queries import dead_letters as query
from tests.browser import accessibility
from tests.browser.pages.conftest import Opened
from tests.browser.visitor import Visitor
from tests.builders import connectors as rows
from tests.builders.live import CLUSTER_ID
from tests.console import cluster_rows
from tests.extras import requires
from tests.fakes.dead_letters import DEAD, bury
from tests.fakes.slice_ports import FakeClock, FakeWire

pytestmark = [requires("chromium", "axe"), pytest.mark.slow]
NAME = "orders-to-files"
CONFIG = {
    "connector.class": "samsa.file.sink",
    "topics": "in",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": DEAD,
    "errors.deadletterqueue.context.headers.enable": "true",
}
TRACE = "org.apache.kafka.connect.errors.DataException: no JSON\n" + "  at line 3\n" * 40
CAUSE: dict[str, Any] = {
    "connector_name": NAME,
    "exception_stacktrace": TRACE,
    "class_name": "JsonConverter",
}


@pytest.fixture(autouse=True)
def wire(monkeypatch: pytest.MonkeyPatch) -> FakeWire:
    cluster_rows.cluster()
    sink = rows.connector(
        CLUSTER_ID, NAME, kind="sink", plugin="samsa.file.sink", topics=["in"], config=CONFIG
    )
    rows.task(sink, figures={"dead_letters": 5})
    made = FakeWire(FakeClock(), **{DEAD: 1, "in": 1})
    bury(made, b"17, no JSON", key=b"order-17", **CAUSE)
    bury(made, b'{"order": 18, "item": "' + b"x" * 300 + b'"}', key=b"order-18", **CAUSE)
    bury(made, b"null", key=b"order-19", **{**CAUSE, "stage": "TASK_PUT"})
    bury(made, b"theirs", **{**CAUSE, "connector_name": "another"})

    @contextmanager
    def cluster_of(cluster: str, *, user: str = "") -> Iterator[FakeWire]:
        del cluster, user
        yield made

    monkeypatch.setattr(query, "cluster_of", cluster_of)
    return made


def look(visitor: Visitor) -> None:
    """Note accessibility violations of a page, in both themes."""
    for theme, only_colours in (("light", False), ("dark", True)):
        visitor.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        found = accessibility.complaints(visitor.page, only_colours=only_colours)
        visitor.complaints += [f"{theme}, {visitor.page.url}: {one}" for one in found]


def arrives(visitor: Visitor, text: str) -> None:
    """Wait until a page is complete: leaving it while scripts load logs errors."""
    visitor.sees(text)
    visitor.page.wait_for_load_state("load")


def test_letters_are_chosen_planned_and_sent_again(visit: Opened, alice: Client) -> None:
    with visit(alice) as visitor:
        visitor.open(f"/connectors/{NAME}?cluster={CLUSTER_ID}")
        arrives(visitor, "look at them and send them again")
        visitor.press("link", "look at them and send them again")
        arrives(visitor, "Why they failed")
        visitor.page.locator("#letters summary").first.click()
        look(visitor)

        # The Enter key in a field of the form must not press the first button, which is of a cause.
        visitor.page.locator("details.ask-more summary").click()
        visitor.write("from offset", "1")
        visitor.page.keyboard.press("Enter")
        visitor.sees("Why they failed")
        assert "plan" not in visitor.page.url

        visitor.choose("Send to", "the topic it was read from, for all its readers")
        visitor.press("button", "Plan: all")
        arrives(visitor, "Who reads them again")
        visitor.write("Type orders-to-files to confirm", "another")
        visitor.press("button", "Send again")
        arrives(visitor, "The typed name is not the name of the connector")
        look(visitor)

        visitor.press("link", "Cancel")
        arrives(visitor, "the newest of 4")
        visitor.press("checkbox", "Choose letter 0/1")
        visitor.press("button", "Plan: the ticked ones")
        arrives(visitor, "Send 1 dead letter again")
        visitor.press("button", "Send again")
        arrives(visitor, "0 of 1")
        look(visitor)
        visitor.press("button", "Stop run")
        arrives(visitor, "is stopping")
    assert visitor.complaints == []
    assert models.Redrive.objects.get().state == "STOPPED"
