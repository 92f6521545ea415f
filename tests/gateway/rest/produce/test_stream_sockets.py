"""Clients that misbehave over real connections: none of them takes more than its share."""

import asyncio
import json
import socket
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import pytest
import uvicorn
from uvicorn.server import ServerState

from gateway.kafka.connection import Connection
from gateway.rest.produce.desk import MAX_BODY_BYTES
from gateway.rest.produce.stream import MAX_WAITING, Streams
from gateway.server import Http, listening
from tests.fakes.broker_thread import broker_beside
from tests.fakes.raw_stream import RawStream
from tests.fakes.rest_door import CLUSTER, WAIT_S, Door
from tests.gateway.rest.produce.stage import Stage, door_of, on_loop, records_of

pytestmark = pytest.mark.slow

STREAM: Final = f"/clusters/{CLUSTER}/topics/half/records"
V2: Final = {"Content-Type": "application/vnd.kafka.json.v2+json"}
UNREAD_S: Final = 0.5
BUFFER_BYTES: Final = 16_384
# Receipts that are kept, and one of them.
MAX_UNREAD_BYTES: Final = 500_000
RECEIPT_BYTES: Final = 150
PIECE: Final = b" " * 65_536
# What is sent of nothing, and what the test and the gateway may hold of it at a time.
BLANK_BYTES: Final = 100_000_000
HELD_BYTES: Final = 8 * 1_048_576


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(
        tmp_path_factory.mktemp("broker"), topics={"half": 1, "unread": 1, "blank": 1}
    ) as broker:
        yield Connection(bootstrap=broker.bootstrap)


@pytest.fixture
def stage(connection: Connection) -> Stage:
    return Stage(connection)


@asynccontextmanager
async def serving(door: Door) -> AsyncIterator[tuple[str, int]]:
    """Serve as a worker does, with buffers of the kernel that are soon full."""
    config = uvicorn.Config(door, http=Http, interface="asgi3", lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    bound = socket.create_server(("127.0.0.1", 0))
    for kept in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        bound.setsockopt(socket.SOL_SOCKET, kept, BUFFER_BYTES)
    listener = listening(bound.detach(), untaken_ms=int(UNREAD_S * 1_000))
    server = await asyncio.get_running_loop().create_server(
        lambda: Http(config=config, server_state=state, app_state={}), sock=listener
    )
    try:
        yield listener.getsockname()
        async with asyncio.timeout(WAIT_S):
            # Nobody is left behind.
            while state.connections or state.tasks:  # noqa: ASYNC110
                await asyncio.sleep(0)
    finally:
        server.close()


def text_of(number: int) -> bytes:
    return json.dumps({"value": {"type": "JSON", "data": number}}).encode()


@on_loop
async def test_what_breaks_off_in_the_middle_of_a_record_leaves_those_before_it(
    stage: Stage,
) -> None:
    async with serving(stage.door) as address:
        client = await RawStream.opened(address, STREAM)
        await client.send(text_of(1) + text_of(2) + text_of(3)[:-5])
        receipts = await client.receipts(2)
        client.leave()

    found = [json.loads(each.value or b"") for each in records_of(stage.connection, "half")]
    [call] = stage.door.traffic.calls
    assert [receipt["error_code"] for receipt in receipts] == [200, 200]
    assert found == [1, 2]
    assert call.records == 2
    # What was half there is not held any more.
    stage.desk.budget.change(call.caller, MAX_BODY_BYTES)


@on_loop
async def test_a_client_that_never_reads_its_receipts_is_cut_off(stage: Stage) -> None:
    path = f"/clusters/{CLUSTER}/topics/unread/records"
    piece = b"".join(map(text_of, range(1_000)))
    sent = 0
    streams = Streams(unread_s=UNREAD_S, discard_s=UNREAD_S, max_unread_bytes=MAX_UNREAD_BYTES)
    async with serving(door_of(streams, stage.desk)) as address:
        client = await RawStream.opened(address, path, buffer_bytes=BUFFER_BYTES)
        tracemalloc.start()
        with suppress(ConnectionError):
            async with asyncio.timeout(WAIT_S):
                while True:
                    await client.send(piece)
                    sent += 1_000
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        client.leave()

    written = len(records_of(stage.connection, "unread"))
    # Those in the row, and those whose receipts are kept.
    assert written < MAX_WAITING + 2 * MAX_UNREAD_BYTES // RECEIPT_BYTES
    assert written < sent
    assert peak < 2 * HELD_BYTES


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        (f"/clusters/{CLUSTER}/topics/blank/records", {}, 200, 200),
        (f"/clusters/{CLUSTER}/topics/blank/records:batch", {}, 413, 413),
        ("/topics/blank", V2, 413, 413),
    ],
    ids=["stream", "batch", "version 2"],
)
@on_loop
async def test_a_hundred_megabytes_of_blanks_are_never_held(
    stage: Stage, path: str, headers: dict[str, str], status: int, code: int
) -> None:
    async with serving(stage.door) as address:
        client = await RawStream.opened(address, path, headers)
        tracemalloc.start()
        # One that is refused hears of it while it sends.
        with suppress(ConnectionError):
            for _ in range(BLANK_BYTES // len(PIECE)):
                await client.send(PIECE)
            await client.send(text_of(1))
            await client.finish()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        told = await client.whole()
        client.leave()

    assert client.status == status
    assert told["error_code"] == code
    # A whole body is held up to its limit, and once more while it grows.
    assert peak < HELD_BYTES + (status != 200) * 2 * MAX_BODY_BYTES
