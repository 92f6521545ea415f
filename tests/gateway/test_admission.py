"""How many connections a process takes: by their number, and over sockets."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState
from websockets.asyncio.client import connect

from gateway.addresses import networks
from gateway.admission import MAX_CONNECTIONS, Admission
from gateway.server import Http, Socket, connections_within, listening

WAIT_S = 20
CALL = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


def test_all_connections_together_have_a_limit() -> None:
    admission = Admission(most=2, each=2)

    told = [admission.enter(number, f"192.0.2.{number}") for number in range(3)]
    admission.leave(0)
    admission.leave("never entered")

    assert told[:2] == [None, None]
    assert told[2] is not None
    assert "2 connections open" in told[2].message
    assert admission.enter(3, "192.0.2.3") is None
    assert admission.total == 2


def test_one_address_leaves_room_for_others_and_a_trusted_proxy_has_no_share() -> None:
    admission = Admission(most=9, each=1, trusted=networks(["10.0.0.0/8"]))

    told = [
        admission.enter(number, address)
        for number, address in enumerate(
            ["2001:db8::1", "2001:db8::2", "192.0.2.1", "10.0.0.1", "10.0.0.1"]
        )
    ]

    assert [refused is None for refused in told] == [True, False, True, True, True]
    assert told[1] is not None
    assert "2001:db8::/64 has 1 connections open" in told[1].message


@pytest.mark.parametrize(
    ("descriptors", "connections"),
    [(4_096, 3_072), (1_024, 512), (10**6, MAX_CONNECTIONS)],
)
def test_a_process_keeps_descriptors_for_its_own_files(descriptors: int, connections: int) -> None:
    assert connections_within(descriptors) == connections


def test_a_connection_counts_before_it_has_said_anything_and_until_it_is_closed() -> None:
    """As those do that have not agreed on TLS: no protocol hears of them."""

    async def run() -> None:
        listener = listening(socket.create_server(("127.0.0.1", 0)).detach())
        listener.admission = Admission(most=2)
        ends: list[asyncio.Transport] = []

        class Silent(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                ends.append(transport)

        server = await asyncio.get_running_loop().create_server(Silent, sock=listener)
        address = listener.getsockname()
        try:
            async with asyncio.timeout(WAIT_S):
                kept = [await asyncio.open_connection(*address) for _ in range(2)]
                refused, closing = await asyncio.open_connection(*address)
                assert await ended(refused)
                closing.close()
                ends.pop(0).close()
                while listener.admission.total == 2:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                kept.append(await asyncio.open_connection(*address))
                while len(ends) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0)
            for _, writer in kept:
                writer.close()
        finally:
            server.close()

    asyncio.run(run())


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer calls, and let sockets in."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


Scenario = Callable[[str, int, Path], Awaitable[None]]


def served(scenario: Scenario, own: Path) -> None:
    """Run a scenario beside a server with a port and a socket of its own."""
    config = uvicorn.Config(application, http=Http, ws=Socket, lifespan="off", log_config=None)
    config.load()

    async def run() -> None:
        state = ServerState()

        def made() -> Http:
            return Http(config=config, server_state=state, app_state={})

        loop = asyncio.get_running_loop()
        server = await loop.create_server(made, "127.0.0.1", 0)
        beside = await loop.create_unix_server(made, own)
        try:
            async with asyncio.timeout(WAIT_S):
                host, port = server.sockets[0].getsockname()
                await scenario(host, port, own)
                # Those who have left are heard of.
                while Http.admission.total or state.connections:  # noqa: ASYNC110
                    await asyncio.sleep(0)
        finally:
            server.close()
            beside.close()

    asyncio.run(run())


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(CALL)
    return await reader.readuntil(b"served")


def test_who_is_in_is_served_while_others_are_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Http, "admission", Admission(most=2))

    async def scenario(host: str, port: int, own: Path) -> None:
        first = await asyncio.open_connection(host, port)
        assert b"200 OK" in await asked(*first)
        async with connect(f"ws://{host}:{port}/"):
            refused, closing = await asyncio.open_connection(host, port)
            told = await refused.read()
            closing.close()
            assert b"200 OK" in await asked(*first)
            # The supervisor's question finds its answer.
            beside = await asyncio.open_unix_connection(own)
            assert b"200 OK" in await asked(*beside)
            beside[1].close()
        while Http.admission.total > 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
        later = await asyncio.open_connection(host, port)
        assert b"200 OK" in await asked(*later)
        for _, writer in (first, later):
            writer.close()

        assert told.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: 5\r\n" in told
        assert b'"error_code"' in told

    served(scenario, tmp_path / "own.sock")
