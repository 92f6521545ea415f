"""The pages of a running broker, who may see them, and what nonsense on that port does."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from brokers.cluster.proposals import DeleteTopic
from brokers.http import server
from brokers.http.server import Peer, Server
from brokers.key_files import write_keys
from brokers.server import inspection_port
from brokers.server.inspection_port import MAX_CONNECTIONS
from tests.fakes.broker import METRICS_SECRET, SECRET, RunningBroker, running_broker
from tests.fakes.listener import HOST, WAIT_SECONDS, ByteClient

KNOWN = f"Authorization: Bearer {SECRET}\r\n"


@asynccontextmanager
async def port_of(running: RunningBroker) -> AsyncIterator[ByteClient]:
    reader, writer = await asyncio.open_connection(HOST, running.ready.inspection_port)
    client = ByteClient(reader, writer)
    yield client
    await client.close()


async def got(running: RunningBroker, target: str, headers: str = KNOWN) -> tuple[int, str]:
    """Status and body of one page."""
    async with port_of(running) as client:
        request = f"GET {target} HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n"
        client.writer.write(request.encode())
        async with asyncio.timeout(WAIT_SECONDS):
            answer = (await client.reader.read(-1)).decode()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), unchunked(body)


def unchunked(body: str) -> str:
    text = ""
    while body:
        size, _, rest = body.partition("\r\n")
        length = int(size, 16)
        text, body = text + rest[:length], rest[length + 2 :]
        if not length:
            break
    return text


async def feed(running: RunningBroker, run: str = "", since: int = 0) -> dict[str, Any]:
    status, body = await got(running, f"/feed?run={run}&since={since}")
    assert status == 200
    told: dict[str, Any] = json.loads(body)
    return told


def test_the_metrics_of_a_broker_can_be_read(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 3}) as running:
            status, text = await got(running, "/metrics")

            assert status == 200
            assert "\nsamsa_partitions 3\n" in text
            assert 'samsa_request_seconds_bucket{api="Produce",le="0.000001"} 0' in text

    asyncio.run(story())


@pytest.mark.parametrize(
    "headers",
    ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic YTpi\r\n", KNOWN + KNOWN],
)
def test_without_the_secret_only_the_health_is_told(tmp_path: Path, headers: str) -> None:
    async def story() -> None:
        async with running_broker(tmp_path) as running:
            assert (await got(running, "/metrics", headers))[0] == 401
            assert (await got(running, "/feed?since=0", headers))[0] == 401
            assert await got(running, "/health", headers) == (200, '{"serving": true}\n')
            running.context.is_serving = False
            assert (await got(running, "/health", headers))[0] == 503

    asyncio.run(story())


def test_a_key_for_metrics_opens_metrics_only(tmp_path: Path) -> None:
    key = f"Authorization: Bearer {METRICS_SECRET}\r\n"

    async def story() -> None:
        async with running_broker(tmp_path) as running:
            assert (await got(running, "/metrics", key))[0] == 200
            for page in ("/feed?since=0", "/inspect/times?at=a:0:0"):
                assert await got(running, page, key) == (403, "this key opens /metrics only\n")

    asyncio.run(story())


def test_a_broker_without_keys_serves_and_says_which_file_it_lacks(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, has_keys=False, topics={"orders": 1}) as running:
            assert (await got(running, "/health"))[0] == 200
            assert (await got(running, "/metrics"))[0] == 503

            (told,) = [line for line in running.lines if line["event"] == "inspection.no_key"]
            assert told["file"] == running.broker.config.secret_file

            write_keys(Path(running.broker.config.secret_file), (SECRET,))
            assert (await got(running, "/metrics"))[0] == 200

    asyncio.run(story())


def test_a_page_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path) as running:
            status, text = await got(running, "/")

            assert status == 404
            assert "/metrics, /feed, /health" in text
            assert (await got(running, "/feed?since=x"))[0] == 400
            assert (await got(running, "/feed?since=" + "9" * 5000))[0] == 400

    asyncio.run(story())


def test_a_target_that_is_no_address_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path) as running:
            status, text = await got(running, "//[")

            assert (status, text) == (400, "'//[' is not the address of a page\n")

    asyncio.run(story())


def test_a_peer_that_hangs_up_is_not_worth_a_line(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            for _ in range(3):
                async with port_of(running) as client:
                    client.writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + KNOWN.encode())
                    await client.writer.drain()
                    client.writer.transport.abort()
            assert (await got(running, "/health"))[0] == 200

            assert [line for line in running.lines if "inspection" in line["event"]] == []

    asyncio.run(story())


def test_who_shows_no_secret_makes_room_for_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path) as running:
            port = running.ready.inspection_port
            idle = [await asyncio.open_connection(HOST, port) for _ in range(MAX_CONNECTIONS)]
            first, last = idle[0], idle[-1]

            assert (await got(running, "/metrics"))[0] == 200

            async with asyncio.timeout(WAIT_SECONDS):
                assert await first[0].read() == b""
            last[1].write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await last[0].readline()).startswith(b"HTTP/1.1 200")
            for _reader, writer in idle:
                writer.close()

    asyncio.run(story())


def test_a_watcher_gets_a_snapshot_and_then_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.server.feed.FRESH_SECONDS", 0)

    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 2}) as running:
            first = await feed(running)
            running.twin.create_topic("more", partitions=1)
            running.twin.propose_now(DeleteTopic(name="orders"))
            await running.context.wait_applied(running.twin.image.version)
            second = await feed(running, first["run"], first["number"])
            third = await feed(running, first["run"], second["number"])

            assert first["kind"] == "snapshot"
            assert [row[:2] for row in first["rows"]] == [["orders", 0], ["orders", 1]]
            assert second["kind"] == "steps"
            (step,) = second["steps"]
            assert [row[:2] for row in step["rows"]] == [["more", 0]]
            assert step["gone"] == [["orders", 0], ["orders", 1]]
            assert third["steps"][0]["rows"] == []
            assert third["number"] == first["number"] + 2

    asyncio.run(story())


def test_a_watcher_of_another_run_or_of_steps_that_are_gone_gets_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.server.feed.FRESH_SECONDS", 0)
    monkeypatch.setattr("brokers.server.feed.MAX_STEPS", 2)

    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            first = await feed(running)
            for _ in range(4):
                last = await feed(running)

            assert (await feed(running, "another", last["number"]))["kind"] == "snapshot"
            assert (await feed(running, first["run"], first["number"]))["kind"] == "snapshot"
            assert (await feed(running, first["run"], 10**6))["kind"] == "snapshot"

    asyncio.run(story())


def test_watchers_of_the_same_second_share_a_sample(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            answers = await asyncio.gather(*(feed(running) for _ in range(5)))

            assert len({answer["number"] for answer in answers}) == 1

    asyncio.run(story())


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 100,
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100_000,
    ],
)
def test_nonsense_ends_its_own_connection(tmp_path: Path, nonsense: bytes) -> None:
    async def story() -> None:
        async with running_broker(tmp_path) as running:
            async with port_of(running) as client:
                client.writer.write(nonsense)
                client.writer.write_eof()

                assert await client.is_closed()

            assert (await got(running, "/health"))[0] == 200

    asyncio.run(story())


# More than sockets hold, before anybody is asked who he is.
ENDLESS = b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n" % (b"x" * 2_000) * 10_000
LAST_BYTES = 20_000_000


@asynccontextmanager
async def deaf_peer(running: RunningBroker, asked: bytes) -> AsyncIterator[None]:
    """Asks, and reads nothing."""
    loop = asyncio.get_running_loop()
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.settimeout(0)
        await loop.sock_connect(peer, (HOST, running.ready.inspection_port))
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(0.5):
                await loop.sock_sendall(peer, asked)
        yield


async def last_page(_server: Server, peer: Peer) -> None:
    """Serves a page of which much waits at the end."""
    peer.writer.write(b"x" * LAST_BYTES)


@pytest.mark.parametrize("is_last", [False, True], ids=["in-a-page", "at-the-end"])
def test_a_peer_that_never_reads_leaves_no_connection_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_last: bool
) -> None:
    monkeypatch.setattr(inspection_port, "PAGE_SECONDS", 0.2)
    monkeypatch.setattr(server, "LINGER_SECONDS", 1.0)
    if is_last:
        monkeypatch.setattr(Server, "_serve", last_page)

    async def story() -> None:
        async with running_broker(tmp_path) as running:
            before = open_descriptors()
            async with deaf_peer(running, ENDLESS), asyncio.timeout(WAIT_SECONDS):
                while open_descriptors() > before + 1:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0)

    asyncio.run(story())


def test_what_is_sent_last_is_read_to_its_end_and_keeps_its_place_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection_port, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(server, "LINGER_SECONDS", WAIT_SECONDS)
    monkeypatch.setattr(Server, "_make_room_for", lambda *_: False)
    monkeypatch.setattr(Server, "_serve", last_page)

    async def story() -> None:
        async with running_broker(tmp_path) as running, port_of(running) as first:
            assert await first.reader.readexactly(1) == b"x"

            async with port_of(running) as second:
                assert await second.is_closed()
            assert len(await first.reader.read(-1)) == LAST_BYTES - 1

    asyncio.run(story())


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_more_watchers_than_there_is_room_for_are_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection_port, "MAX_CONNECTIONS", 1)

    async def story() -> None:
        async with running_broker(tmp_path) as running, port_of(running) as first:
            first.writer.write(f"GET /metrics HTTP/1.1\r\nHost: x\r\n{KNOWN}\r\n".encode())
            await first.reader.readuntil(b"\r\n\r\n")

            async with port_of(running) as second:
                assert await second.is_closed()

    asyncio.run(story())
