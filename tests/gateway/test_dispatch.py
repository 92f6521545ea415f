"""What goes past Django, and with which headers."""

from gateway.dispatch import Dispatch
from gateway.health import Receive, Scope, Send
from gateway.middleware import HEADERS
from tests.gateway.test_health import ask


async def bare(_scope: Scope, _receive: Receive, send: Send) -> None:
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"bare"})


async def django(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})


DISPATCH = Dispatch({"/events": bare}, otherwise=django)


def test_a_bare_application_answers_at_its_path_with_the_headers_of_every_answer() -> None:
    status, headers, body = ask("/events", application=DISPATCH)

    assert (status, body) == (200, b"bare")
    assert {name: headers[name.lower()] for name in HEADERS} == HEADERS
    assert headers["cache-control"] == "no-store"
    assert headers["content-type"] == "text/event-stream"


def test_all_else_goes_on_and_keeps_its_headers() -> None:
    assert ask("/events/x", application=DISPATCH)[:2] == (204, {})
    assert ask("/", application=DISPATCH)[0] == 204


def test_the_console_answers_events_to_nobody_who_is_not_signed_in() -> None:
    assert ask("/events?", host="localhost")[0] == 404
    assert ask("/events", host="localhost")[0] == 400
