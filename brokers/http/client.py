"""A blocking HTTP client for one server."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from brokers.http.address import Address, open_socket
from brokers.http.protocol import (
    ClientProtocol,
    ConnectionDropped,
    Head,
    NoResponse,
    ResponseTooLarge,
)

READ_BYTES: Final = 65_536
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int
    body: bytes


class Connection:
    """One connection, opened for the first request and again after it was lost.

    Not thread-safe, except for `cut`. Every call may raise NoResponse, which closes the connection.
    """

    def __init__(self, address: Address, *, wait_seconds: float, max_bytes: int) -> None:
        self.address = address
        self._wait_seconds = wait_seconds
        self._max_bytes = max_bytes
        self._socket: socket.socket | None = None
        self._protocol = ClientProtocol(address.authority)

    def exchange(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes | None = None,
    ) -> Response:
        """Send a request, again if a kept connection was lost meanwhile; return the response."""
        is_kept = self._socket is not None
        try:
            head = self.begin(method, target, headers=headers, body=body)
        except ConnectionDropped:
            if not is_kept:
                raise
            head = self.begin(method, target, headers=headers, body=body)
        return Response(status=head.status, body=self.read())

    def open(self) -> None:
        """Connect; a request does this by itself."""
        if self._socket is None:
            try:
                self._socket = open_socket(self.address, self._wait_seconds)
            except (OSError, UnicodeError) as error:
                raise NoResponse(reason(error)) from error
            self._protocol = ClientProtocol(self.address.authority)

    def begin(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes | None = None,
    ) -> Head:
        """Send a request; return the head of the response, whose body is read next."""
        self.open()
        with self._closing_on_failure():
            assert self._socket is not None, "an open connection has a socket"
            try:
                self._socket.sendall(self._protocol.begin(method, target, headers, body))
            except ConnectionError as error:
                raise ConnectionDropped(reason(error)) from error
            return self._take(self._protocol.read_head)

    def read(self) -> bytes:
        """Return the body of a response; ResponseTooLarge if it exceeds the limit."""
        pieces, size = [], 0
        for piece in self.pieces():
            pieces.append(piece)
            size += len(piece)
            if size > self._max_bytes:
                self.close()
                raise ResponseTooLarge(f"an answer of more than {self._max_bytes} bytes")
        return b"".join(pieces)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives."""
        with self._closing_on_failure():
            while piece := self._take(self._protocol.read_piece):
                yield piece
        if not self._protocol.is_reusable:
            self.close()

    def cut(self) -> None:
        """Let a request that another thread waits for fail at once."""
        if (connected := self._socket) is not None:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if (connected := self._socket) is not None:
            self._socket = None
            connected.close()

    @contextmanager
    def _closing_on_failure(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.callback(self.close)
            try:
                yield
            except OSError as error:
                raise NoResponse(reason(error)) from error
            stack.pop_all()

    def _take(self, read: Callable[[], Read | None]) -> Read:
        while (found := read()) is None:
            assert self._socket is not None, "a response comes from an open connection"
            try:
                data = self._socket.recv(READ_BYTES)
            except ConnectionError as error:
                raise self._protocol.explain_end(reason(error)) from error
            self._protocol.receive(data)
        return found


def reason(error: Exception) -> str:
    return str(error) or type(error).__name__
