"""The web server's process: uvicorn on the socket that the supervisor has bound.

Ours and not `python -m uvicorn`, for two things: event streams end before uvicorn waits for answers
that are under way, which they would be for ever, and a browser that vanished is found out.
"""

import socket
from collections.abc import Callable
from typing import Final

import uvicorn

APPLICATION: Final = "gateway.asgi:application"
# How long a connection may leave bytes untaken, or unconfirmed, before the kernel ends it: as long
# as `console.events.endpoint` waits. Without it a browser whose machine is gone keeps its stream
# for a quarter of an hour, and one that never reads keeps it for ever.
UNTAKEN_MS: Final = 60_000
# After so much silence the kernel asks whether the other side is there. Connections that wait for
# a request send nothing by themselves.
SILENCE_SECONDS: Final = 60


class Server(uvicorn.Server):
    """uvicorn's server, which lets its event streams go first."""

    def __init__(self, config: uvicorn.Config, *, drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._drain = drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._drain()
        await super().shutdown(sockets)


def run(descriptor: int, *, grace_s: int) -> None:
    # First, because it sets up the log.
    config = uvicorn.Config(
        APPLICATION,
        access_log=False,
        lifespan="off",
        # Nobody stands in front of it: who says whom a request comes from would be believed.
        proxy_headers=False,
        timeout_graceful_shutdown=grace_s,
    )
    # Loads Django.
    from gateway import asgi  # noqa: PLC0415

    Server(config, drain=asgi.drain).run([listening(descriptor)])


def listening(descriptor: int, *, untaken_ms: int = UNTAKEN_MS) -> socket.socket:
    """Return the inherited socket; connections take over what is set on it."""
    listener = socket.socket(fileno=descriptor)
    if listener.family in {socket.AF_INET, socket.AF_INET6}:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENCE_SECONDS)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, untaken_ms)
    return listener
