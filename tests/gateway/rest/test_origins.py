"""Which pages may call, and what browsers are told."""

import asyncio
from typing import Any

import pytest

from gateway.rest.origins import Origins
from tests.fakes.asgi import Answer, asked

SHOP = "https://shop.example"


async def application(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})
    await send({"type": "http.response.body", "body": b"records"})


def ask(method: str = "GET", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    found = asyncio.run(
        asked(Origins(application, (SHOP,)), method, "/topics", headers={"host": "here:1", **named})
    )
    assert found is not None
    return found


@pytest.mark.parametrize("headers", [{}, {"origin": "http://here:1"}])
def test_programs_and_own_pages_pass_untouched(headers: dict[str, str]) -> None:
    answer = ask(**headers)

    assert (answer.status, answer.headers) == (200, {"x": "y"})


def test_a_page_of_an_allowed_origin_is_served_without_credentials_of_the_browser() -> None:
    answer = ask(origin=SHOP)

    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == SHOP
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers


def test_a_browser_that_asks_first_is_answered_here() -> None:
    answer = ask("OPTIONS", origin=SHOP, access_control_request_method="POST")

    assert answer.status == 204
    assert "authorization" in answer.headers["access-control-allow-headers"]
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.body == b""


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", f"{SHOP}.evil.example", "http://here:2", "x\x1b", "http://["],
)
def test_pages_of_other_origins_are_refused(origin: str) -> None:
    answer = ask(origin=origin)

    assert answer.status == 403
    assert "SAMSA_ALLOWED_ORIGINS" in answer.json()["message"]
    assert "access-control-allow-origin" not in answer.headers


def test_handshake_of_a_page_of_another_origin_is_refused_with_the_reason() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        scope = {"type": "websocket", "headers": [(b"origin", b"https://evil.example")]}
        await Origins(application, (SHOP,))(scope, None, send)  # type: ignore[arg-type]

    asyncio.run(run())

    head, body = sent
    assert (head["type"], head["status"]) == ("websocket.http.response.start", 403)
    assert body["type"] == "websocket.http.response.body"
    assert b"https://evil.example" in body["body"]
    assert b"SAMSA_ALLOWED_ORIGINS" in body["body"]
