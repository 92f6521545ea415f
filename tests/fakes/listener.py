"""A listener with handlers of a test's own, on a free port, and clients that speak bytes.

For tests of the server's core: what the handlers do is the test's business, so a whole broker would
only be in the way. `tests/fakes/broker.py` has one.
"""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from brokers.clock import Clock, SystemClock
from brokers.config import BrokerConfig
from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.schema import Message
from brokers.server.context import Context
from brokers.server.dispatch import Dispatch
from brokers.server.listener import Limits, Listener
from brokers.server.logs import Log
from brokers.server.metrics import Metrics
from brokers.server.served_api import Served

HOST = "127.0.0.1"
WAIT_SECONDS = 20.0


def handler(
    key: int,
    handle: Callable[..., Any],
    versions: tuple[int, int] | None = None,
    *,
    waits: bool = False,
) -> Any:
    """A handler module made of one function."""
    return SimpleNamespace(SERVED=Served(key=key, versions=versions, waits=waits), handle=handle)


@dataclass
class RunningListener:
    listener: Listener
    context: Context
    port: int
    lines: list[dict[str, Any]] = field(default_factory=list)

    async def connect(self) -> "ByteClient":
        reader, writer = await asyncio.open_connection(HOST, self.port)
        return ByteClient(reader, writer)

    async def until(self, fact: Callable[[], bool]) -> None:
        await until(fact)


class ByteClient:
    """A client that sends and receives frames and believes nothing."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, message: Message, version: int, correlation_id: int = 1) -> None:
        self.writer.write(request_frame(message, version, correlation_id))

    async def frame(self) -> bytes:
        """The next frame, without its size."""
        async with asyncio.timeout(WAIT_SECONDS):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def answer(self, response: type[Message], version: int) -> Any:
        """The next answer, decoded."""
        frame = await self.frame()
        assert response.KEY is not None
        api = APIS[response.KEY]
        skipped = 5 if api.is_flexible(version) and response.KEY != 18 else 4
        return codec(response, version).decode(frame[skipped:])

    async def ask(self, message: Message, version: int) -> Any:
        self.send(message, version)
        assert message.KEY is not None
        return await self.answer(APIS[message.KEY].response, version)

    async def is_closed(self) -> bool:
        """Waits for the end of the connection; what comes before it is dropped."""
        async with asyncio.timeout(WAIT_SECONDS):
            with suppress(ConnectionError):
                while await self.reader.read(65_536):
                    pass
        return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def until(fact: Callable[[], object]) -> None:
    """Lets the loop turn until something is true."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not fact():  # noqa: ASYNC110 - facts of the product announce themselves to nobody
            await asyncio.sleep(0)


def request_frame(message: Message, version: int, correlation_id: int = 1) -> bytes:
    """A request as a client sends it."""
    assert message.KEY is not None
    api = APIS[message.KEY]
    head = struct.pack(">hhih", api.key, version, correlation_id, 4) + b"test"
    if api.is_flexible(version):
        head += b"\0"
    body = b"".join(codec(type(message), version).encode(message))
    return struct.pack(">i", len(head) + len(body)) + head + body


@asynccontextmanager
async def running_listener(
    modules: Iterable[Any],
    *,
    clock: Clock | None = None,
    idle_seconds: float = 600,
    frame_seconds: float = 120,
    max_connections: int = 1000,
    max_connections_per_ip: int = 1000,
    max_frame_bytes: int = 104_857_600,
) -> AsyncIterator[RunningListener]:
    clock = clock or SystemClock()
    metrics = Metrics()
    lines: list[dict[str, Any]] = []
    log = Log(clock, write=lambda line: lines.append(json.loads(line)))
    nothing: Any = None
    context = Context(
        config=BrokerConfig(agent_socket="", log_dir=""),
        clock=clock,
        loop=asyncio.get_running_loop(),
        store=nothing,
        metrics=metrics,
        replicas=nothing,
        fetch_sessions=nothing,
        producer_ids=nothing,
    )
    dispatch = Dispatch(context, modules, log)
    limits = Limits(
        max_connections=max_connections,
        max_connections_per_ip=max_connections_per_ip,
        idle_seconds=idle_seconds,
        frame_seconds=frame_seconds,
        max_frame_bytes=max_frame_bytes,
    )
    listener = Listener(dispatch, limits=limits, clock=clock, metrics=metrics, log=log)
    dispatching = asyncio.create_task(dispatch.run())
    await asyncio.sleep(0)
    port = listener.bind(HOST, 0)
    listener.listen()
    try:
        yield RunningListener(listener, context, port, lines)
    finally:
        await listener.stop(grace_seconds=0)
        dispatching.cancel()
        with suppress(asyncio.CancelledError):
            await dispatching
