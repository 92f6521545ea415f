"""Allows pages of other sites to call, from an allowlist, and answers CORS preflight requests.

Wraps the programmatic interfaces on either port. A page of a foreign origin sends a token, never
the console's cookie, so no answer ever allows browser credentials.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from gateway.rest.calls import Message, Receive, Scope, Send, headers_of
from gateway.rest.codes import ApiError, Code

METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
HEADERS: Final = "authorization, content-type, accept"
EXPOSED: Final = "Retry-After, Content-Location, Location"
# How long a browser caches the answer: a changed list takes effect within minutes.
MAX_AGE_SECONDS: Final = 600
# The messages of an answer: to a call, and to the handshake of a socket.
CALL: Final = "http.response"
HANDSHAKE: Final = "websocket.http.response"


class Origins:
    """ASGI middleware. `applies` selects the programmatic calls."""

    def __init__(
        self,
        application: Callable[[Scope, Receive, Send], Awaitable[None]],
        allowed: Collection[str],
        *,
        applies: Callable[[Scope], bool] = lambda _scope: True,
    ) -> None:
        self._application = application
        self._allowed = frozenset(allowed)
        self._applies = applies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"} or not self._applies(scope):
            await self._application(scope, receive, send)
            return
        headers = headers_of(scope)
        origin = headers.get("origin", "")
        if not origin or is_own(origin, headers):
            await self._application(scope, receive, send)
        elif origin not in self._allowed:
            await _refuse(scope, send, origin)
        elif scope["type"] == "websocket":
            await self._application(scope, receive, send)
        elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _preflight(send, origin)
        else:
            await self._application(scope, receive, _allowing(send, origin))


def is_own(origin: str, headers: Mapping[str, str]) -> bool:
    """Tell whether an origin is the address that the call was sent to."""
    try:
        return urlsplit(origin).netloc == headers.get("host", "")
    except ValueError:
        # A client can send an invalid URL.
        return False


async def _preflight(send: Send, origin: str) -> None:
    told = {
        **_grants(origin),
        "access-control-allow-methods": METHODS,
        "access-control-allow-headers": HEADERS,
        "access-control-max-age": str(MAX_AGE_SECONDS),
    }
    await _answer(send, 204, told, b"")


async def _refuse(scope: Scope, send: Send, origin: str) -> None:
    shown = "".join(sign if sign.isprintable() else "?" for sign in origin[:200])
    error = ApiError(
        Code.NOT_ALLOWED,
        f"pages of {shown} may not call this server: its administrator must add the origin to "
        "SAMSA_ALLOWED_ORIGINS",
    )
    await _answer(
        send,
        error.code.status,
        {"content-type": "application/json", "vary": "Origin"},
        error.body(),
        kind=HANDSHAKE if scope["type"] == "websocket" else CALL,
    )


def _allowing(send: Send, origin: str) -> Send:
    async def allowing(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = {**_grants(origin), "access-control-expose-headers": EXPOSED}
            message = {**message, "headers": [*message["headers"], *_encoded(added)]}
        await send(message)

    return allowing


def _grants(origin: str) -> dict[str, str]:
    return {"access-control-allow-origin": origin, "vary": "Origin"}


async def _answer(
    send: Send, status: int, headers: Mapping[str, str], body: bytes, *, kind: str = CALL
) -> None:
    always = {"content-length": str(len(body)), "x-content-type-options": "nosniff"}
    told: list[Any] = [*_encoded(headers), *_encoded(always)]
    await send({"type": f"{kind}.start", "status": status, "headers": told})
    await send({"type": f"{kind}.body", "body": body})


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
