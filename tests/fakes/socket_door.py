"""Sockets of a gateway beside a broker, for what is tested from outside: one token, one topic."""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import uvicorn

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord
from gateway.rest.calls import Scope, headers_of
from gateway.rest.codes import ApiError, Code
from gateway.rest.limits import Limits, Rates
from gateway.rest.worker import Place, Worker
from gateway.ws.routing import router_of
from tests.fakes.broker_thread import broker_beside

TOKEN: Final = "the-token"  # noqa: S105 - nobody else knows it
SECONDS: Final = 30
HOWTO: Final = Path("docs/howto/use-websockets.md")
BLOCK: Final = re.compile(r"^```(python|js)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES: Final[dict[str, str]] = dict(BLOCK.findall(HOWTO.read_text()))


class Known:
    """Knows one token."""

    def __init__(self) -> None:
        self.limits = Limits(Rates())

    async def of(self, scope: Scope) -> Caller:
        if headers_of(scope).get("authorization") != f"Bearer {TOKEN}":
            raise ApiError(Code.NOT_AUTHENTICATED, "show a token")
        rights = Rights([Grant(role=Role.OPERATOR)])
        return Caller(kind=CallerKind.TOKEN, name="t", rights=rights, number=1)

    async def watch(self, caller: Caller, holds: Callable[[Caller], bool]) -> ApiError:
        assert holds(caller)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


@contextmanager
def door_beside(folder: Path) -> Iterator[str]:
    """Serve sockets beside a broker that has the topic `orders`; yield the address."""
    (folder / "cluster-id").write_text("c")
    with broker_beside(folder / "broker", topics={"orders": 1}) as broker:
        producer = TopicWriter(Connection(bootstrap=broker.bootstrap), "orders")
        for value in (b"one", b"two"):
            producer.send(NewRecord(value=value))
        producer.flush()
        worker = Worker(Place(name="w", home=folder, sockets=folder, bootstrap=broker.bootstrap))
        worker.__dict__["callers"] = Known()
        config = uvicorn.Config(router_of(worker), log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        # A connection before the server is ready waits for it.
        listener = socket.create_server(("127.0.0.1", 0))

        async def serve() -> None:
            await server.serve([listener])
            await worker.close()

        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(SECONDS)
