"""Serves the collector's pages over HTTP, on a unix socket and optionally on a TCP address.

Knows no page. The socket belongs to the owner of the home and its mode protects it; on an address,
every page but `/health` requires the metrics key.
"""

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import h11

from console.monitoring.pages import Answer, Query, refusal

# Web servers, each with one following thread and some requests; a Prometheus, an operator.
MAX_CONNECTIONS: Final = 64
MAX_HEAD_BYTES: Final = 16_384
MAX_FIELDS: Final = 20
# Limits for a silent connection, and for an answer in progress.
IDLE_SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 30.0
# Less than a head: the bytes of a single read do not count against its limit.
READ_BYTES: Final = 4_096
# Send text in pieces of this size, so that other tasks run in between.
PIECE_BYTES: Final = 65_536
# No other user of the machine may connect.
PRIVATE: Final = 0o077

Ask = Callable[[str, Query], Awaitable[Answer]]
Keys = Callable[[], tuple[str, ...]]


class Server:
    """The HTTP server. Runs on one event loop."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def open_socket(self, path: Path) -> None:
        """Listen on a unix socket, replacing one that an earlier run left behind."""
        path.unlink(missing_ok=True)  # noqa: ASYNC240 - a local file, before anybody is served
        before = os.umask(PRIVATE)
        try:
            server = await asyncio.start_unix_server(
                lambda reader, writer: self._connected(reader, writer, None), path
            )
        finally:
            os.umask(before)
        self._servers.append(server)

    async def open_address(self, host: str, port: int, keys: Keys) -> int:
        """Listen on an address; return the port."""
        server = await asyncio.start_server(
            lambda reader, writer: self._connected(reader, writer, keys), host, port
        )
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, keys: Keys | None
    ) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._tasks.add(task)
        try:
            if len(self._tasks) <= MAX_CONNECTIONS:
                await self._serve(reader, writer, keys)
        except (OSError, TimeoutError, h11.ProtocolError, asyncio.CancelledError):
            # The peer left, sent no HTTP, or the server stops: there is no one to answer.
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, keys: Keys | None
    ) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        while True:
            request = await _next_request(connection, reader)
            if request is None:
                return
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await self._answer(request, keys)
                await _send(connection, writer, answer)
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()

    async def _answer(self, request: h11.Request, keys: Keys | None) -> Answer:
        target = request.target.decode("ascii", "replace")
        try:
            parts = urlsplit(target)
            query = dict(parse_qsl(parts.query, max_num_fields=MAX_FIELDS))
        except ValueError:
            return refusal(400, f"{target[:200]!r} is not the address of a page")
        if request.method != b"GET":
            return refusal(405, f"{request.method.decode('ascii', 'replace')} is not served")
        if keys is not None and parts.path != "/health" and not _shows_key(request, keys()):
            return refusal(401, "show the metrics key: Authorization: Bearer KEY")
        return await self._ask(parts.path, query)


def _shows_key(request: h11.Request, keys: tuple[str, ...]) -> bool:
    shown = [value for name, value in request.headers if name == b"authorization"]
    return any(
        hmac.compare_digest(value, f"Bearer {key}".encode()) for value in shown[:1] for key in keys
    )


async def _send(connection: h11.Connection, writer: asyncio.StreamWriter, answer: Answer) -> None:
    def put(event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        writer.write(connection.send(event) or b"")

    headers = [("content-type", answer.kind), ("cache-control", "no-store")]
    if answer.status == 401:
        headers.append(("www-authenticate", "Bearer"))
    put(h11.Response(status_code=answer.status, headers=headers))
    for piece in _gathered(answer.pieces):
        put(h11.Data(data=piece))
        await writer.drain()
        await asyncio.sleep(0)
    put(h11.EndOfMessage())
    await writer.drain()


def _gathered(pieces: Iterator[str]) -> Iterator[bytes]:
    waiting = bytearray()
    for piece in pieces:
        waiting += piece.encode()
        if len(waiting) >= PIECE_BYTES:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


async def _next_request(
    connection: h11.Connection, reader: asyncio.StreamReader
) -> h11.Request | None:
    """Return the next request; None if the peer has left or is silent for too long."""
    request = None
    with suppress(TimeoutError):
        async with asyncio.timeout(IDLE_SECONDS):
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    data = await reader.read(READ_BYTES)
                    if not data:
                        return None
                    connection.receive_data(data)
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.EndOfMessage):
                    return request
                elif not isinstance(event, h11.Data):
                    return None
    return None
