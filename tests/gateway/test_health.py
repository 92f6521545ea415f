"""The sign of life."""

import asyncio
import json
from pathlib import Path

import pytest
from django.db import connections
from pytest_django import Settings

from gateway.asgi import application
from gateway.health import Application, Door, Message, Receive, Scope, Send
from gateway.middleware import HEADERS
from tests.database import pointed_at


def ask(
    path: str,
    *,
    method: str = "GET",
    host: str = "127.0.0.1:8000",
    query: str = "",
    cookie: str = "",
    application: Application = application,
) -> tuple[int, dict[str, str], bytes]:
    """Ask an application, as the web server does: status, headers, body."""
    told: list[Message] = []
    body = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if not body:
            # Nothing else comes: the client waits for its answer.
            await asyncio.Event().wait()
        return body.pop()

    async def send(message: Message) -> None:
        told.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"host", host.encode()), (b"cookie", cookie.encode())],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8000),
    }
    asyncio.run(application(scope, receive, send))
    headers = {name.decode().lower(): value.decode() for name, value in told[0]["headers"]}
    return told[0]["status"], headers, b"".join(part.get("body", b"") for part in told[1:])


def test_it_answers_without_login_session_or_database(tmp_path: Path) -> None:
    nowhere = {"NAME": tmp_path / "no" / "such" / "folder.db"}

    with pointed_at(dict.fromkeys(connections.settings, nowhere)):
        status, headers, body = ask("/health")

    assert status == 200
    assert "can_change" in json.loads(body)
    assert "set-cookie" not in headers
    assert headers["content-length"] == str(len(body))


def test_it_answers_the_supervisor_whatever_names_the_console_has(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["console.example"]

    assert ask("/health", host="127.0.0.1:8000")[0] == 200
    assert ask("/login", host="127.0.0.1:8000")[0] == 400


def test_it_is_never_answered_from_a_cache_and_has_the_headers_of_every_answer() -> None:
    _, headers, _ = ask("/health")

    assert headers["cache-control"] == "no-store"
    assert {name: headers[name.lower()] for name in HEADERS} == HEADERS


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("POST", 405), ("DELETE", 405)])
def test_it_can_only_be_read(method: str, status: int) -> None:
    answer, headers, body = ask("/health", method=method)

    assert (answer, body) == (status, b"")
    assert ("allow" in headers) == (status == 405)


def test_all_else_goes_to_django() -> None:
    assert ask("/no/such/page", host="localhost")[0] == 404


def test_a_wrong_name_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert ask("/login", host="evil.example")[0] == 400

    (record,) = [entry for entry in caplog.records if entry.name.startswith("django.security")]
    assert "evil.example" in record.getMessage()
    assert record.exc_info is None


def test_the_console_waits_for_the_agents_files_and_serves_when_they_are_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loads = []

    async def page(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    def load() -> Application:
        loads.append(file.exists())
        return page

    file = tmp_path / "session"
    door = Door(load=load, missing=lambda: [] if file.exists() else [file])

    before = [ask(path, application=door)[0] for path in ("/health", "/login")]
    file.touch()
    after = [ask(path, application=door)[0] for path in ("/health", "/login")]

    assert (before, after, loads) == ([503, 503], [200, 204], [True])
    assert f"waits for {file}, which the agent writes" in caplog.text


def test_a_mistake_in_the_settings_ends_the_start() -> None:
    def load() -> Application:
        raise ValueError("a setting is wrong")

    with pytest.raises(ValueError, match="a setting is wrong"):
        Door(load=load, missing=list)


def test_a_mistake_that_shows_late_is_told_once_and_leaves_the_console_unhealthy(
    tmp_path: Path,
) -> None:
    def load() -> Application:
        raise ValueError("a setting is wrong")

    file = tmp_path / "session"
    door = Door(load=load, missing=lambda: [] if file.exists() else [file])
    file.touch()

    with pytest.raises(ValueError, match="a setting is wrong"):
        ask("/health", application=door)
    assert [ask("/health", application=door)[0] for _ in range(3)] == [503] * 3


def test_a_socket_of_a_browser_is_closed_until_the_console_is_loaded(tmp_path: Path) -> None:
    door = Door(load=lambda: application, missing=lambda: [tmp_path / "not-there"])
    told: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        told.append(message)

    asyncio.run(door({"type": "websocket", "path": "/"}, receive, send))

    assert told == []


def test_it_says_whether_the_cluster_can_be_changed() -> None:
    trouble = ["", "the database has not answered for 12 s"]
    door = Door(load=lambda: application, missing=list, trouble=lambda: trouble[0])

    assert ask("/health", application=door)[::2] == (200, b'{"status": "ok", "can_change": true}')
    del trouble[0]
    status, _, body = ask("/health", application=door)

    # Another web server could change nothing either.
    assert status == 200
    assert json.loads(body) == {
        "status": "degraded",
        "can_change": False,
        "reason": "the database has not answered for 12 s",
    }
