"""Serves Kafka Connect's REST at the root of its own port, where its tools expect it.

A second socket of the web server instead of a process: a call there gets the prefix that the same
paths have beside the console.
"""

from gateway.health import Application, Receive, Scope, Send
from gateway.rest.route import CONNECT

# Marks the scope of a call on this port, so that URLs in its answer match.
AT_ROOT = "samsa.connect"


class ConnectPort:
    """ASGI middleware."""

    def __init__(self, application: Application) -> None:
        self._application = application
        # The socket's port; 0 if there is none.
        self.port = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = scope.get("server")
        if self.port and server is not None and server[1] == self.port:
            scope = moved(scope)
        await self._application(scope, receive, send)


def moved(scope: Scope) -> Scope:
    """Return a call at the root as the same call below the prefix."""
    raw = scope.get("raw_path")
    found = {**scope, "path": f"{CONNECT}{scope['path']}", AT_ROOT: True}
    if raw is not None:
        found["raw_path"] = CONNECT.encode() + raw
    return found
