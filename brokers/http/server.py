"""Serves HTTP/1.1 to few readers: of a broker's inspection port, and of the collector.

Knows no page. A page is sent in pieces: after each millisecond of work other tasks have their turn,
and a slow reader holds no more than one piece. If all connections are in use, one whose reader has
not been admitted is closed.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import h11

from brokers.clock import Clock
from brokers.slices import Slices

# Request line and headers.
MAX_HEAD_BYTES: Final = 16_384
# How long a request may take to arrive, and how long a connection may stay idle.
REQUEST_SECONDS: Final = 60.0
# How long the last bytes may take to be received once a connection is ending.
LINGER_SECONDS: Final = 5.0
# Text is sent in pieces of at least this size.
PIECE_BYTES: Final = 32_768
# Less than a head: the bytes of a single read do not count against its limit.
READ_BYTES: Final = 4_096
TEXT: Final = "text/plain; charset=utf-8"
# What a refusal shows of a target.
SHOWN: Final = 200
CHALLENGE: Final = (("www-authenticate", "Bearer"),)
# No other user of the machine may connect.
PRIVATE: Final = 0o077


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    connections: int
    # The fields of a query.
    fields: int
    # A page that its reader does not receive in this time is aborted.
    page_seconds: float
    # A longer body is discarded.
    body_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    kind: str
    pieces: Iterator[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    query: Mapping[str, Sequence[str]]
    # The values of the header Authorization.
    authorization: Sequence[bytes]
    # None if it is longer than the server takes.
    body: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A connection to a reader."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    protocol: h11.Connection
    # Whether it came over a unix socket, to which only the owner of the home may connect.
    is_private: bool

    def put(self, event: h11.Event) -> None:
        self.writer.write(self.protocol.send(event) or b"")

    def begin(self, status: int, kind: str, *headers: tuple[str, str]) -> None:
        # The length is not known before the whole page is built, so it is sent in chunks.
        always = [("content-type", kind), ("cache-control", "no-store")]
        self.put(h11.Response(status_code=status, headers=[*always, *headers]))


class Exchange:
    """Answers one request, once: by a page, or by a stream."""

    def __init__(
        self,
        peer: Peer,
        *,
        admit: Callable[[], None],
        timeout: asyncio.Timeout,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self.is_private = peer.is_private
        # Keeps this connection when others need room: for readers who have shown a key.
        self.admit = admit
        self._peer = peer
        self._timeout = timeout
        self._limits = limits
        self._clock = clock

    async def send(self, page: Page) -> None:
        peer, slices, waiting = self._peer, Slices(self._clock), bytearray()
        peer.begin(page.status, page.kind, *(CHALLENGE if page.status == 401 else ()))
        for piece in page.pieces:
            waiting += piece.encode()
            if len(waiting) >= PIECE_BYTES:
                peer.put(h11.Data(data=bytes(waiting)))
                waiting.clear()
                await peer.writer.drain()
            await slices.breathe()
        peer.put(h11.Data(data=bytes(waiting)))
        peer.put(h11.EndOfMessage())
        await peer.writer.drain()

    async def stream(self, kind: str, pieces: AsyncIterator[bytes]) -> None:
        """Send pieces as they come, while the peer is connected; the connection ends then."""
        # Not the stream but each of its pieces has a limit of time.
        self._timeout.reschedule(None)
        sending = asyncio.create_task(self._send_pieces(kind, pieces))
        hangup = asyncio.create_task(self._peer.reader.read(1))
        try:
            await asyncio.wait({sending, hangup}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_sent = sending.done()
            for task in (sending, hangup):
                task.cancel()
            results = await asyncio.gather(sending, hangup, return_exceptions=True)
        if is_sent and isinstance(results[0], Exception):
            raise results[0]

    async def _send_pieces(self, kind: str, pieces: AsyncIterator[bytes]) -> None:
        peer = self._peer
        peer.begin(200, kind, ("connection", "close"))
        async for piece in pieces:
            peer.put(h11.Data(data=piece))
            async with asyncio.timeout(self._limits.page_seconds):
                await peer.writer.drain()
        peer.put(h11.EndOfMessage())
        await peer.writer.drain()


class Server:
    """Belongs to an event loop. `answer` is called for each request, and answers it once."""

    def __init__(
        self,
        answer: Callable[[Request, Exchange], Awaitable[None]],
        *,
        limits: Limits,
        clock: Clock,
        on_failure: Callable[[Exception], None] = lambda _error: None,
    ) -> None:
        self._answer = answer
        self._limits = limits
        self._clock = clock
        self._on_failure = on_failure
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        # Connections whose reader has not been admitted, the oldest first.
        self._strangers: dict[asyncio.Task[None], None] = {}

    async def open_socket(self, path: Path) -> None:
        """Listen on a unix socket, replacing one that an earlier run left behind."""
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - a local file, before the first reader
        before = os.umask(PRIVATE)
        try:
            connected = partial(self._handle_connection, is_private=True)
            server = await asyncio.start_unix_server(connected, path, limit=READ_BYTES)
        finally:
            os.umask(before)
        self._servers.append(server)

    async def open_address(self, host: str, port: int) -> int:
        """Listen on an address and return the port; OSError if it cannot be bound."""
        connected = partial(self._handle_connection, is_private=False)
        server = await asyncio.start_server(connected, host, port, limit=READ_BYTES)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _handle_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_private: bool
    ) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._tasks.add(task)
        if not is_private:
            self._strangers[task] = None
        try:
            if len(self._tasks) <= self._limits.connections or self._make_room_for(task):
                protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
                await self._serve(
                    Peer(reader=reader, writer=writer, protocol=protocol, is_private=is_private)
                )
                await _wait_received(writer)
        except ConnectionError:
            pass  # the peer hung up, which needs no line
        except (OSError, TimeoutError, h11.ProtocolError) as error:
            self._on_failure(error)
        except asyncio.CancelledError:
            # The process stops, or another reader needs the place. Not raised again, since no other
            # code awaits this task and asyncio would complain.
            pass
        finally:
            self._tasks.discard(task)
            self._strangers.pop(task, None)
            # A clean close would wait until the peer has received all pending bytes.
            writer.transport.abort()

    def _make_room_for(self, newcomer: asyncio.Task[None]) -> bool:
        """Close the oldest connection that was not admitted; return whether there was one."""
        oldest = next(iter(self._strangers), newcomer)
        if oldest is newcomer:
            return False
        del self._strangers[oldest]
        oldest.cancel()
        return True

    async def _serve(self, peer: Peer) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        protocol = peer.protocol
        while True:
            asked = await _next_request(peer, self._limits.body_bytes)
            if asked is None:
                return
            async with asyncio.timeout(self._limits.page_seconds) as timeout:
                exchange = Exchange(
                    peer,
                    admit=partial(self._strangers.pop, task, None),
                    timeout=timeout,
                    limits=self._limits,
                    clock=self._clock,
                )
                await self._respond(*asked, exchange)
            if protocol.our_state is not h11.DONE or protocol.their_state is not h11.DONE:
                return
            protocol.start_next_cycle()

    async def _respond(self, head: h11.Request, body: bytes | None, exchange: Exchange) -> None:
        target = head.target.decode("ascii", "replace")
        try:
            parts = urlsplit(target)
        except ValueError:
            await exchange.send(refusal(400, f"{target[:SHOWN]!r} is not the address of a page"))
            return
        most = self._limits.fields
        try:
            query = parse_qs(parts.query, max_num_fields=most)
        except ValueError:
            sentence = f"a question may have {most} fields, and this one has more"
            await exchange.send(refusal(400, sentence))
            return
        request = Request(
            method=head.method.decode("ascii", "replace"),
            path=parts.path,
            query=query,
            authorization=[value for name, value in head.headers if name == b"authorization"],
            body=body,
        )
        await self._answer(request, exchange)


def refusal(status: int, sentence: str) -> Page:
    return Page(status, TEXT, iter([f"{sentence}\n"]))


async def _wait_received(writer: asyncio.StreamWriter) -> None:
    """Close a connection once the peer has received everything; only then is its place free."""
    writer.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            await writer.wait_closed()


async def _next_request(peer: Peer, most_bytes: int) -> tuple[h11.Request, bytes | None] | None:
    """Return the next request with its body, which is None if it is too large.

    Return None if the peer has disconnected, or is idle for too long.
    """
    request, body, is_too_large = None, bytearray(), False
    with suppress(TimeoutError):
        async with asyncio.timeout(REQUEST_SECONDS):
            while True:
                event = peer.protocol.next_event()
                if event is h11.NEED_DATA:
                    if peer.protocol.they_are_waiting_for_100_continue:
                        peer.put(h11.InformationalResponse(status_code=100, headers=[]))
                    data = await peer.reader.read(READ_BYTES)
                    if not data:
                        return None
                    peer.protocol.receive_data(data)
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.EndOfMessage):
                    assert request is not None, "a message begins with its head"
                    return request, None if is_too_large else bytes(body)
                elif not isinstance(event, h11.Data):
                    return None
                elif len(body) + len(event.data) > most_bytes:
                    is_too_large = True
                else:
                    body += event.data
    return None
