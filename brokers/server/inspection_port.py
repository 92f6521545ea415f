"""Serves the inspection port, by which operators and the console inspect a broker over HTTP.

Knows pages, but not their contents. A reader must send a key of the cluster, except for `/health`,
which only answers yes or no; a key for metrics opens `/metrics` only. If all connections are in
use, one without a key is closed. A page is built in pieces: after each millisecond of work the
broker's clients have their turn, and a slow reader holds no more than one piece.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qs, urlsplit

import h11

from brokers.replication.slices import Slices
from brokers.search.question import MAX_QUESTION_BYTES
from brokers.server.context import Context
from brokers.server.feed import Feed
from brokers.server.group_metrics import GroupMetrics
from brokers.server.inspection_keys import METRICS, InspectionKeys
from brokers.server.inspection_times import places_of, times_of
from brokers.server.logs import Log
from brokers.server.metrics import render
from brokers.server.searches import Searches, SearchRefused

# A console, a Prometheus, a person or two.
MAX_CONNECTIONS: Final = 32
# Request line and headers.
MAX_HEAD_BYTES: Final = 16_384
# Mostly a list of places, which `inspection_times` limits further.
MAX_FIELDS: Final = 1_000
# How long a request may take to arrive, and how long a connection may stay idle.
REQUEST_SECONDS: Final = 60.0
# A page that its reader does not receive in this time is aborted.
PAGE_SECONDS: Final = 60.0
# How long the last bytes may take to be received once a connection is ending.
LINGER_SECONDS: Final = 5.0
# Text is sent in pieces of at least this size.
PIECE_BYTES: Final = 32_768
_READ_BYTES: Final = 4_096

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_JSON: Final = "application/json"

HEALTH: Final = "/health"
SEARCH: Final = b"/search"

Page = tuple[int, str, Iterator[str]]

_LINES: Final = "application/x-ndjson"


class InspectionPort:
    """Belongs to the event loop."""

    def __init__(self, context: Context, *, keys: InspectionKeys, log: Log) -> None:
        self.port = 0
        self._context = context
        self._keys = keys
        self._log = log
        self._feed = Feed(context)
        self._group_metrics = GroupMetrics(context)
        self._searches = Searches(context)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # Connections that have not sent a key, the oldest first.
        self._strangers: dict[asyncio.Task[None], None] = {}
        self._pages: dict[str, Callable[[dict[str, list[str]]], Awaitable[Page]]] = {
            METRICS: self._metrics,
            "/feed": self._steps,
            HEALTH: self._health,
            "/inspect/times": self._times,
        }

    async def open(self, host: str, port: int) -> None:
        """Open the port; OSError if it cannot be bound."""
        self._server = await asyncio.start_server(self._connected, host, port, limit=_READ_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._feed.close()
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._tasks.add(task)
        self._strangers[task] = None
        try:
            if len(self._tasks) <= MAX_CONNECTIONS or self._made_room_for(task):
                await self._serve(reader, writer)
                await _taken_in(writer)
        except ConnectionError:
            pass  # the peer hung up, which needs no line
        except (OSError, TimeoutError, h11.ProtocolError) as error:
            self._log.limited("inspection.failed", type(error).__name__, error=error)
        except asyncio.CancelledError:
            # The broker stops, or another reader needs the place. Not raised again, since no other
            # code awaits this task and asyncio would complain.
            pass
        finally:
            self._tasks.discard(task)
            self._strangers.pop(task, None)
            # A clean close would wait until the peer has received all pending bytes.
            writer.transport.abort()

    def _made_room_for(self, newcomer: asyncio.Task[None]) -> bool:
        """Close the oldest connection without a key; return whether there was one."""
        oldest = next(iter(self._strangers))
        if oldest is newcomer:
            return False
        del self._strangers[oldest]
        oldest.cancel()
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        while True:
            asked = await _next_request(connection, reader, writer)
            if asked is None:
                return
            request, body = asked
            if (request.method, request.target) == (b"POST", SEARCH):
                await self._search(connection, reader, writer, request, body)
                return
            async with asyncio.timeout(PAGE_SECONDS):
                status, kind, pieces = await self._page(request)
                await self._send(connection, writer, status, kind, pieces)
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()

    async def _send(
        self,
        connection: h11.Connection,
        writer: asyncio.StreamWriter,
        status: int,
        kind: str,
        pieces: Iterator[str],
    ) -> None:
        def put(event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
            writer.write(connection.send(event) or b"")

        # The length is not known before the whole page is built, so it is sent in chunks.
        headers = [("content-type", kind), ("cache-control", "no-store")]
        if status == 401:
            headers.append(("www-authenticate", "Bearer"))
        put(h11.Response(status_code=status, headers=headers))
        slices = Slices(self._context.clock)
        waiting = bytearray()
        for piece in pieces:
            waiting += piece.encode()
            if len(waiting) >= PIECE_BYTES:
                put(h11.Data(data=bytes(waiting)))
                waiting.clear()
                await writer.drain()
            await slices.breathe()
        put(h11.Data(data=bytes(waiting)))
        put(h11.EndOfMessage())
        await writer.drain()

    # -- searches --------------------------------------------------------------------------------

    async def _search(
        self,
        connection: h11.Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        request: h11.Request,
        body: bytes | None,
    ) -> None:
        """Serve a search, the last request of a connection, while the peer is connected."""
        refusal = self._refusal(request, SEARCH.decode())
        if refusal is None and body is None:
            refusal = _refusal(413, f"a question may have {MAX_QUESTION_BYTES} bytes")
        if refusal is None:
            assert body is not None, "a question without a body is refused"
            try:
                async with self._searches.answer(body) as lines:
                    sending = asyncio.create_task(self._send_lines(connection, writer, lines))
                    await _until_gone(sending, reader)
                    return
            except SearchRefused as error:
                refusal = _refusal(error.status, str(error))
        async with asyncio.timeout(PAGE_SECONDS):
            await self._send(connection, writer, *refusal)

    async def _send_lines(
        self,
        connection: h11.Connection,
        writer: asyncio.StreamWriter,
        lines: AsyncIterator[bytes],
    ) -> None:
        headers = [("content-type", _LINES), ("cache-control", "no-store"), ("connection", "close")]
        writer.write(connection.send(h11.Response(status_code=200, headers=headers)) or b"")
        async for piece in lines:
            writer.write(connection.send(h11.Data(data=piece)) or b"")
            async with asyncio.timeout(PAGE_SECONDS):
                await writer.drain()
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()

    # -- pages -----------------------------------------------------------------------------------

    def _refusal(self, request: h11.Request, path: str) -> Page | None:
        """Return why the reader may not have a page; None if it may, and may stay connected."""
        shown = [value for name, value in request.headers if name == b"authorization"]
        refusal = self._keys.refusal(path, shown)
        if refusal is not None:
            return _refusal(*refusal)
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._strangers.pop(task, None)
        return None

    async def _page(self, request: h11.Request) -> Page:
        target = request.target.decode("ascii", "replace")
        try:
            parts = urlsplit(target)
        except ValueError:
            return _refusal(400, f"{target!r} is not the address of a page")
        page = self._pages.get(parts.path)
        if parts.path == SEARCH.decode():
            return _refusal(405, "a search is asked for by POST, with a question in JSON")
        if page is None:
            known = ", ".join((*self._pages, SEARCH.decode()))
            return _refusal(404, f"there is no {parts.path!r} here; try {known}")
        if request.method != b"GET":
            return _refusal(405, f"{request.method.decode('ascii', 'replace')} is not served")
        if parts.path != HEALTH:
            refused = self._refusal(request, parts.path)
            if refused is not None:
                return refused
        try:
            query = parse_qs(parts.query, max_num_fields=MAX_FIELDS)
        except ValueError:
            return _refusal(400, f"a question may have {MAX_FIELDS} fields, and this one has more")
        return await page(query)

    async def _metrics(self, _query: dict[str, list[str]]) -> Page:
        metrics = self._context.metrics
        await self._group_metrics.refresh()
        metrics.tasks = len(asyncio.all_tasks())
        return 200, _TEXT, render(metrics)

    async def _health(self, _query: dict[str, list[str]]) -> Page:
        if self._context.is_serving:
            return 200, _JSON, iter(['{"serving": true}\n'])
        return 503, _JSON, iter(['{"serving": false}\n'])

    async def _steps(self, query: dict[str, list[str]]) -> Page:
        since = query.get("since", ["0"])[-1]
        if not since.isdecimal() or len(since) > 18:
            return _refusal(400, f"since={since!r} is not the number of a step")
        return 200, _JSON, await self._feed.read(query.get("run", [""])[-1], int(since))

    async def _times(self, query: dict[str, list[str]]) -> Page:
        try:
            places = places_of(query.get("at", []))
        except ValueError as error:
            return _refusal(400, str(error))
        return 200, _JSON, await times_of(self._context, places)


async def _taken_in(writer: asyncio.StreamWriter) -> None:
    """Close a connection once the peer has received everything; only then is its place free."""
    writer.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            await writer.wait_closed()


def _refusal(status: int, sentence: str) -> Page:
    return status, "text/plain; charset=utf-8", iter([sentence + "\n"])


async def _until_gone(sending: asyncio.Task[None], reader: asyncio.StreamReader) -> None:
    """Wait until all is sent, or until the peer has disconnected, or sends anything more."""
    hangup = asyncio.create_task(reader.read(1))
    try:
        await asyncio.wait({sending, hangup}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_sent = sending.done()
        for task in (sending, hangup):
            task.cancel()
        results = await asyncio.gather(sending, hangup, return_exceptions=True)
    if is_sent and isinstance(results[0], Exception):
        raise results[0]


async def _next_request(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[h11.Request, bytes | None] | None:
    """Return the next request with its body, which is None if it is too large.

    Return None if the peer has disconnected, or is idle for too long.
    """
    request, body, is_too_large = None, bytearray(), False
    with suppress(TimeoutError):
        async with asyncio.timeout(REQUEST_SECONDS):
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    if connection.they_are_waiting_for_100_continue:
                        go_on = h11.InformationalResponse(status_code=100, headers=[])
                        writer.write(connection.send(go_on) or b"")
                    data = await reader.read(_READ_BYTES)
                    if not data:
                        return None
                    connection.receive_data(data)
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.EndOfMessage):
                    assert request is not None, "a message begins with its head"
                    return request, None if is_too_large else bytes(body)
                elif not isinstance(event, h11.Data):
                    return None
                elif len(body) + len(event.data) > MAX_QUESTION_BYTES:
                    is_too_large = True
                else:
                    body += event.data
    return None
