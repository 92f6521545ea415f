"""An agent without a database: serves the doors of a twin, or any other store, over the link.

For tests of whatever speaks to an agent. Keeps no session and fences nobody by itself; cuts
connections and pings when it is told to.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from brokers.cluster import link
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.store import MetadataStore, Registered
from brokers.protocol.errors import ErrorCode, KafkaError

READ_BYTES = 64 * 2**10


class AgentServer:
    """`attach` gives each connection its store, and `detach` takes it back when that is over."""

    def __init__(
        self,
        path: Path,
        attach: Callable[[], MetadataStore],
        *,
        detach: Callable[[MetadataStore], None] = lambda _store: None,
    ) -> None:
        self.path = path
        self.seen: list[link.FromBroker] = []
        # Answers to proposals are lost while it is set, as when the agent dies behind the commit.
        # Why the database refuses calls, while the store is away.
        self.refusal = ""
        self.loses_outcomes = False
        self.link_version = link.LINK_VERSION
        # Of the newest update that was sent to anybody.
        self.sent = Position()
        self._attach = attach
        self._detach = detach
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    @property
    def is_listening(self) -> bool:
        return self._server is not None

    async def stop(self) -> None:
        """End as a killed agent does: connections are cut, and nobody listens."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self.cut()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.path.unlink(missing_ok=True)

    def cut(self) -> None:
        """Break all connections; new ones are served."""
        for writer in self._connections.values():
            writer.transport.abort()

    def ping(self, *, db_age_ms: int = 0) -> None:
        for writer in self._connections.values():
            writer.write(link.encode(link.Ping(db_age_ms=db_age_ms)))

    def send(self, data: bytes) -> None:
        """Say something to everybody, be it nonsense."""
        for writer in self._connections.values():
            writer.write(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        store = self._attach()
        feeds: list[asyncio.Task[None]] = []
        with suppress(ConnectionError, asyncio.CancelledError):
            await self._converse(store, reader, writer, feeds)
        for feed in feeds:
            feed.cancel()
        if feeds:
            await asyncio.wait(feeds)
        self._detach(store)
        del self._connections[task]
        writer.close()

    async def _converse(
        self,
        store: MetadataStore,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        feeds: list[asyncio.Task[None]],
    ) -> None:
        frames = link.FrameReader(link.decode_from_broker)
        while data := await reader.read(READ_BYTES):
            for message in frames.feed(data):
                self.seen.append(message)
                match message:
                    case link.Register():
                        if not await self._register(store, message, writer):
                            return
                    case link.Follow():
                        feed = self._feed(store, message.after, writer)
                        feeds.append(asyncio.create_task(feed))
                    case link.Propose():
                        await self._propose(store, message, writer)
                    case link.Applied():
                        store.applied(message.version)
                    case link.Pong():
                        pass

    async def _register(
        self, store: MetadataStore, message: link.Register, writer: asyncio.StreamWriter
    ) -> bool:
        answer: Registered | link.Refused
        try:
            answer = await store.register(message.registration)
        except KafkaError as error:
            answer = link.Refused(error=error.code, message=error.message)
        if message.link_version != self.link_version:
            answer = link.Refused(error=ErrorCode.UNSUPPORTED_VERSION, message="another link")
        writer.write(link.encode(answer))
        return isinstance(answer, Registered)

    async def _feed(
        self, store: MetadataStore, after: Position, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError):
            try:
                async for update in store.follow(after):
                    if isinstance(update, ClusterImage):
                        for frame in link.encode_snapshot(update):
                            writer.write(frame)
                            await writer.drain()
                    else:
                        writer.write(link.encode_change(update))
                        await writer.drain()
                    self.sent = update.position
            except KafkaError as error:
                writer.write(link.encode(link.Refused(error=error.code, message=error.message)))
                writer.close()

    async def _propose(
        self, store: MetadataStore, message: link.Propose, writer: asyncio.StreamWriter
    ) -> None:
        try:
            outcomes = await store.propose(message.proposals)
            answer = link.Outcomes(request_no=message.request_no, outcomes=tuple(outcomes))
        except ConnectionError:
            answer = link.Outcomes(
                request_no=message.request_no, outcomes=(), is_later=True, reason=self.refusal
            )
        if not self.loses_outcomes:
            writer.write(link.encode(answer))


@asynccontextmanager
async def serving(
    path: Path,
    attach: Callable[[], MetadataStore],
    *,
    detach: Callable[[MetadataStore], None] = lambda _store: None,
) -> AsyncIterator[AgentServer]:
    """An agent that listens on a path for as long as the block lasts."""
    server = AgentServer(path, attach, detach=detach)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
