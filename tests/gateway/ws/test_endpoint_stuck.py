"""Clients that never read, over real sockets: they are cut off, and little is kept for them."""

import asyncio
import base64
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from gateway.ws import connection as sockets
from gateway.ws import reader_context
from tests.fakes.broker_thread import BesideBroker, broker_beside
from tests.gateway.ws.site import Site, run, write

pytestmark = pytest.mark.slow

# Far more than all buffers on the way of one client hold.
RECORDS = 400
SIZE = 20_000
# What the kernel keeps for a client that does not read, at either end, is not ours.
KERNEL_BYTES = 4096
# The frame that comes last before the limit holds: records of 128 KiB, as JSON, or an answer.
FRAME_BYTES = 256 * 1024
STUCK_S = 1.0
UNTAKEN_MS = 2_000
# The kernel checks at intervals of its own, each twice as long as the one before.
CUT_S = 40.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BesideBroker]:
    topics = {"long": 1, "written": 1}
    with broker_beside(tmp_path_factory.mktemp("broker"), topics=topics) as broker:
        write(broker, "long", [b"x" * SIZE] * RECORDS)
        yield broker


@pytest.fixture(autouse=True)
def _is_stuck_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "STUCK_S", STUCK_S)


class Silent:
    """Speaks as a client does, and reads nothing."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    async def say(self, **frame: object) -> None:
        """Send a masked text frame."""
        text = json.dumps(frame).encode()
        mask = os.urandom(4)
        length = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2)
        body = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))
        self.writer.write(b"\x81" + length + mask + body)
        await self.writer.drain()


@asynccontextmanager
async def silent(site: Site) -> AsyncIterator[Silent]:
    host, _, port = site.address.removeprefix("ws://").removesuffix("/ws/v1").partition(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BYTES)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            "GET /ws/v1 HTTP/1.1\r\nHost: door\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            "Authorization: Bearer good\r\n\r\n".encode()
        )
        # Frames before the answer are not counted.
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        yield Silent(writer)
    finally:
        writer.transport.abort()


async def until_cut_off(site: Site, writer: asyncio.StreamWriter) -> int:
    """Return the most that waited for the client, once nothing of it is left."""
    most = 0
    async with asyncio.timeout(CUT_S):
        while not site.traffic.rows().get("token:t", {}).get("open"):
            await moment()
        while site.traffic.rows()["token:t"]["open"]:
            for each in site.sockets._open:  # noqa: SLF001 - nobody else asks
                most = max(most, each._outbox.size)  # noqa: SLF001 - as above
            await moment()
        # The connection is ended by the kernel, which the client sees though it reads nothing.
        while not writer.transport.is_closing():
            writer.write(b"\x8a\x80\x00\x00\x00\x00")
            await moment()
    return most


async def moment() -> None:
    try:
        async with asyncio.timeout(0.02):
            await asyncio.Event().wait()
    except TimeoutError:
        pass


def test_a_client_that_takes_no_records_is_cut_off(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        async with silent(site) as client:
            start = {"from": "earliest", "credit": {"records": 1_000_000}}
            for sid in "abcd":
                await client.say(type="subscribe", sid=sid, topics=["long"], **start)
            most = await until_cut_off(site, client.writer)
        assert 0 < most <= reader_context.MAX_UNSENT + FRAME_BYTES
        assert site.readers.held_bytes == 0

    run(broker, work, untaken_ms=UNTAKEN_MS)


def test_a_client_that_takes_no_receipts_is_heard_no_more_and_cut_off(
    broker: BesideBroker,
) -> None:
    async def work(site: Site) -> None:
        async with silent(site) as client:
            said = 0

            async def write_on() -> None:
                nonlocal said
                while True:
                    await client.say(type="ping", id="x" * 100)
                    said += 1
                    await client.say(type="produce", id=f"{said}", topic="written", value="v")

            writing = asyncio.create_task(write_on())
            most = await until_cut_off(site, client.writer)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        assert 0 < most <= sockets.MAX_UNSENT_ANSWERS + FRAME_BYTES

    run(broker, work, untaken_ms=UNTAKEN_MS)
