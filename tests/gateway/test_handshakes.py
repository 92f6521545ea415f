"""Handshakes, from their checks to the consumer of their path."""

import asyncio
from typing import Any

import pytest
from channels.routing import URLRouter
from django.conf import settings
from django.urls import path, re_path

from gateway.handshakes import Handshakes
from gateway.health import Message, Receive, Scope, Send
from gateway.ws.consumers import NotServed
from tests.fakes.asgi import scope_of

CLOSED = {"type": "websocket.close", "code": 1000}
ACCEPTED = {"type": "websocket.accept"}


async def accept(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send(ACCEPTED)


async def receive() -> Message:
    return {"type": "websocket.connect"}


# Django's `path` expects a view.
CONSUMER: Any = accept
ROUTER = URLRouter([path("ws/v1", CONSUMER), re_path("", NotServed.as_asgi())])


def answer(target: str, headers: dict[str, str] | None = None, **scope: object) -> Message:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    handshake = {**scope_of("GET", target, headers or {}), "type": "websocket", **scope}
    asyncio.run(Handshakes(ROUTER, programs=("/ws",))(handshake, receive, send))
    return sent[0]


def test_handshake_reaches_the_consumer_of_its_path_only() -> None:
    assert answer("/ws/v1") == ACCEPTED
    assert answer("/ws/v1", {"host": "127.0.0.1:8082"}) == ACCEPTED
    for target in (
        "/ws/other",
        "/ws/v1/",
        "/ws/v1/frames.json",
        "/events",
        "//ws/v1",
        "/wsx/ws/v1",
    ):
        assert answer(target) == CLOSED, target


def test_handshake_on_the_own_socket_of_a_process_is_closed() -> None:
    assert answer("/ws/v1", server=("run/gateway-1.sock", None)) == CLOSED


def test_session_is_refused_under_a_host_name_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SESSION_COOKIE_NAME", "sessionid")

    refused = answer("/ws/v1", {"cookie": "sessionid=s", "host": "evil.example"})

    assert (refused["type"], refused["status"]) == ("websocket.http.response.start", 400)
