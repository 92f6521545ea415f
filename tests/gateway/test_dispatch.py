"""What goes past Django, and with which headers."""

import asyncio

import pytest
from django.conf import settings

from gateway.access.callers import Caller
from gateway.access.grants import FULL_ADMIN
from gateway.dispatch import Dispatch
from gateway.health import Application, Message, Receive, Scope, Send
from gateway.middleware import HEADERS
from gateway.rest.bodies import MAX_BODY_BYTES
from gateway.rest.calls import CALLER, HOST_USER, headers_of
from gateway.rest.codes import ApiError, Code
from gateway.rest.incoming import Budget
from tests.fakes.asgi import Answer, asked
from tests.fakes.rest_door import VIEWER, WRITER, Counted
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
    """The calls of programs: one address, and one on the own socket."""

    def find(self, scope: Scope) -> Application | None:
        return bare if scope["path"] == "/v3/stream" else None

    def find_own(self, _scope: Scope) -> Application:
        return own


class Callers:
    """A token, and a session of the console, that are known."""

    def __init__(self) -> None:
        self.error: ApiError | None = None

    async def of(self, _scope: Scope) -> Caller:
        if self.error is not None:
            raise self.error
        return WRITER

    async def of_page(self, scope: Scope) -> Caller | None:
        return VIEWER if "cookie" in headers_of(scope) else None

    def network_of(self, scope: Scope) -> str:
        return str(scope["client"][0])


def dispatching(
    otherwise: Application = django,
    *,
    callers: Callers | None = None,
    budget: Budget | None = None,
) -> Dispatch:
    return Dispatch(
        {"/events": bare},
        calls=Calls(),
        callers=callers or Callers(),
        budget=budget or Budget(),
        traffic=Counted(),
        programs=("/v3", "/connect"),
        otherwise=otherwise,
    )


DISPATCH = dispatching()


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

    asyncio.run(dispatching(note)({"headers": [], "client": ("h", 1), **scope}, receive, send))
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


def test_what_comes_by_the_own_socket_reaches_nothing_else() -> None:
    scope = {"type": "http", "path": "/v3/stream", "server": ("run/gateway-1.sock", None)}

    assert told(scope)["status"] == 201


class View:
    """A view of Django: it reads the whole body, and answers."""

    def __init__(self) -> None:
        self.scope: Scope = {}
        self.body = b""
        self.pieces = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        while (message := await receive())["type"] == "http.request":
            self.pieces += 1
            self.body += message["body"]
            if not message["more_body"]:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"done"})
                return


def post(
    path: str, size: int, dispatch: Dispatch, *, declared: bool = True, cookie: bool = False
) -> Answer:
    """Send a body in two pieces."""
    headers = {"content-length": str(size)} if declared else {"transfer-encoding": "chunked"}
    if cookie:
        headers["cookie"] = "a=b"
    body = [b"x" * (size - 1), b"x"]
    answer = asyncio.run(asked(dispatch, "POST", path, body=body, headers=headers))
    assert answer is not None
    return answer


def test_a_view_for_programs_finds_its_caller_in_the_scope() -> None:
    view = View()

    assert post("/v3/clusters", 10, dispatching(view)).status == 200
    assert view.scope[CALLER] is WRITER
    assert len(view.body) == 10


def test_the_body_of_a_caller_that_is_refused_is_not_read() -> None:
    view, callers = View(), Callers()
    callers.error = ApiError(Code.NOT_AUTHENTICATED, "credentials are required")

    refused = post("/v3/clusters", 10, dispatching(view, callers=callers))
    of_connect = post("/connect/connectors", 10, dispatching(view, callers=callers))

    assert (refused.status, refused.json()["error_code"]) == (401, 40101)
    assert (of_connect.status, of_connect.json()["error_code"]) == (401, 401)
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert view.pieces == 0


def test_a_view_answers_a_caller_that_is_refused_without_a_body_and_finds_the_reason() -> None:
    view, callers = View(), Callers()
    callers.error = ApiError(Code.NOT_AUTHENTICATED, "credentials are required")

    asyncio.run(asked(dispatching(view, callers=callers), "GET", "/v3/openapi.json", headers={}))

    assert view.scope[CALLER] is callers.error


@pytest.mark.parametrize(
    ("path", "size", "cookie"),
    [
        ("/v3/clusters", MAX_BODY_BYTES + 1, False),
        ("/topics/new", settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1, True),
        # The console offers the sign-in.
        ("/topics/new", settings.STRANGERS_BODY_BYTES + 1, False),
    ],
)
def test_a_view_refuses_a_body_that_declares_to_be_too_large_and_gets_none_of_it(
    path: str, size: int, *, cookie: bool
) -> None:
    view = View()

    post(path, size, dispatching(view), cookie=cookie)

    assert (view.pieces, view.body) == (1, b"")
    assert headers_of(view.scope)["content-length"] == str(size)


@pytest.mark.parametrize(
    ("path", "limit", "cookie"),
    [
        ("/v3/clusters", MAX_BODY_BYTES, False),
        ("/login", settings.STRANGERS_BODY_BYTES, False),
        ("/topics/new", settings.DATA_UPLOAD_MAX_MEMORY_SIZE, True),
    ],
)
def test_a_body_without_an_end_is_given_up(path: str, limit: int, *, cookie: bool) -> None:
    fitting, larger = View(), View()

    whole = post(path, limit, dispatching(fitting), declared=False, cookie=cookie)
    refused = post(path, limit + 1, dispatching(larger), declared=False, cookie=cookie)

    assert (whole.status, len(fitting.body)) == (200, limit)
    assert (refused.status, refused.json()["error_code"]) == (413, 413)


def test_bodies_of_an_address_and_of_all_are_limited_together_and_count_until_they_are_done() -> (
    None
):
    budget = Budget(2_000, strangers=1_000)
    dispatch = dispatching(View(), budget=budget)

    budget.change("127.0.0.1", 500)
    of_address = post("/login", 600, dispatch)
    budget.change(VIEWER, 1_200)
    of_all = post("/login", 400, dispatch)
    after = post("/login", 300, dispatch)

    assert [of_address.status, of_all.status, after.status] == [429, 503, 200]
    assert of_address.headers["retry-after"] == "1"
    budget.change("127.0.0.1", 300)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v3/stream", {}, 200),
        ("/v3/stream", {"authorization": "Bearer x"}, 200),
        ("/v3/stream", {"cookie": "sessionid=s", "authorization": "Bearer x"}, 200),
        ("/v3/stream", {"cookie": "another=s"}, 200),
        ("/v3/stream", {"cookie": "sessionid=s"}, 400),
        ("/v3/clusters", {"cookie": "sessionid=s"}, 400),
        ("/v3/clusters", {"authorization": "Bearer x"}, 204),
    ],
)
def test_a_session_opens_nothing_for_programs_under_another_name(
    path: str, headers: dict[str, str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "SESSION_COOKIE_NAME", "sessionid")

    def answered(host: dict[str, str]) -> int:
        answer = asyncio.run(asked(DISPATCH, "GET", path, headers={**headers, **host}))
        assert answer is not None
        return answer.status

    assert answered({"host": "evil.example"}) == status
    assert answered({"host": "127.0.0.1:8000"}) in {200, 204}
    assert answered({}) in {200, 204}


@pytest.mark.parametrize("host", ["evil x", 'a"b', "b\xfccher", "a:b", "h/x", "[::1", "x" * 300])
@pytest.mark.parametrize("path", ["/v3/stream", "/v3/clusters", "/connect/connectors"])
def test_programs_name_the_server_by_something_that_can_be_its_name(path: str, host: str) -> None:
    good = {"host": "gw.internal:8082", "authorization": "Bearer x"}

    refused = asyncio.run(asked(DISPATCH, "GET", path, headers={**good, "host": host}))
    served = asyncio.run(asked(DISPATCH, "GET", path, headers=good))
    unnamed = asyncio.run(asked(DISPATCH, "GET", path, headers={"authorization": "Bearer x"}))

    assert refused is not None
    assert (refused.status, refused.json()["error_code"]) == (400, 400)
    assert "the header Host is" in refused.json()["message"]
    assert served is not None
    assert unnamed is not None
    assert {served.status, unnamed.status} <= {200, 204}


OWN = {"type": "http", "method": "GET", "query_string": b"", "server": ("/run/web.sock", None)}


def test_the_owner_of_the_home_calls_connect_without_a_token_on_the_own_socket() -> None:
    found = told({**OWN, "path": "/connect/a/b", "raw_path": b"/connect/a%2Fb", HOST_USER: "ann"})

    assert found["path"] == "/connect/a%2Fb"
    assert (found[CALLER].key, found[CALLER].principal) == ("host:ann", "host:ann")
    assert found[CALLER].rights.grants == (FULL_ADMIN,)


@pytest.mark.parametrize(
    "scope",
    [
        {"path": "/connect/a"},
        {"path": "/v3/a", HOST_USER: "ann"},
        {"path": "/connectors", HOST_USER: "ann"},
    ],
    ids=["of another user", "not Connect", "not below it"],
)
def test_the_own_socket_serves_others_and_elsewhere_as_before(scope: Scope) -> None:
    assert told({**OWN, **scope})["status"] == 201


def test_a_network_names_no_user_of_the_host() -> None:
    scope = {**OWN, "path": "/connect/a", "server": ("127.0.0.1", 8000), HOST_USER: "ann"}

    assert told(scope)[CALLER] is WRITER
