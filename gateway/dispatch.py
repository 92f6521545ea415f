"""Sends requests past Django to bare ASGI applications, by their address.

For what Django cannot serve: an answer that stays open would hold one of its threads, and a body
that never ends would never reach a view.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from gateway.health import Application, Message, Receive, Scope, Send
from gateway.middleware import HEADERS, UNLESS_SAID
from gateway.rest.calls import JSON, BrokenOff, too_large
from gateway.rest.codes import ApiError, Code

# The largest form of the console is a megabyte, as is the largest body that a view of REST takes.
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
# All of such a body comes within this, or is not waited for.
BODY_SECONDS: Final = 60.0


class Calls(Protocol):
    """The calls of programs."""

    def find(self, scope: Scope) -> Application | None:
        """Return who serves a request; None where Django does."""
        ...

    def find_own(self, scope: Scope) -> Application:
        """Return who serves a request that came by the process's own socket."""
        ...


class Dispatch:
    """An ASGI application.

    `bare` is by path. Below the prefixes in `quoted` Django gets the path as it was sent, so that
    a name with a slash in it (`a%2Fb`) stays one name; its views unquote what they find.
    """

    def __init__(
        self,
        bare: Mapping[str, Application],
        *,
        calls: Calls,
        quoted: Sequence[str] = (),
        otherwise: Application,
    ) -> None:
        self._bare = bare
        self._calls = calls
        self._quoted = quoted
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"
        if is_own(scope):
            application: Application | None = self._calls.find_own(scope)
        elif is_http and scope["path"] in self._bare:
            application = self._bare[scope["path"]]
        else:
            application = self._calls.find(scope)
        if application is not None:
            await application(scope, receive, with_headers(send) if is_http else send)
        elif is_http:
            await self._within(self._as_sent(scope), receive, send)
        else:
            # Nobody speaks there: a handshake that is closed is answered 403.
            await send({"type": "websocket.close", "code": 1000})

    async def _within(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve by Django, which writes a body to the disk before a view asks who sends it.

        For Django a body that is refused is one whose sender has left: it lets go of what it has.
        """
        taken = 0
        is_whole = False
        refused: ApiError | None = None
        loop = asyncio.get_running_loop()
        end = loop.time() + BODY_SECONDS

        async def counted() -> Message:
            nonlocal taken, is_whole, refused
            # After the body only the client's leaving is waited for.
            try:
                async with asyncio.timeout_at(None if is_whole else end):
                    message = await receive()
            except TimeoutError:
                refused = ApiError(
                    Code.TIMED_OUT,
                    f"the body did not arrive within {BODY_SECONDS:g} s: send it again",
                )
                return {"type": "http.disconnect"}
            taken += len(message.get("body", b""))
            is_whole = not message.get("more_body")
            if taken > MAX_BODY_BYTES:
                refused = too_large(taken, MAX_BODY_BYTES)
                return {"type": "http.disconnect"}
            return message

        with suppress(BrokenOff):
            # The server closes the connection of an answer without an end.
            await self._otherwise(scope, counted, send)
        if refused is not None:
            head: dict[str, Any] = {"type": "http.response.start", "status": refused.code.status}
            head["headers"] = [(b"content-type", JSON.encode())]
            await with_headers(send)(head)
            await send({"type": "http.response.body", "body": refused.body()})

    def _as_sent(self, scope: Scope) -> Scope:
        path: str = scope["path"]
        raw: bytes | None = scope.get("raw_path")
        if raw is None or not any(is_below(path, prefix) for prefix in self._quoted):
            return scope
        return {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}


def is_own(scope: Scope) -> bool:
    """Tell whether a request came by the process's own socket, to which only its user may speak."""
    server = scope.get("server")
    # A unix socket has a path and no port.
    return server is not None and server[1] is None


def is_below(path: str, prefix: str) -> bool:
    return not prefix or path == prefix or path.startswith(f"{prefix}/")


def with_headers(send: Send) -> Send:
    """Add the headers of every answer, which Django's middleware adds to its own."""
    added = [
        (name.lower().encode(), value.encode())
        for name, value in {**HEADERS, **UNLESS_SAID}.items()
    ]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return send_with_headers
