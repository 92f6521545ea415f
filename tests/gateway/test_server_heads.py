"""What a connection may send before anybody knows whose it is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from gateway import server as module
from gateway.server import MAX_HEAD_BYTES, Http

WAIT_S = 20
BODY = b"x" * (3 * MAX_HEAD_BYTES)
HEAD = b"POST / HTTP/1.1\r\nHost: here\r\n"


async def application(_scope: Any, receive: Any, send: Any) -> None:
    """Answer how many bytes the body has."""
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"%d bytes" % size})


Scenario = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def connected(scenario: Scenario) -> bytes:
    """Return what is answered until the connection ends."""
    config = uvicorn.Config(application, http=Http, lifespan="off", log_config=None)
    config.load()

    async def run() -> bytes:
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: Http(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            async with asyncio.timeout(WAIT_S):
                await scenario(reader, writer)
                return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()
            server.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "begin", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"", HEAD + b"Transfer-Encoding: chunked\r\n\r\n"]
)
def test_a_head_without_an_end_is_given_up(begin: bytes) -> None:
    sent = 0

    async def send(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(begin + (b"0\r\nX: " if b"chunked" in begin else b""))
        while sent < 100 * MAX_HEAD_BYTES:
            writer.write((b"a" if begin else b"\r\n") * 10_000)
            sent += 10_000
            await writer.drain()

    answer = connected(send)

    assert sent < 100 * MAX_HEAD_BYTES or b" 431 " in answer


def test_who_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.05)

    async def say(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET / HT")

    assert connected(say) == b""


def test_calls_of_any_size_pass_one_after_the_other() -> None:
    async def call(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
        writer.write(HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b"5", b"\r\n", b"hello", b"\r\n", b"0\r\n\r\n"):
            writer.write(piece)
            await writer.drain()

    answer = connected(call)

    assert answer.count(b"200 OK") == 2
    assert b"%d bytes" % len(BODY) in answer
    assert b"\r\n5 bytes\r\n" in answer
