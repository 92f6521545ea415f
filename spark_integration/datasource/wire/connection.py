"""One connection to a broker: TLS, authentication, then requests and responses.

It blocks, within the timeouts of its settings. Requests may be pipelined; responses arrive in the
same order. After any error it is unusable.
"""

import contextlib
import socket
import ssl
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

from spark_integration.datasource.wire import messages, sasl
from spark_integration.datasource.wire.errors import BrokerError, Refused, Unreachable, WireCorrupt
from spark_integration.datasource.wire.messages import Address, Api
from spark_integration.datasource.wire.primitives import INT32, Reader
from spark_integration.datasource.wire.settings import Login, Settings, Tls

# The limit of one response. The largest is a fetch whose first batch exceeds the requested size;
# memory is allocated only as bytes arrive.
MAX_FRAME: Final = 2**29
# SCRAM has two steps; a broker with more is not a Kafka broker.
MAX_LOGIN_STEPS: Final = 8


class Connection:
    """A connected and authenticated connection."""

    def __init__(self, address: Address, settings: Settings) -> None:
        self.address = address
        self.is_broken = False
        self._client_id = settings.client_id
        self._answer_seconds = settings.answer_seconds
        self._correlation = 0
        self._waiting: deque[tuple[int, Api]] = deque()
        self._socket = connected(address, settings)
        with contextlib.ExitStack() as failing:
            # Nothing else refers to it yet.
            failing.callback(self.close)
            self.require_versions()
            if settings.login is not None:
                self._log_in(settings.login)
            failing.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_idle(self) -> bool:
        """Whether it is open and has no response in flight."""
        return not self.is_broken and not self._waiting

    def close(self) -> None:
        self.is_broken = True
        with contextlib.suppress(OSError):
            self._socket.close()

    def ask(self, api: Api, body: bytes, *, more_seconds: float = 0) -> Reader:
        """Send one request and return its response."""
        self.send(api, body)
        return self.answer(more_seconds=more_seconds)

    def send(self, api: Api, body: bytes) -> None:
        self._correlation = (self._correlation + 1) % 2**31
        head = messages.request_head(api, self._correlation, self._client_id)
        self._waiting.append((self._correlation, api))
        with self._breaking():
            self._socket.sendall(b"".join([INT32.pack(len(head) + len(body)), head, body]))

    def answer(self, *, more_seconds: float = 0) -> Reader:
        """Return the response to the oldest request in flight.

        `more_seconds` is the time that the request lets the broker wait.
        """
        expected, api = self._waiting.popleft()
        with self._breaking():
            self._socket.settimeout(self._answer_seconds + more_seconds)
            (size,) = INT32.unpack(self._received(INT32.size))
            if not INT32.size <= size <= MAX_FRAME:
                raise WireCorrupt(
                    f"{self.address} answers {api.name} with {size} bytes, which Kafka's protocol"
                    f" forbids (the limit is {MAX_FRAME}): is it a broker, and does it use TLS?"
                )
            reader = Reader(self._received(size))
            correlation = reader.int32()
            if correlation != expected:
                raise WireCorrupt(
                    f"{self.address} answers correlation id {correlation} instead of {expected}"
                )
            if api.is_flexible:
                reader.skip_tags()
            return reader

    def require_versions(self) -> None:
        """Refuse a broker without the required API versions."""
        served = messages.read_api_versions(self.ask(messages.API_VERSIONS, b""))
        for api in (messages.METADATA, messages.LIST_OFFSETS, messages.FETCH):
            lowest, highest = served.get(api.key, (0, -1))
            if not lowest <= api.version <= highest:
                raise Refused(
                    f"{self.address} supports {api.name} in versions {lowest} to {highest}, but"
                    f" version {api.version} is required: use a broker of Kafka 3.1 or newer"
                )

    def _log_in(self, login: Login) -> None:
        body = messages.sasl_handshake_request(login.mechanism)
        code, offered = messages.read_sasl_handshake(self.ask(messages.SASL_HANDSHAKE, body))
        if code:
            names = ", ".join(name or "" for name in offered) or "none"
            raise Refused(f"{self.address} does not support {login.mechanism}: it offers {names}")
        exchange = sasl.steps(login)
        token = next(exchange)
        for _ in range(MAX_LOGIN_STEPS):
            body = messages.sasl_authenticate_request(token)
            reader = self.ask(messages.SASL_AUTHENTICATE, body)
            code, said, answer = messages.read_sasl_authenticate(reader)
            if code:
                raise Refused(str(BrokerError(code, f"login of {login.user!r}", said)))
            try:
                token = exchange.send(answer)
            except StopIteration:
                return
        raise Refused(f"{self.address} does not complete the authentication of {login.user!r}")

    def _received(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self._socket.recv_into(view)
            if count == 0:
                raise Unreachable(f"{self.address} closed the connection")
            view = view[count:]
        return data

    @contextlib.contextmanager
    def _breaking(self) -> Iterator[None]:
        with contextlib.ExitStack() as failing:
            # The rest of the response would be read as the next one.
            failing.callback(self.close)
            try:
                yield
            except OSError as error:
                raise Unreachable(f"{self.address}: {error}") from error
            failing.pop_all()


def connected(address: Address, settings: Settings) -> socket.socket:
    # Report wrong files before connecting.
    context = None if settings.tls is None else tls_context(settings.tls)
    plain = None
    try:
        plain = socket.create_connection(address, timeout=settings.connect_seconds)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            return plain
        return context.wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLError as error:
        close_quietly(plain)
        # A retry does not fix a wrong certificate.
        raise Refused(f"{address}: TLS failed: {error}") from error
    except OSError as error:
        close_quietly(plain)
        raise Unreachable(f"{address}: {error}") from error


def close_quietly(plain: socket.socket | None) -> None:
    if plain is not None:
        plain.close()


def tls_context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_file, cadata=tls.ca_text)
        context.check_hostname = tls.has_to_match_name
        if tls.own_file is not None:
            context.load_cert_chain(tls.own_file, password=tls.own_password)
    except OSError as error:
        raise Refused(
            f"the PEM files of the connection ({tls.ca_file}, {tls.own_file}) cannot be used:"
            f" {error}"
        ) from error
    return context
