"""Defines one bare ASGI call: its request, and its answer in one piece or many.

All input has a limit that its reader names. Knows no Django.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

from gateway.access.callers import Caller
from gateway.access.operations import Kind, Operation
from gateway.rest.codes import ApiError, Code
from gateway.rest.gate import require

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

JSON: Final = "application/json"
# In the scope of a call to a view: its Caller, or the ApiError by which that is refused.
CALLER: Final = "samsa.caller"
# In the scope of a call on the process's own socket: the name of the user who calls, if that is the
# owner of the home.
HOST_USER: Final = "samsa.host_user"
# In the scope of a socket: to be called once its caller is known.
LET_IN: Final = "samsa.let_in"
# Names and values of a query together; no query of these interfaces is longer.
MAX_QUERY: Final = 8_192
MAX_FIELDS: Final = 50


class Gone(Exception):
    """The client has disconnected while sending."""


class BrokenOff(Exception):
    """A started answer cannot be completed: its connection is closed in the middle."""


class Call:
    """A call, for one task. Start an answer once, and end it."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        caller: Caller,
        cluster_id: str,
        parameters: Mapping[str, str],
    ) -> None:
        self.scope = scope
        self.caller = caller
        self.cluster_id = cluster_id
        self.parameters = parameters
        self.method: str = scope["method"]
        self.headers = headers_of(scope)
        self.is_started = False
        self.status = 0
        # Counted for the caller when the call is over.
        self.records = 0
        self.errors = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self._receive = receive
        self._send = send
        self._is_read = False
        # Nothing of the body is left to be received.
        self.is_whole = False

    @property
    def origin(self) -> str:
        """Return the scheme and host by which the client names this server."""
        host = self.headers.get("host") or own_address(self.scope)
        return f"{self.scope.get('scheme', 'http')}://{host}"

    def query(self) -> dict[str, str]:
        """Return the query's fields; the last value of a repeated name wins."""
        raw: bytes = self.scope.get("query_string", b"")
        if len(raw) > MAX_QUERY:
            raise ApiError(
                Code.BAD_REQUEST, f"the query has {len(raw)} bytes; at most {MAX_QUERY} fit"
            )
        try:
            text = raw.decode("ascii")
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS))
        except ValueError as error:
            raise ApiError(Code.BAD_REQUEST, f"the query cannot be read: {error}") from None

    def require(self, operation: Operation, kind: Kind, name: str = "") -> None:
        """Raise ApiError if the caller may not do this; for names that no path has."""
        require(self.caller, self.cluster_id, operation, kind, name)

    async def body(self, limit: int) -> bytes:
        """Return the whole body, which another worker sends; a larger one is refused."""
        declared = declared_by(self.headers)
        if declared is not None and declared > limit:
            raise too_large(declared, limit)
        found = bytearray()
        async for piece in self.pieces():
            found += piece
            if len(found) > limit:
                raise too_large(len(found), limit)
        return bytes(found)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; raise Gone if the client disconnects before its end."""
        assert not self._is_read, "a body is read once"
        self._is_read = True
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            piece: bytes = message.get("body", b"")
            self.is_whole = not message.get("more_body")
            if piece:
                self.bytes_in += len(piece)
                yield piece
            if self.is_whole:
                return

    async def left(self) -> None:
        """Return when the client has disconnected; discard what it still sends."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def start(
        self, status: int, content_type: str, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        assert not self.is_started, "an answer starts once"
        self.is_started, self.status = True, status
        told = [("Content-Type", content_type), *headers]
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(name.lower().encode(), value.encode()) for name, value in told],
            }
        )

    async def write(self, piece: bytes) -> None:
        """Send a piece, waiting while a slow client takes it."""
        self.bytes_out += len(piece)
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def answer(
        self,
        status: int,
        value: object = None,
        *,
        content_type: str = JSON,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Answer in one piece: bytes unchanged, other values as JSON, None as an empty body."""
        body = b"" if value is None else value if isinstance(value, bytes) else dumped(value)
        await self.start(status, content_type, [*headers, ("Content-Length", str(len(body)))])
        self.bytes_out += len(body)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def fail(
        self, error: ApiError, *, content_type: str = JSON, number: int | None = None
    ) -> None:
        """Answer with an error; once an answer has started, an error can only end it.

        `number` is the code in the body where it is another than the error's own.
        """
        self.errors += 1
        if self.is_started:
            await self.end()
            return
        headers = error.headers(self.headers.get("sec-fetch-mode"))
        value = error.value() if number is None else {**error.value(), "error_code": number}
        await self.answer(error.code.status, value, content_type=content_type, headers=headers)


def headers_of(scope: Scope) -> dict[str, str]:
    """Return headers by lower-case name; the first value of a repeated name wins."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


def declared_by(headers: Mapping[str, str]) -> int | None:
    """Return the length of a body by its head, 0 without one; None if the head does not say."""
    if "transfer-encoding" in headers:
        return None
    declared = headers.get("content-length", "0")
    # Twenty digits are more than any limit.
    return int(declared[:20]) if declared.isascii() and declared.isdigit() else None


def own_address(scope: Mapping[str, Any]) -> str:
    """Return the host and port that a client has reached, for one that does not name them."""
    host, port = scope.get("server") or ("localhost", None)
    named = f"[{host}]" if ":" in host else host
    return f"{named}:{port}" if port else named


def dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def too_large(size: int, limit: int) -> ApiError:
    return ApiError(
        Code.TOO_LARGE,
        f"the body has {size} bytes or more; at most {limit} fit: send less in one call",
    )
