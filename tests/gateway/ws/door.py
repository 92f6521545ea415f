"""What programs reach without Django, as a worker has it: tokens, origins, streams and sockets.

Behind uvicorn, beside a broker and the tables of tokens. The bare interface alone: no view answers.
"""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from django.test import override_settings
from websockets.asyncio.client import connect

from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord
from gateway.rest.calls import Receive, Scope, Send
from gateway.rest.mounts import mounts
from gateway.rest.origins import Origins
from gateway.rest.route import Door
from gateway.rest.worker import Place, Worker
from gateway.server import FRAME_BYTES, listening
from gateway.ws.endpoint import PATH
from gateway.ws.routing import router_of
from tests.database import sqlite_databases
from tests.fakes.broker_thread import BesideBroker, broker_beside
from tests.gateway.shared.test_store import served as shared_server

TOPICS: Final = ("orders", "orders.eu", "payments")
# The page of a site that may call.
ALLOWED: Final = "https://pages.example"
# How often members and the group hear of each other.
SOON: Final = {
    "group.consumer.heartbeat.interval.ms": "300",
    "group.initial.rebalance.delay.ms": "0",
}
SECONDS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramsDoor:
    port: int
    broker: BesideBroker
    shared_url: str

    @property
    def sockets(self) -> str:
        return f"ws://127.0.0.1:{self.port}{PATH}"

    @asynccontextmanager
    async def stream(self, target: str, token: str, accept: str = "*/*") -> AsyncIterator["Stream"]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(
                f"GET {target} HTTP/1.1\r\nHost: door\r\nConnection: close\r\n"
                f"Accept: {accept}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
            )
            head = await reader.readuntil(b"\r\n\r\n")
            yield Stream(int(head.split()[1]), reader)
        finally:
            writer.close()

    @asynccontextmanager
    async def socket(self, token: str) -> AsyncIterator["Socket"]:
        shown = {"Authorization": f"Bearer {token}"}
        async with connect(self.sockets, additional_headers=shown) as connection:
            assert json.loads(await connection.recv())["type"] == "ready"
            yield Socket(connection)


@dataclass(frozen=True, slots=True)
class Stream:
    status: int
    reader: asyncio.StreamReader

    async def rest(self) -> str:
        return (await self.reader.read()).decode()


@dataclass(frozen=True, slots=True)
class Socket:
    connection: Any

    async def say(self, **frame: object) -> None:
        await self.connection.send(json.dumps(frame))

    async def hear(self) -> Any:
        return json.loads(await self.connection.recv())

    async def hear_until(self, kind: str) -> list[Any]:
        """Return frames up to one of a kind."""
        found = [await self.hear()]
        while found[-1]["type"] != kind:
            found.append(await self.hear())
        return found


@contextmanager
def programs_door(folder: Path) -> Iterator[ProgramsDoor]:
    (folder / "cluster-id").write_text("c")
    shared_url = f"unix://{folder / 's'}"
    topics = dict.fromkeys(TOPICS, 1)
    with (
        sqlite_databases(folder),
        shared_server(folder),
        override_settings(SAMSA_HOME=folder),
        broker_beside(folder / "broker", topics=topics, defaults=SOON) as broker,
    ):
        for topic in TOPICS:
            producer = TopicWriter(Connection(bootstrap=broker.bootstrap), topic)
            producer.send(NewRecord(value=b"one"))
            producer.flush()
        worker = Worker(
            Place(
                name="w",
                home=folder,
                sockets=folder,
                bootstrap=broker.bootstrap,
                shared_url=shared_url,
            )
        )
        calls, sockets = mounts(worker, Door.GATEWAY), router_of(worker)

        async def served(scope: Scope, receive: Receive, send: Send) -> None:
            application = sockets if scope["type"] == "websocket" else calls.find(scope)
            assert application is not None, scope["path"]
            await application(scope, receive, send)

        # Its own configuration of logs would hide them from whoever looks at them.
        config = uvicorn.Config(
            Origins(served, [ALLOWED]),
            lifespan="off",
            log_config=None,
            ws_max_size=FRAME_BYTES,
        )
        server = uvicorn.Server(config)
        # A connection before the server is ready waits for it. As the gateway's own server has its
        # socket, which sends small answers at once.
        listener = listening(socket.create_server(("127.0.0.1", 0)).detach())

        async def serve() -> None:
            worker.begin()
            await server.serve([listener])
            await worker.close()

        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        try:
            yield ProgramsDoor(port=listener.getsockname()[1], broker=broker, shared_url=shared_url)
        finally:
            server.should_exit = True
            thread.join(SECONDS)
