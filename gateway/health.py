"""The sign of life that the supervisor waits for, answered before Django.

It says that this process takes requests, and nothing of the database, so that the supervisor does
not restart a web server for what another process lacks. Answered outside of Django because it must
not depend on a setting of Django's: with the names in `SAMSA_ALLOWED_HOSTS`, Django would refuse
the supervisor, which asks by address.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from gateway.middleware import HEADERS, UNLESS_SAID

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH: Final = "/health"
OK: Final = b'{"status": "ok"}'
METHODS: Final = frozenset({"GET", "HEAD"})


def with_health(application: Application) -> Application:
    """Return an ASGI application that answers PATH itself and passes on all else."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH:
            await _answer(scope["method"], send)
        else:
            await application(scope, receive, send)

    return serve


async def _answer(method: str, send: Send) -> None:
    is_served = method in METHODS
    headers = {
        **HEADERS,
        **UNLESS_SAID,
        "Content-Type": "application/json",
        "Content-Length": str(len(OK) if is_served else 0),
        **({} if is_served else {"Allow": "GET, HEAD"}),
    }
    await send(
        {
            "type": "http.response.start",
            "status": 200 if is_served else 405,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": OK if method == "GET" else b""})
