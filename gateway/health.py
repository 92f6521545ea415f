"""Answers the supervisor's health check in front of Django.

The status says that this process takes requests, and nothing about the database, so that neither
the supervisor nor a load balancer gives up a web server for a failure of another process; the body
says whether the cluster can be changed, as the agent tells it. It is answered outside of
Django because it must not depend on Django's settings: the allowed hosts of the console would
refuse the supervisor, which connects by address.

Django is loaded once the agent has written the files of the home that its settings need.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gateway.middleware import HEADERS, UNLESS_SAID

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

log: Final = logging.getLogger(__name__)
PATH: Final = "/health"
WAITING: Final = b'{"status": "waiting for the agent"}'
METHODS: Final = frozenset({"GET", "HEAD"})


class Door:
    """An ASGI application. Belongs to one event loop."""

    def __init__(
        self,
        *,
        load: Callable[[], Application],
        missing: Callable[[], Sequence[Path]],
        trouble: Callable[[], str] = lambda: "",
    ) -> None:
        self._load = load
        self._missing = missing
        self._trouble = trouble
        self._application: Application | None = None
        # An error in the settings is logged once; the supervisor then stops the failing process.
        self._has_failed = False
        if absent := missing():
            log.warning(
                "waits for %s, which the agent writes once the database answers",
                ", ".join(map(str, absent)),
            )
        else:
            # Before the socket is served, so that an error in the settings ends the process.
            self._application = load()

    @property
    def is_loaded(self) -> bool:
        return self._application is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._application is None and not self._has_failed and not self._missing():
            self._has_failed = True
            # Blocks the loop for half a second, once, while nothing else is served yet.
            self._application = self._load()
            self._has_failed = False
        if not self.is_loaded and scope["type"] != "http":
            # A browser's socket; closing it makes the browser reconnect.
            return
        is_health = scope["type"] == "http" and scope["path"] == PATH
        if is_health and scope["method"] not in METHODS:
            await _answer(scope["method"], 405, b"", send)
        elif is_health or self._application is None:
            status, body = (200, self._said()) if self.is_loaded else (503, WAITING)
            await _answer(scope["method"], status, body, send)
        else:
            await self._application(scope, receive, send)

    def _said(self) -> bytes:
        """Return that this process serves, and whether the cluster can be changed."""
        trouble = self._trouble()
        reason = {"reason": trouble} if trouble else {}
        status = "degraded" if trouble else "ok"
        return json.dumps({"status": status, "can_change": not trouble, **reason}).encode()


async def _answer(method: str, status: int, body: bytes, send: Send) -> None:
    headers = {
        **HEADERS,
        **UNLESS_SAID,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **({"Allow": "GET, HEAD"} if status == 405 else {}),
    }
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})
