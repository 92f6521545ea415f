"""Only a 200 in time is healthy."""

import asyncio

import pytest

from brokers.supervisor import probe

LOCAL = "127.0.0.1"


def probed(answer: bytes | None) -> bool:
    """Probe a server that answers this; None for one that says nothing."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
        finally:
            writer.close()

    async def scenario() -> bool:
        server = await asyncio.start_server(on_connection, LOCAL, 0)
        async with server:
            return await probe.is_healthy(LOCAL, server.sockets[0].getsockname()[1])

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "healthy"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False),
        (b"HTTP/1.1\r\n\r\n", False),
        (b"", False),
        (b"x" * 100_000, False),
    ],
)
def test_a_200_is_healthy_and_nothing_else(answer: bytes, healthy: bool) -> None:
    assert probed(answer) is healthy


def test_silence_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.05)

    assert probed(None) is False


def test_a_closed_port_is_not_healthy() -> None:
    async def scenario() -> bool:
        async with await asyncio.start_server(lambda _r, _w: None, LOCAL, 0) as server:
            port = server.sockets[0].getsockname()[1]
        return await probe.is_healthy(LOCAL, port)

    assert asyncio.run(scenario()) is False
