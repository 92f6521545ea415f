"""Serves the collector's pages over HTTP, on a unix socket and optionally on a TCP address.

Knows no page. The socket belongs to the owner of the home and its mode protects it; on an address,
every page but `/health` requires the metrics key.
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import Final

from brokers.clock import Clock
from brokers.http.server import Exchange, Limits, Page, Request, Server, refusal
from console.monitoring.pages import Query

LIMITS: Final = Limits(
    # Web servers, each with one following thread and some requests; a Prometheus, an operator.
    connections=64,
    fields=20,
    page_seconds=30.0,
)
HEALTH: Final = "/health"

Ask = Callable[[str, Query], Awaitable[Page]]
Keys = Callable[[], tuple[str, ...]]


def make_server(ask: Ask, keys: Keys, clock: Clock) -> Server:
    async def answer(request: Request, exchange: Exchange) -> None:
        await exchange.send(await page(request, exchange))

    async def page(request: Request, exchange: Exchange) -> Page:
        if request.method != "GET":
            return refusal(405, f"{request.method} is not served")
        if not exchange.is_private and request.path != HEALTH:
            if not _has_key(request, keys()):
                return refusal(401, "show the metrics key: Authorization: Bearer KEY")
            exchange.admit()
        return await ask(request.path, {name: values[-1] for name, values in request.query.items()})

    return Server(answer, limits=LIMITS, clock=clock)


def _has_key(request: Request, keys: tuple[str, ...]) -> bool:
    return any(
        hmac.compare_digest(value, f"Bearer {key}".encode())
        for value in request.authorization[:1]
        for key in keys
    )
