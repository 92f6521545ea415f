"""The client's side of HTTP/1.1 on one connection: bytes in, bytes out, no I/O.

Reads are tried: each returns None until `receive` has brought enough bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import h11

# Status line and headers; Connect workers of others send long ones.
MAX_HEAD_BYTES: Final = 65_536


class NoResponse(Exception):
    """There is no response, or not a whole one; the message says why."""


class ConnectionDropped(NoResponse):
    """The connection ended before the first byte of a response, as an idle one may."""


class ResponseTooLarge(NoResponse):
    """The body has more bytes than the caller takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The beginning of a response. `headers` are by name in lower case, the last of each."""

    status: int
    headers: Mapping[str, str]


class ClientProtocol:
    """One request at a time, each with its response."""

    def __init__(self, authority: str) -> None:
        self._authority = authority
        self._connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._has_received = False

    def begin(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        is_open: bool = False,
    ) -> bytes:
        """Return the bytes of a request; of one that is open, `end` returns the last."""
        if self._connection.our_state is h11.DONE:
            self._connection.start_next_cycle()
        self._has_received = False
        sent = {"Host": self._authority, "Accept-Encoding": "identity", **headers}
        if is_open:
            sent["Transfer-Encoding"] = "chunked"
        elif body is not None or method in {"POST", "PUT", "PATCH"}:
            sent["Content-Length"] = str(len(body or b""))
        # Values may come from the caller of a caller.
        pairs = [
            (name.encode(), value.strip().encode("latin-1", "replace"))
            for name, value in sent.items()
        ]
        try:
            head = self._connection.send(h11.Request(method=method, target=target, headers=pairs))
            data = self._connection.send(h11.Data(data=body)) if body else b""
            return (head or b"") + (data or b"") + (b"" if is_open else self.end())
        except h11.LocalProtocolError as error:
            raise NoResponse(f"the request cannot be sent: {error}") from error

    def end(self) -> bytes:
        """Return the end of a request that is open."""
        return self._connection.send(h11.EndOfMessage()) or b""

    def receive(self, data: bytes) -> None:
        """Take bytes of the server; none mean that it has ended the connection."""
        if not data and not self._has_received:
            raise self.explain_end("Remote end closed connection without response")
        self._has_received = True
        self._connection.receive_data(data)

    def explain_end(self, why: str) -> NoResponse:
        """Return the error for a connection that ended by itself."""
        return NoResponse(why) if self._has_received else ConnectionDropped(why)

    def read_head(self) -> Head | None:
        while True:
            event = self._next_event()
            if event is h11.NEED_DATA:
                return None
            if isinstance(event, h11.Response):
                headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
                return Head(status=event.status_code, headers=headers)
            # An interim response, such as 100 Continue, precedes the final one.

    def read_piece(self) -> bytes | None:
        """Return the next bytes of the body; empty at its end."""
        event = self._next_event()
        if event is h11.NEED_DATA:
            return None
        return event.data if isinstance(event, h11.Data) else b""

    @property
    def is_reusable(self) -> bool:
        """Whether the connection may carry another request after this response."""
        connection = self._connection
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    def _next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        try:
            event = self._connection.next_event()
        except h11.RemoteProtocolError as error:
            raise NoResponse(f"malformed response: {error}") from error
        assert not isinstance(event, type) or event is h11.NEED_DATA, "one response to a request"
        return event
