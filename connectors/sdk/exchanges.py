"""Sends one request to a web server and reads the answer, within limits of time and size.

It connects only where `outgoing` allows it. A redirect is returned like any other answer and not
followed, since it would bypass the guard. A connection is kept for the next request, and is
independent of the contents of requests.
"""

import http.client
import io
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from socket import socket
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from connectors.sdk import outgoing
from connectors.sdk.errors import ConfigError, RetriableError

# From the first byte sent to the last one read; callers with long requests set their own limit.
EXCHANGE_S: Final = 5.0
# The bytes to read of an answer; a sink needs no more, and the connection is closed then.
MAX_ANSWER_BYTES: Final = 10 * 1024 * 1024
# The bytes to send or receive before the time is checked.
BLOCK_BYTES: Final = 256 * 1024
PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
# Servers refuse longer ones.
MAX_URL_CHARS: Final = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A server, and the scheme to use."""

    scheme: str
    host: str
    port: int

    @property
    def name(self) -> str:
        """Return the value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer of a server. `headers` are by name in lower case, the last of each."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool = False


def split(url: str) -> tuple[Origin, str]:
    """Split a URL into its server and the rest; ConfigError names the error in it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{url[:200]!r} is not a URL: {error}") from None
    if wrong := _problem(url, parts):
        raise ConfigError(wrong)
    assert parts.hostname is not None
    origin = Origin(
        scheme=parts.scheme,
        host=parts.hostname,
        port=PORTS[parts.scheme] if port is None else port,
    )
    return origin, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _problem(url: str, parts: SplitResult) -> str | None:
    shown = repr(url[:200])
    if len(url) > MAX_URL_CHARS:
        return f"{shown}… has {len(url)} characters, at most {MAX_URL_CHARS} are sent"
    if not url.isascii() or any(not "!" <= char <= "~" for char in url):
        return f"{shown} has characters that a URL must write as %XX"
    if parts.scheme not in PORTS:
        return f"{shown} begins with neither http:// nor https://"
    if not parts.hostname:
        return f"{shown} names no host"
    if "@" in parts.netloc:
        # Omit the URL, as it may contain a password.
        return "a URL with a user or a password in it: write those into keys of their own"
    return None


def trust(certificates: str = "") -> ssl.SSLContext:
    """Return a TLS context with the machine's authorities, or with these (PEM)."""
    try:
        return ssl.create_default_context(cadata=certificates or None)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"the certificates are not PEM: {error}") from error


class Connection:
    """A connection to a server, opened on first use, and again after it was lost."""

    def __init__(self, origin: Origin, *, tls: ssl.SSLContext | None = None) -> None:
        self.origin = origin
        self._tls = (tls or trust()) if origin.scheme == "https" else None
        self._client: _Client | None = None

    def exchange(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        within_s: float = EXCHANGE_S,
    ) -> Answer:
        """Return the answer to a request; RetriableError if there is none in time.

        The server may have processed a request that failed.
        """
        until = time.monotonic() + within_s
        was_open = self._client is not None
        try:
            return self._try(method, target, headers, body, until)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
            if not was_open:
                raise self._failed(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._failed(error) from error
        # The server has closed an idle connection, so open another one.
        try:
            return self._try(method, target, headers, body, until)
        except (OSError, http.client.HTTPException) as error:
            raise self._failed(error) from error

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.drop()

    def _try(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, until: float
    ) -> Answer:
        is_whole = False
        try:
            if self._client is None:
                self._client = _Client(self.origin, self._tls)
            client = self._client
            client.until = until
            client.send_request(method, target, headers, body)
            response = client.getresponse()
            content = response.read(MAX_ANSWER_BYTES + 1)
            is_whole = not response.will_close and len(content) <= MAX_ANSWER_BYTES
            return Answer(
                status=response.status,
                headers={name.lower(): value for name, value in response.getheaders()},
                body=content[:MAX_ANSWER_BYTES],
                is_cut=len(content) > MAX_ANSWER_BYTES,
            )
        except ValueError as error:
            # The client refuses it, for example because of a line break in a header.
            raise ConfigError(f"cannot ask {self.origin}: {error}") from error
        finally:
            if not is_whole:
                self.close()

    def _failed(self, error: Exception) -> RetriableError:
        said = str(error) or type(error).__name__
        return RetriableError(f"no answer from {self.origin}: {said}")


class _Client(http.client.HTTPConnection):
    """Python's client over a connection of the guard, with one time limit for an exchange."""

    def __init__(self, origin: Origin, tls: ssl.SSLContext | None) -> None:
        super().__init__(origin.host, origin.port)
        self.until = 0.0
        self._origin = origin
        self._trust = tls
        self._line: _Line | None = None

    def connect(self) -> None:
        wait_s = min(outgoing.CONNECT_S, max(0.1, self.until - time.monotonic()))
        plain = outgoing.connect(
            self._origin.host, self._origin.port, tls=self._trust, wait_s=wait_s
        )
        self._line = _Line(plain, self)
        # The client only sends, reads a file, and closes.
        self.sock = self._line

    def send_request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        self.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": self._origin.name, **headers}.items():
            self.putheader(name, value)
        if body or method in {"POST", "PUT", "PATCH"}:
            self.putheader("Content-Length", str(len(body)))
        self.endheaders(body or None)

    def drop(self) -> None:
        self.close()
        if self._line is not None:
            self._line.socket.close()


class _Line:
    """A socket whose waits end with the time limit of the exchange."""

    def __init__(self, connection: socket, client: _Client) -> None:
        self.socket = connection
        self._client = client

    def sendall(self, data: Any) -> None:
        view = memoryview(data)
        while view:
            self._wait_no_longer()
            view = view[self.socket.send(view[:BLOCK_BYTES]) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Reader(self))

    def read_into(self, buffer: Any) -> int:
        self._wait_no_longer()
        return self.socket.recv_into(memoryview(buffer)[:BLOCK_BYTES])

    def close(self) -> None:
        """Keep the socket open: the answer is still read from it, and `drop` closes it."""

    def _wait_no_longer(self) -> None:
        left = self._client.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.socket.settimeout(left)


class _Reader(io.RawIOBase):
    def __init__(self, line: _Line) -> None:
        super().__init__()
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._line.read_into(buffer)
