"""Manages the listening socket and its connections, with the limits that isolate them.

Knows no requests. Accepts connections while there is room, refuses them cleanly when there is none,
ends those that are idle or send a request too slowly, and at the end lets requests in flight
finish. Holds what all connections share: the buffer into which all of them receive, and the count
of bytes that they have not received yet.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from brokers.clock import Clock
from brokers.protocol.connection import Connection
from brokers.protocol.errors import ProtocolError
from brokers.replication.deadlines import Deadlines
from brokers.server.client import (
    FAILED,
    GONE,
    MAX_TOTAL_OUTPUT_BYTES,
    STOPPED,
    Client,
)
from brokers.server.dispatch import Dispatch
from brokers.server.frame_room import GAVE_WAY, FrameRoom
from brokers.server.logs import Log
from brokers.server.metrics import Metrics
from brokers.server.output import JOINED_BYTES
from brokers.server.peers import Peer
from brokers.server.readers import Readers
from brokers.server.sweep import Sweep

# All connections receive into this one; larger requests move to a buffer of their own.
RECEIVE_BYTES: Final = 256 * 1024
# The part that is received first if a large request is expected, as after a large one: the rest is
# received into its own buffer, and only this part is copied.
FIRST_BYTES: Final = 32 * 1024
# Connections that may wait in the kernel to be accepted.
BACKLOG: Final = 1_024
# Accepted in one turn of the loop, at about 40 µs each, so that a flood leaves time for others.
ACCEPTS_PER_TURN: Final = 32
# If there is no place for a new connection, one that has sent no whole request for this long is
# closed: clients send their first request at once. The one that is silent for longest, of the first
# so many, is closed.
WORDLESS_SECONDS: Final = 5.0
WORDLESS_TRIED: Final = 256
# How long to accept no connections if there is no descriptor, not even the spare one.
FULL_SECONDS: Final = 1.0

# Ends without a log line here: requested by the peer or the operator, or logged elsewhere.
_UNTOLD: Final = frozenset({GONE, STOPPED, FAILED})

_FULL_ERRNOS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

# Protocols that are sent to a Kafka port by mistake, by their first bytes.
_STRANGERS: Final = (
    (b"\x16\x03", "a TLS handshake; this listener speaks plain text"),
    (b"GET ", "HTTP; the console has another port"),
    (b"POST", "HTTP; the console has another port"),
    (b"HEAD", "HTTP; the console has another port"),
    (b"PUT ", "HTTP; the console has another port"),
    (b"OPTI", "HTTP; the console has another port"),
    (b"SSH-", "SSH"),
)


class BindFailed(Exception):
    """The port could not be bound; the message is for the user who started the broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one listener."""

    max_connections: int
    max_connections_per_ip: int
    idle_seconds: float
    frame_seconds: float
    max_frame_bytes: int


class Listener:
    """One for each port. Belongs to the event loop."""

    def __init__(
        self, dispatch: Dispatch, *, limits: Limits, clock: Clock, metrics: Metrics, log: Log
    ) -> None:
        self.dispatch = dispatch
        self.metrics = metrics
        self.now: Callable[[], float] = clock.monotonic
        # The buffer into which all connections receive, and a view of it.
        self.received = bytearray(RECEIVE_BYTES)
        self.shared = memoryview(self.received)
        self.first_room = self.shared[:FIRST_BYTES]
        self.scratch = memoryview(bytearray(JOINED_BYTES))
        # Lanes do not check frame limits; they see no frame that is larger than that buffer.
        has_lanes = limits.max_frame_bytes >= RECEIVE_BYTES
        self.express = dispatch.express.serve if has_lanes else _no_lane
        self.clients: set[Client] = set()
        self.loop = asyncio.get_running_loop()
        self.readers = Readers(self.loop, clock)
        self.deadlines = Deadlines(self.loop, clock)  # of clients that are muted
        self.frame_room = FrameRoom(self.clients, limits.max_frame_bytes)
        self.limits = limits
        self._log = log
        self._by_address: dict[str, int] = {}
        self._to_flush: list[Client] = []
        self._is_gathering = False
        self._socket: socket.socket | None = None
        self._spare_fd = -1
        self._sweep = Sweep(
            self.loop,
            self.clients,
            idle_seconds=lambda: self.limits.idle_seconds,
            frame_seconds=lambda: self.limits.frame_seconds,
            now=self.now,
        )
        self._reopening: asyncio.Handle | None = None
        self._emptied: asyncio.Future[None] | None = None  # while the broker waits for the last one

    # -- what connections share ------------------------------------------------------------------

    @property
    def output_bytes(self) -> int:
        """Unsent bytes of all clients whose sockets accept no more now."""
        return self.metrics.output_bytes

    @output_bytes.setter
    def output_bytes(self, count: int) -> None:
        self.metrics.output_bytes = count

    @property
    def is_crowded(self) -> bool:
        return self.metrics.output_bytes > MAX_TOTAL_OUTPUT_BYTES

    def flush_soon(self, client: Client) -> None:
        """Flush the client at the end of this turn of the loop, which may add more responses."""
        if not self._to_flush and not self._is_gathering:
            self.loop.call_soon(self._flush_collected)
        self._to_flush.append(client)

    def gather(self, call: Callable[[], None]) -> None:
        """Run `call` and send the responses that it causes at once, not a turn later."""
        self._is_gathering = True
        try:
            call()
        finally:
            self._is_gathering = False
            self._flush_collected()

    def _flush_collected(self) -> None:
        clients, self._to_flush = self._to_flush, []
        for client in clients:
            try:
                client.flush_collected()
            except Exception as error:  # noqa: BLE001 - else nobody behind it would ever be flushed
                self.bug(error)
                client.close(FAILED)

    def describe(self, client: Client, error: ProtocolError) -> str:
        """Describe what is wrong with received bytes, and the protocol that they look like."""
        if client.requests == 0:
            first = bytes(self.shared[:4])
            for start, meaning in _STRANGERS:
                if first.startswith(start):
                    return f"the first bytes look like {meaning}"
        return str(error)

    def bug(self, error: Exception) -> None:
        """Log a bug that ends a connection."""
        self.metrics.handler_failures += 1
        self._log.bug("connection.failed", error)

    def closed(self, client: Client, reason: str, detail: str | None) -> None:
        """Remove a closed connection; log one line unless the client just disconnected."""
        self.clients.discard(client)
        self.metrics.clients.closed(client)
        self.metrics.connections -= 1
        if self._emptied is not None and not self.clients and not self._emptied.done():
            self._emptied.set_result(None)
        self.metrics.closed(reason)
        address = client.peer.address
        left = self._by_address[address] - 1
        if left:
            self._by_address[address] = left
        else:
            del self._by_address[address]
        if reason not in _UNTOLD or detail is not None:
            kind = f"{reason} http" if detail and "HTTP" in detail else reason
            peer = f"{address}:{client.peer.port}"
            self._log.limited("connection.closed", kind, reason=reason, detail=detail, peer=peer)

    # -- the door --------------------------------------------------------------------------------

    def bind(self, host: str, port: int) -> int:
        """Bind the port, a free one for port 0, and return it; BindFailed says why not.

        Clients that connect before `listen` are refused, and try another broker or retry.
        """
        self._socket = _bound_socket(host, port)
        taken: int = self._socket.getsockname()[1]
        return taken

    def listen(self) -> None:
        """Accept clients. BindFailed: another program was faster to take the same port."""
        assert self._socket is not None, "the listener has no port"
        try:
            self._socket.listen(BACKLOG)
        except OSError as error:
            host, port, *_ = self._socket.getsockname()
            raise BindFailed(_bind_sentence(host, port, error)) from error
        self._take_spare()
        self.loop.add_reader(self._socket, self._accept)
        self._sweep.start()

    def _accept(self) -> None:
        assert self._socket is not None, "the listener is closed"
        for _ in range(ACCEPTS_PER_TURN):
            try:
                sock, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _FULL_ERRNOS:
                    self._refuse_one(error)
                    return
                continue  # the peer disconnected before it was accepted
            self._admit(sock, address[0], address[1])

    def _admit(self, sock: socket.socket, host: str, port: int) -> None:
        limits = self.limits
        if len(self.clients) >= limits.max_connections:
            _end_wordless(self.clients, self.now())
        here = self._by_address.get(host, 0)
        if len(self.clients) >= limits.max_connections or here >= limits.max_connections_per_ip:
            sock.close()
            self.metrics.closed("refused, too many")
            self._log.limited(
                "connection.refused",
                "too many",
                peer=host,
                connections=len(self.clients),
                of_this_address=here,
                limit=limits.max_connections,
                limit_per_address=limits.max_connections_per_ip,
            )
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Lets the kernel notice in time that a peer's machine has vanished.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError:
            sock.close()  # the peer has disconnected
            return
        machine = Connection(
            self.dispatch.apis,
            self.frame_room.buffers,
            must_authenticate=False,
            frame_limit=limits.max_frame_bytes,
        )
        client = Client(sock, Peer(address=host, port=port), machine, self)
        self._by_address[host] = here + 1
        self.clients.add(client)
        self.metrics.clients.opened(client)
        self.metrics.connections += 1
        self.metrics.connections_opened += 1
        client.start(self.now())

    def _refuse_one(self, error: OSError) -> None:
        """Accept a peer with the spare descriptor and close it at once; none other is left."""
        assert self._socket is not None, "the listener is closed"
        self._log.limited(
            "connection.refused", "no descriptor", error=str(error), connections=len(self.clients)
        )
        if self._spare_fd < 0:
            self.loop.remove_reader(self._socket)
            self._reopening = self.loop.call_later(FULL_SECONDS, self._reopen)
            return
        os.close(self._spare_fd)
        self._spare_fd = -1
        with suppress(OSError):
            sock, _address = self._socket.accept()
            sock.close()
        self._take_spare()

    def _reopen(self) -> None:
        assert self._socket is not None, "the listener is closed"
        self._take_spare()
        self.loop.add_reader(self._socket, self._accept)

    def _take_spare(self) -> None:
        with suppress(OSError):
            self._spare_fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    # -- the end ---------------------------------------------------------------------------------

    def stop_accepting(self) -> None:
        """Stop accepting connections; existing ones stay open."""
        self._sweep.stop()
        if self._reopening is not None:
            self._reopening.cancel()
        if self._socket is not None:
            self.loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        if self._spare_fd >= 0:
            os.close(self._spare_fd)
            self._spare_fd = -1

    async def stop(self, grace_seconds: float) -> int:
        """Stop taking requests, wait for those in flight; return how many were cut off."""
        self.stop_accepting()
        for client in list(self.clients):
            client.stop()
        if self.clients:
            self._emptied = self.loop.create_future()
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_seconds):
                    await self._emptied
        cut = list(self.clients)
        for client in cut:
            client.close(STOPPED)
        self.readers.close()
        return len(cut)


def _no_lane(_data: bytearray, _view: memoryview, _count: int, _now: float) -> None:
    """Take no request, for a listener that must check the size of all frames."""


def _end_wordless(clients: Iterable[Client], now: float) -> None:
    """Close a connection that was opened and not used, if there is one."""
    wordless = [
        client
        for client in islice(clients, WORDLESS_TRIED)
        if not client.requests and now - client.last_active > WORDLESS_SECONDS
    ]
    if wordless:
        oldest = min(wordless, key=lambda client: client.last_active)
        oldest.close(GAVE_WAY, detail="it sent no request, and others wait for its place")


def _bound_socket(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise BindFailed(f"{host!r} is not an address of this machine: {error}") from error
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise BindFailed(_bind_sentence(host, port, error)) from error
    return sock


def _bind_sentence(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken by another program; choose another port"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} needs rights this user lacks; choose one above 1023"
    return f"port {port} of {host} cannot be used: {error.strerror or error}"
