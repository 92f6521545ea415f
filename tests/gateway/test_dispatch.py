"""What goes past Django, and with which headers."""

import asyncio

import pytest

from gateway import dispatch
from gateway.dispatch import MAX_BODY_BYTES, Dispatch
from gateway.health import Application, Message, Receive, Scope, Send
from gateway.middleware import HEADERS
from tests.gateway.test_health import ask


async def bare(_scope: Scope, _receive: Receive, send: Send) -> None:
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"bare"})


async def django(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})


async def own(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 201, "headers": []})


class Calls:
    """The calls of programs: one address, and one socket."""

    def find(self, scope: Scope) -> Application | None:
        return bare if scope["path"] == "/v3/stream" else None

    def find_own(self, _scope: Scope) -> Application:
        return own


DISPATCH = Dispatch({"/events": bare}, calls=Calls(), quoted=("/v3",), otherwise=django)


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


def test_a_call_of_a_program_goes_past_django() -> None:
    status, _, body = ask("/v3/stream", application=DISPATCH)

    assert (status, body) == (200, b"bare")


def told(scope: Scope) -> Message:
    """Send a scope, and return the first thing that is answered, or what Django was given."""
    seen: list[Message] = []

    async def note(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope)

    async def send(message: Message) -> None:
        seen.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    dispatch = Dispatch({}, calls=Calls(), quoted=("/v3",), otherwise=note)
    asyncio.run(dispatch(scope, receive, send))
    return seen[0]


@pytest.mark.parametrize(
    ("raw", "path", "given"),
    [
        (b"/v3/topics/a%2Fb", "/v3/topics/a/b", "/v3/topics/a%2Fb"),
        (b"/topics/a%2Fb", "/topics/a/b", "/topics/a/b"),
        (b"/v3x/a%2Fb", "/v3x/a/b", "/v3x/a/b"),
    ],
)
def test_views_for_programs_get_the_path_as_it_was_sent(raw: bytes, path: str, given: str) -> None:
    scope = {"type": "http", "path": path, "raw_path": raw, "server": ("127.0.0.1", 8082)}

    assert told(scope)["path"] == given


def test_a_socket_that_nobody_serves_is_closed() -> None:
    scope = {"type": "websocket", "path": "/ws/other", "server": ("127.0.0.1", 8082)}

    assert told(scope) == {"type": "websocket.close", "code": 1000}


def test_what_comes_by_the_own_socket_reaches_nothing_else() -> None:
    scope = {"type": "http", "path": "/v3/stream", "server": ("run/gateway-1.sock", None)}

    assert told(scope)["status"] == 201


def test_a_body_without_an_end_is_given_up_before_it_fills_the_disk() -> None:
    taken = 0

    async def takes_all(_scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal taken
        while (message := await receive())["type"] == "http.request":
            taken += len(message["body"])

    async def receive() -> Message:
        return {"type": "http.request", "body": b" " * 1_048_576, "more_body": True}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    dispatch = Dispatch({}, calls=Calls(), otherwise=takes_all)
    asyncio.run(dispatch({"type": "http", "path": "/v3/clusters"}, receive, send))

    assert taken == MAX_BODY_BYTES
    assert sent[0]["status"] == 413
    assert b'"error_code": 413' in sent[1]["body"]


def test_a_body_for_django_that_stops_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "BODY_SECONDS", 0.01)
    sent: list[Message] = []

    async def view(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (await receive()).get("more_body"):
            pass

    async def run() -> None:
        coming: asyncio.Queue[Message] = asyncio.Queue()
        coming.put_nowait({"type": "http.request", "body": b"{", "more_body": True})

        async def send(message: Message) -> None:
            sent.append(message)

        application = Dispatch({}, calls=Calls(), otherwise=view)
        async with asyncio.timeout(20):
            await application({"type": "http", "path": "/x", "server": ("h", 1)}, coming.get, send)

    asyncio.run(run())

    assert sent[0]["status"] == 408
    assert b'"error_code": 408' in sent[1]["body"]
