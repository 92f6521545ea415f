"""The application of sockets behind uvicorn, beside a broker, and a client of it."""

import asyncio
import json
import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role
from gateway.addresses import networks
from gateway.kafka.connection import Connection as Brokers
from gateway.kafka.delivery import Deliveries
from gateway.kafka.member import Member
from gateway.kafka.pool import Pool
from gateway.kafka.producer import TopicWriter
from gateway.kafka.readers.engine import Readers
from gateway.kafka.values import NewRecord
from gateway.rest.calls import Scope, headers_of
from gateway.rest.codes import ApiError, Code
from gateway.rest.produce.desk import Desk
from gateway.rest.seats import Seats
from gateway.rest.topic_creation import TopicCreation
from gateway.rest.traffic import Counter
from gateway.server import FRAME_BYTES, UNTAKEN_MS, Socket, listening
from gateway.ws.consumers import Endpoint
from gateway.ws.endpoint import Sockets
from gateway.ws.services import Services

SPOKEN = Subprotocol("samsa.v1")
GOOD = {"type": "auth", "token": "good"}
BAD = {"type": "auth", "token": "bad"}
Work = Callable[["Site"], Awaitable[None]]


class Callers:
    """Knows one token, until it is revoked."""

    def __init__(self) -> None:
        self.revoked = asyncio.Event()
        self.rights = Rights([Grant(role=Role.OPERATOR)])
        self._watches: list[Callable[[Caller], bool]] = []

    def change(self, rights: Rights) -> None:
        """Have the caller's rights looked at again, as it happens every two seconds."""
        self.rights = rights
        for holds in self._watches:
            holds(self._caller())

    def _caller(self) -> Caller:
        return Caller(kind=CallerKind.TOKEN, name="t", rights=self.rights, number=1)

    async def of(self, scope: Scope) -> Caller:
        shown = headers_of(scope).get("authorization", "")
        if shown != "Bearer good":
            raise ApiError(Code.NOT_AUTHENTICATED, "this token is unknown")
        return self._caller()

    async def watch(self, caller: Caller, holds: Callable[[Caller], bool]) -> ApiError:
        assert holds(caller)
        self._watches.append(holds)
        await self.revoked.wait()
        return ApiError(Code.NOT_AUTHENTICATED, "the token was revoked")


class Limits:
    """Admits everything, except for the delays that a test sets."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def take_records(
        self, caller: Caller, records: int, size: int, *, patience_s: float = math.inf
    ) -> float:
        assert patience_s == math.inf, "a socket waits"
        return self.waits.pop() if self.waits else 0.0


class Client:
    """One socket, as a program has it."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def say(self, **frame: object) -> None:
        await self.connection.send(json.dumps(frame))

    async def next(self) -> Any:
        return json.loads(await self.connection.recv())

    async def hear(self, kind: str) -> Any:
        """Return the next frame, which is of this kind."""
        told = await self.next()
        assert told["type"] == kind, told
        return told

    async def records(self, count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count:
            found += (await self.hear("batch"))["records"]
        return found

    async def end(self) -> tuple[int, str]:
        """Return code and reason of the close; what comes before it is thrown away."""
        with suppress(ConnectionClosed):
            async for _ in self.connection:
                pass
        return self.connection.close_code or 0, self.connection.close_reason or ""


class Site:
    """The application behind uvicorn, beside a broker."""

    def __init__(self, bootstrap: str, *, creates_topics: bool = False) -> None:
        brokers = Brokers(bootstrap=bootstrap)
        self.callers = Callers()
        self.limits = Limits()
        self.readers = Readers(brokers)
        self.deliveries = Deliveries(brokers)
        self.traffic = Counter()
        creation = TopicCreation(
            Pool(lambda: brokers), look_up=self.deliveries.topics.require, cluster_id=lambda: "c"
        )
        self.sockets = Sockets(
            Services(
                callers=self.callers,
                watch=self.callers.watch,
                limits=self.limits,
                desk=Desk(self.deliveries, creation=creation if creates_topics else None),
                readers=self.readers,
                traffic=self.traffic,
                seats=Seats("sockets", most=3, each=2),
                member_seats=Seats("members of groups", most=3, each=2),
                member=lambda group, reset: Member(
                    brokers, group, reset=reset, commits_itself=False
                ),
                cluster_id="c",
                trusted=networks(["127.0.0.1"]),
            )
        )
        self.address = ""

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        """Open a socket that shows its token in the handshake."""
        headers = {"Authorization": "Bearer good"}
        async with connect(
            self.address, subprotocols=[SPOKEN], additional_headers=headers, **options
        ) as connection:
            client = Client(connection)
            await client.hear("ready")
            yield client


class Reached(Protocol):
    """A broker, or a cluster, by its address."""

    @property
    def bootstrap(self) -> str: ...


def write(broker: Reached, topic: str, values: Sequence[bytes | None], partition: int = 0) -> None:
    producer = TopicWriter(Brokers(bootstrap=broker.bootstrap), topic)
    for value in values:
        producer.send(NewRecord(value=value, partition=partition))
    producer.flush()


def run(
    broker: Reached,
    work: Work,
    *,
    seconds: float = 60,
    untaken_ms: int = UNTAKEN_MS,
    creates_topics: bool = False,
) -> None:
    async def serve() -> None:
        site = Site(broker.bootstrap, creates_topics=creates_topics)
        listener = listening(socket.create_server(("127.0.0.1", 0)).detach(), untaken_ms=untaken_ms)
        site.address = f"ws://127.0.0.1:{listener.getsockname()[1]}/ws/v1"
        config = uvicorn.Config(
            Endpoint.as_asgi(sockets=lambda: site.sockets),
            ws=Socket,
            lifespan="off",
            log_level="warning",
            ws_max_size=FRAME_BYTES,
            ws_per_message_deflate=False,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listener]))
        try:
            async with asyncio.timeout(seconds):
                await work(site)
        finally:
            server.should_exit = True
            await serving
            await site.readers.close()
            await site.deliveries.close()

    asyncio.run(serve())
