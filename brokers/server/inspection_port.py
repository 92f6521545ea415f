"""Serves the inspection port, by which operators and the console inspect a broker over HTTP.

Knows pages, but not their contents. A reader must send a key of the cluster, except for `/health`,
which only answers yes or no; a key for metrics opens `/metrics` only.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from brokers.http.server import Exchange, Limits, Page, Request, Server, refusal
from brokers.search.question import MAX_QUESTION_BYTES
from brokers.server.context import Context
from brokers.server.feed import Feed
from brokers.server.group_metrics import GroupMetrics
from brokers.server.inspection_keys import METRICS, InspectionKeys
from brokers.server.inspection_times import places_of, times_of
from brokers.server.logs import Log
from brokers.server.metrics import render
from brokers.server.searches import Searches, SearchRefused

# A console, a Prometheus, a person or two.
MAX_CONNECTIONS: Final = 32
# Mostly a list of places, which `inspection_times` limits further.
MAX_FIELDS: Final = 1_000
PAGE_SECONDS: Final = 60.0

_METRICS_KIND: Final = "text/plain; version=0.0.4; charset=utf-8"
_JSON: Final = "application/json"
_LINES: Final = "application/x-ndjson"

HEALTH: Final = "/health"
SEARCH: Final = "/search"

Query = Mapping[str, Sequence[str]]


class InspectionPort:
    """Belongs to the event loop."""

    def __init__(self, context: Context, *, keys: InspectionKeys, log: Log) -> None:
        self.port = 0
        self._context = context
        self._keys = keys
        self._feed = Feed(context)
        self._group_metrics = GroupMetrics(context)
        self._searches = Searches(context)
        self._server = Server(
            self._answer,
            limits=Limits(
                connections=MAX_CONNECTIONS,
                fields=MAX_FIELDS,
                page_seconds=PAGE_SECONDS,
                body_bytes=MAX_QUESTION_BYTES,
            ),
            clock=context.clock,
            on_failure=lambda error: log.limited(
                "inspection.failed", type(error).__name__, error=error
            ),
        )
        self._pages: dict[str, Callable[[Query], Awaitable[Page]]] = {
            METRICS: self._metrics,
            "/feed": self._steps,
            HEALTH: self._health,
            "/inspect/times": self._times,
        }

    async def open(self, host: str, port: int) -> None:
        """Open the port; OSError if it cannot be bound."""
        self.port = await self._server.open_address(host, port)

    async def close(self) -> None:
        self._feed.close()
        await self._server.close()

    async def _answer(self, request: Request, exchange: Exchange) -> None:
        if (request.method, request.path) == ("POST", SEARCH):
            await self._search(request, exchange)
        else:
            await exchange.send(await self._page(request, exchange))

    def _refusal(self, request: Request, exchange: Exchange) -> Page | None:
        """Return why the reader may not have a page; None if it may, and may stay connected."""
        refused = self._keys.refusal(request.path, request.authorization)
        if refused is not None:
            return refusal(*refused)
        exchange.admit()
        return None

    async def _search(self, request: Request, exchange: Exchange) -> None:
        refused = self._refusal(request, exchange)
        if refused is None and request.body is None:
            refused = refusal(413, f"a question may have {MAX_QUESTION_BYTES} bytes")
        if refused is None:
            assert request.body is not None, "a question without a body is refused"
            try:
                async with self._searches.answer(request.body) as lines:
                    await exchange.stream(_LINES, lines)
                    return
            except SearchRefused as error:
                refused = refusal(error.status, str(error))
        await exchange.send(refused)

    async def _page(self, request: Request, exchange: Exchange) -> Page:
        page = self._pages.get(request.path)
        if request.path == SEARCH:
            return refusal(405, "a search is asked for by POST, with a question in JSON")
        if page is None:
            known = ", ".join((*self._pages, SEARCH))
            return refusal(404, f"there is no {request.path!r} here; try {known}")
        if request.method != "GET":
            return refusal(405, f"{request.method} is not served")
        if request.path != HEALTH:
            refused = self._refusal(request, exchange)
            if refused is not None:
                return refused
        return await page(request.query)

    async def _metrics(self, _query: Query) -> Page:
        metrics = self._context.metrics
        await self._group_metrics.refresh()
        metrics.tasks = len(asyncio.all_tasks())
        return Page(200, _METRICS_KIND, render(metrics))

    async def _health(self, _query: Query) -> Page:
        if self._context.is_serving:
            return Page(200, _JSON, iter(['{"serving": true}\n']))
        return Page(503, _JSON, iter(['{"serving": false}\n']))

    async def _steps(self, query: Query) -> Page:
        since = query.get("since", ["0"])[-1]
        if not since.isdecimal() or len(since) > 18:
            return refusal(400, f"since={since!r} is not the number of a step")
        return Page(200, _JSON, await self._feed.read(query.get("run", [""])[-1], int(since)))

    async def _times(self, query: Query) -> Page:
        try:
            places = places_of(query.get("at", []))
        except ValueError as error:
            return refusal(400, str(error))
        return Page(200, _JSON, await times_of(self._context, places))
