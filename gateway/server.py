"""Runs a web server or a gateway: uvicorn on the socket that the supervisor has bound.

Replaces `python -m uvicorn` for three reasons: streams end before uvicorn waits for running
answers, which would never end; vanished clients are detected; and a process has a second socket of
its own, for requests of other processes of its home.
"""

import asyncio
import logging
import os
import pwd
import resource
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, ClassVar, Final, Protocol

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from gateway import home, log_lines, memory
from gateway.addresses import Network, NotAnAddress, networks
from gateway.admission import MAX_CONNECTIONS, MAX_PER_ADDRESS, Admission
from gateway.exposure import refusal
from gateway.rest.calls import HOST_USER, LET_IN
from gateway.rest.codes import ApiError, Code

APPLICATION: Final = "gateway.asgi:application"
# How long a connection may leave bytes unread, or unconfirmed, before the kernel ends it: as long
# as `console.events.endpoint` waits. Without it, a browser whose machine is gone keeps its stream
# for a quarter of an hour, and one that never reads keeps it forever.
UNTAKEN_MS: Final = 60_000
# After this much silence, the kernel probes the other side. Connections that wait for a request
# send nothing by themselves.
SILENCE_SECONDS: Final = 60
# The largest WebSocket frame; see `gateway.ws.frames`.
FRAME_BYTES: Final = 2 * 1024 * 1024
# The same of a client that is not known yet: a token has some dozens.
STRANGERS_FRAME_BYTES: Final = 8 * 1024
# How long browsers use https only for the name of a console with a certificate.
HTTPS_SECONDS: Final = 365 * 24 * 3600
# How often a WebSocket is pinged, and how late the answer may be: a slow client receives the ping
# after everything that it has not read yet.
PING_SECONDS: Final = 20.0
PONG_SECONDS: Final = 60.0
MAX_PORT: Final = 65_535
# A unix socket's record of the process at its other end: pid, user, group.
CREDENTIALS: Final = Struct("3i")
# Connections that wait for acceptance; as many as the supervisor's socket has.
BACKLOG: Final = 1_024
# Only the supervisor and the other workers of a home connect there.
OWN_BACKLOG: Final = 64

# Input without a complete head, part of a body or its end. Tokens and cookies take a few kilobytes,
# and so does the longest path.
MAX_HEAD_BYTES: Final = 65_536
# A head arrives in one packet or a few.
HEAD_SECONDS: Final = 30.0
TOO_LARGE: Final = (
    b'{"error_code": 431, "message": "the head of the request has more than %d bytes: send fewer'
    b' or shorter headers"}' % MAX_HEAD_BYTES
)
# Files, databases, brokers and other workers: clients must leave descriptors for these.
SPARE_DESCRIPTORS: Final = 512
# The divisor for both, if a process has few descriptors in total.
MOST_OF_FEW: Final = 4
# Connections in a TLS handshake, or being refused: a minute at most each, and some 50 KB. They have
# descriptors beside the others, which only they can exhaust.
MAX_HANDSHAKES: Final = 512
FEWEST_CONNECTIONS: Final = 64
# The Retry-After while all connections are in use.
BUSY_SECONDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The start-up arguments of a process."""

    descriptor: int
    grace_s: int
    # A second socket, for tools of Kafka Connect.
    connect_descriptor: int | None = None
    door: str = "web"
    worker: str = "web"
    own_socket: Path | None = None
    # PEM files; without them, TLS is not used here.
    certificate: Path | None = None
    key: Path | None = None
    is_insecure: bool = False


class Program(Protocol):
    """The application as the server controls it. All are called on the loop, in this order."""

    def begin(self) -> None: ...

    def drain(self) -> None: ...

    async def said(self) -> None:
        """Return, soon in any case, when sockets may be cut; uvicorn waits for none of them."""
        ...

    async def close(self) -> None: ...


class Http(HttpToolsProtocol):
    """One connection, with limits that apply before its caller is known.

    uvicorn accepts any number of connections, keeps a head of any size, and lets a silent
    connection live as long as it likes.
    """

    # All connections of the process.
    admission: ClassVar[Admission] = Admission()
    _is_refused = False
    _unfinished = 0
    _has_moved = False
    _waiting: asyncio.TimerHandle | None = None
    # Who calls on the process's own socket, if that is the owner of the home.
    _host_user: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # The supervisor and other workers use a unix socket, even if all else is full.
        is_own = self.server is not None and self.server[1] is None
        if is_own:
            self._host_user = owner_at(transport.get_extra_info("socket"))
        address = self.client[0] if self.client is not None else ""
        refused = None if is_own else self.admission.enter(transport, address)
        if refused is None:
            self._wait()
            return
        self._is_refused = True
        self.connections.discard(self)
        body = ApiError(Code.UNAVAILABLE, refused.message).body()
        self._answer_and_close(b"503 Service Unavailable", body, retry_after_s=BUSY_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.admission.leave(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._has_moved = False
        super().data_received(data)
        if self._has_moved:
            self._unfinished = 0
            return
        self._unfinished += len(data)
        if self._is_between:
            self._wait()
        if self._unfinished > MAX_HEAD_BYTES:
            self._refuse()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._host_user is not None:
            self.scope[HOST_USER] = self._host_user  # type: ignore[typeddict-unknown-key]
        self._wait()

    def on_headers_complete(self) -> None:
        self._move()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._move()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._move()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        # The next call may have begun already.
        if self.cycle.response_complete:
            # What came before the answer is not read, and would stay until the next call.
            self.cycle.body = bytearray()
        super().on_response_complete()

    @property
    def _is_between(self) -> bool:
        """Tell whether no call is in progress."""
        # The stubs declare it as always present.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _move(self) -> None:
        self._has_moved = True
        self._stop_waiting()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _refuse(self) -> None:
        if self._is_between and not self.transport.is_closing():
            self._answer_and_close(b"431 Request Header Fields Too Large", TOO_LARGE)
        self.transport.close()

    def _answer_and_close(self, status: bytes, body: bytes, *, retry_after_s: int = 0) -> None:
        again = b"Retry-After: %d\r\n" % retry_after_s if retry_after_s else b""
        self.transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\n%bConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (status, again, len(body), body)
        )
        self.transport.close()


class Socket(WebSocketsSansIOProtocol):
    """A connection that was upgraded to a WebSocket; it still counts.

    Its frames are small until the application calls what its scope has as `LET_IN`.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.conn.max_message_size = STRANGERS_FRAME_BYTES

    async def run_asgi(self) -> None:
        self.scope[LET_IN] = self._let_in  # type: ignore[typeddict-unknown-key]
        await super().run_asgi()

    def _let_in(self) -> None:
        self.conn.max_message_size = FRAME_BYTES

    def connection_lost(self, exc: Exception | None) -> None:
        Http.admission.leave(self.transport)
        super().connection_lost(exc)


class Accepted(socket.socket):
    """A connection that counts until its socket is closed."""

    # The counter and the key: not the connection, which would stay in memory forever.
    counted: tuple[Admission, object] | None = None

    def close(self) -> None:
        self._leave()
        super().close()

    def __del__(self) -> None:
        self._leave()

    def _leave(self) -> None:
        if self.counted is not None:
            admission, key = self.counted
            admission.leave(key)


class Listener(socket.socket):
    """A listening socket that limits the connections that it accepts.

    No protocol sees a connection before its TLS handshake, so it is counted here.
    """

    admission: Admission | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection; asyncio continues if one is aborted."""
        connection, address = super().accept()
        if self.admission is None or not isinstance(address, tuple):
            return connection, address
        found = Accepted(self.family, self.type, self.proto, fileno=connection.detach())
        key = object()
        if self.admission.enter(key, str(address[0])) is not None:
            found.close()
            raise ConnectionAbortedError
        found.counted = self.admission, key
        return found, address


class Server(uvicorn.Server):
    """uvicorn's server, which ends its streams first."""

    def __init__(
        self, config: uvicorn.Config, *, program: Program, own_socket: Path | None = None
    ) -> None:
        super().__init__(config)
        self._program = program
        self._own_socket = own_socket
        self._trimming: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._own_socket is not None:
            # After the public socket, so that an answer there proves that this process serves.
            own = await asyncio.get_running_loop().create_server(
                self._protocol, sock=private(self._own_socket), backlog=OWN_BACKLOG
            )
            self.servers.append(own)
        memory.settle()
        self._trimming = asyncio.create_task(memory.trim_often())
        self._program.begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._program.drain()
        await self._program.said()
        await super().shutdown(sockets)
        await self._program.close()
        if self._trimming is not None:
            self._trimming.cancel()
        if self._own_socket is not None:
            self._own_socket.unlink(missing_ok=True)

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made


def run(serving: Serving) -> None:
    # Django reads its settings from there, and they differ between the two servers.
    os.environ["SAMSA_DOOR"] = serving.door
    os.environ["SAMSA_WORKER"] = serving.worker
    if serving.own_socket is not None:
        os.environ["SAMSA_SOCKETS"] = str(serving.own_socket.parent)
    log_lines.begin(logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.INFO)
    config = uvicorn.Config(
        APPLICATION,
        http=Http,
        ws=Socket,
        access_log=False,
        log_config=None,
        lifespan="off",
        # No proxy is assumed: any client could forge these headers.
        proxy_headers=False,
        server_header=False,
        headers=https_only(serving),
        timeout_graceful_shutdown=serving.grace_s,
        ssl_certfile=serving.certificate,
        ssl_keyfile=serving.key,
        ws_max_size=FRAME_BYTES,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PONG_SECONDS,
        # Each socket would need its own window: more memory than all the rest of it.
        ws_per_message_deflate=False,
    )
    logging.getLogger("uvicorn.error").addFilter(is_without_calls)
    listener = listening(serving.descriptor)
    admit(listener, raised_descriptors(), trusted=proxies())
    # Loads Django.
    from gateway import asgi  # noqa: PLC0415

    if why := refusal(
        host_of(listener),
        has_tls=serving.certificate is not None,
        # Not from the settings, which are read once the files of the home exist.
        has_proxy=home.HAS_PROXY,
        is_insecure=serving.is_insecure,
    ):
        sys.exit(f"samsa: {why}")
    server = Server(config, program=asgi.program, own_socket=serving.own_socket)
    listeners: list[socket.socket] = [listener]
    if serving.connect_descriptor is not None:
        listeners.append(listening(serving.connect_descriptor))
        asgi.program.serve_connect(port_of(listeners[-1]))
    server.run(listeners)


def owner_at(connection: socket.socket) -> str | None:
    """Return the user at the other end of a unix socket, if they own the home or are root."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    _process, user, _group = CREDENTIALS.unpack(found)
    if user not in {os.geteuid(), 0}:
        return None
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        # A container may have no name for its user.
        return str(user)


def is_without_calls(record: logging.LogRecord) -> bool:
    """Filter out log lines about calls and sockets: their URLs may contain data of clients.

    Below INFO, whatever the level, they also contain headers and frames, in which tokens are.
    """
    return record.levelno >= logging.INFO and '"WebSocket %s"' not in str(record.msg)


def https_only(serving: Serving) -> list[tuple[str, str]]:
    """Return the header by which browsers use https only, for a console with a certificate."""
    if serving.certificate is None or serving.door != "web":
        return []
    return [("Strict-Transport-Security", f"max-age={HTTPS_SECONDS}")]


def admit(listener: Listener, descriptors: int, *, trusted: Sequence[Network] = ()) -> None:
    """Limit the connections of a process, and those in a TLS handshake beyond them."""
    most, shaking = connections_within(descriptors), handshakes_within(descriptors)
    each = min(MAX_PER_ADDRESS, most // 2)
    Http.admission = Admission(most=most, each=each, trusted=trusted)
    listener.admission = Admission(most=most + shaking, each=each + shaking // 2, trusted=trusted)


def raised_descriptors() -> int:
    """Raise the limit of descriptors to the system's maximum; return it."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return MAX_CONNECTIONS * 2 if hard == resource.RLIM_INFINITY else hard


def connections_within(descriptors: int) -> int:
    """Return how many connections a process with this many descriptors may have."""
    few = descriptors // MOST_OF_FEW
    spare = min(SPARE_DESCRIPTORS, few) + handshakes_within(descriptors)
    return min(MAX_CONNECTIONS, max(FEWEST_CONNECTIONS, descriptors - spare))


def handshakes_within(descriptors: int) -> int:
    return min(MAX_HANDSHAKES, descriptors // MOST_OF_FEW)


def proxies() -> tuple[Network, ...]:
    """Return the trusted proxies, before the settings can be read."""
    try:
        return networks([each for each in home.PROXIES.split(",") if each.strip()])
    except NotAnAddress:
        # The settings report that, and end the start.
        return ()


def bound(address: str) -> int:
    """Return a listening socket for HOST:PORT; exit the process if that is impossible."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port[:6]) > MAX_PORT:
        sys.exit(f"samsa: --listen is {address!r}: give HOST:PORT, as 127.0.0.1:8082")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(port)), family=family, backlog=BACKLOG).detach()
    except OSError as error:
        sys.exit(f"samsa: cannot listen on {address}: {error}")


def host_of(listener: socket.socket) -> str:
    name = listener.getsockname()
    return name if isinstance(name, str) else str(name[0])


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def private(path: Path) -> socket.socket:
    """Return a unix socket that only this user can open, replacing one that was left behind."""
    path.unlink(missing_ok=True)
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Its directory is private too; the mode protects the socket if that was changed.
    mask = os.umask(0o177)
    try:
        own.bind(str(path))
    finally:
        os.umask(mask)
    return own


def listening(descriptor: int, *, untaken_ms: int = UNTAKEN_MS) -> Listener:
    """Return the inherited socket; accepted connections inherit its options."""
    listener = Listener(fileno=descriptor)
    if listener.family in {socket.AF_INET, socket.AF_INET6}:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE_SECONDS)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, untaken_ms)
    return listener
