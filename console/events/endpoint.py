"""`/events`: one stream of server-sent events per tab, as a bare ASGI application.

Not a view of Django's, because each of those holds a thread for as long as it answers. What a view
would be given is asked for here: the host and the cookies by Django's own request, the session once
in a thread.
"""

import asyncio
import io
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import Error

from console.events.hub import (
    MAX_TOPICS_PER_STREAM,
    Hub,
    NotServing,
    Owner,
    Stream,
    TooManyStreams,
)
from console.events.topics import KINDS, is_topic, may_hear

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

log: Final = logging.getLogger(__name__)
PATH: Final = "/events"
# Proxies give up on a silent connection after 30 to 60 s, and a page that hears nothing for two of
# these calls itself stale. An event and no comment, because a page cannot hear comments.
BEAT_SECONDS: Final = 15.0
BEAT: Final = b"event: beat\ndata: 1\n\n"
# A tab whose connection takes nothing for so long is gone, or is no browser.
CUT_SECONDS: Final = 60.0
# When a tab comes back after the stream has ended: spread, so that they do not all come at once.
RETRY_MS: Final = (1_000, 4_000)
# What a browser is told to wait where a limit is reached.
BUSY_SECONDS: Final = 30
# Sessions that wait for the thread that looks them up: with more, the database does not answer.
MAX_ARRIVING: Final = 200
# A list of topics as long as it may be, every character escaped, and the rest of the query.
MAX_QUERY_LENGTH: Final = 16_384


class Asker(Protocol):
    """Asks the database for the streams."""

    async def owner_of(self, cookies: dict[str, str]) -> Owner | None: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...


class Refused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Endpoint:
    """An ASGI application. Belongs to one event loop."""

    def __init__(
        self, hub: Hub, asker: Asker, *, beat_s: float = BEAT_SECONDS, cut_s: float = CUT_SECONDS
    ) -> None:
        self._hub = hub
        self._asker = asker
        self._beat_s = beat_s
        self._cut_s = cut_s
        self._arriving = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            topics = wanted_topics(scope)
            stream = self._hub.open(await self._owner(scope, topics), topics)
        except Refused as refused:
            await _refuse(send, refused.status, str(refused))
        except TooManyStreams as limit:
            await _refuse(send, 429, str(limit))
        except NotServing as reason:
            await _refuse(send, 503, str(reason))
        else:
            self._asker.begin()
            try:
                await self._serve(stream, receive, send)
            finally:
                self._hub.close(stream)
                self._asker.end()

    async def _owner(self, scope: Scope, topics: Sequence[str]) -> Owner:
        cookies = same_site_cookies(scope)
        if self._arriving >= MAX_ARRIVING:
            raise Refused(503, f"{MAX_ARRIVING} event streams wait for the database already")
        self._arriving += 1
        try:
            owner = await self._asker.owner_of(cookies)
        except Error:
            raise Refused(503, "the database does not answer") from None
        finally:
            self._arriving -= 1
        if owner is None:
            raise Refused(401, "sign in first")
        for topic in topics:
            if not may_hear(owner.rights, topic):
                raise Refused(403, f"you may not view {topic}; an admin can give you that right")
        return owner

    async def _serve(self, stream: Stream, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(_end_when_left(stream, receive))
        try:
            await send(_start(200, b"text/event-stream"))
            await self._write(send, b"retry: %d\n\n" % _retry_ms())
            while not stream.ended:
                values = await stream.take(patience_s=self._beat_s)
                if not stream.ended:
                    await self._write(send, written(values) if values else BEAT)
            # The page shows why, and comes back by itself where that can help.
            await self._write(send, b"event: end\ndata: %s\n\n" % stream.ended.encode())
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            log.info("events.stream_cut user_id=%s seconds=%g", stream.owner.user_id, self._cut_s)
        finally:
            leaving.cancel()

    async def _write(self, send: Send, body: bytes) -> None:
        """Send, as far as the connection takes it; TimeoutError where it takes nothing."""
        async with asyncio.timeout(self._cut_s):
            await send({"type": "http.response.body", "body": body, "more_body": True})


def wanted_topics(scope: Scope) -> list[str]:
    """Return the topics of a request's query."""
    if scope["method"] != "GET":
        raise Refused(405, f"{scope['method']} is not answered here; use GET")
    query = scope.get("query_string", b"")
    if len(query) > MAX_QUERY_LENGTH:
        raise Refused(400, f"the query has {len(query)} bytes, {MAX_QUERY_LENGTH} fit")
    found = parse_qs(query.decode("ascii", "replace")).get("topic", [])
    if not 1 <= len(found) <= MAX_TOPICS_PER_STREAM:
        raise Refused(400, f"{len(found)} topics asked for; 1 to {MAX_TOPICS_PER_STREAM} can be")
    for topic in found:
        if not is_topic(topic):
            raise Refused(400, f"{topic[:64]!r} is no topic of {', '.join(KINDS)}:NAME")
    return found


def written(values: Mapping[str, str]) -> bytes:
    """Return values as events; the kind of a topic is the name of its event."""
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (topic.partition(":")[0].encode(), value.encode())
        for topic, value in values.items()
    )


def same_site_cookies(scope: Scope) -> dict[str, str]:
    """Return the cookies of a request from a page of this console, made by one of its names."""
    request = ASGIRequest(scope, io.BytesIO())
    try:
        request.get_host()
    except DisallowedHost:
        raise Refused(400, "this console does not answer to that name") from None
    # Another site's page could open streams with this browser's cookie and use up their number;
    # browsers say where a request comes from.
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        raise Refused(403, "this address is for pages of this console")
    return dict(request.COOKIES)


async def _end_when_left(stream: Stream, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.end("left")


def _retry_ms() -> int:
    low, high = RETRY_MS
    return low + secrets.randbelow(high - low)


def _start(status: int, content_type: bytes, *more: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [
            (b"content-type", content_type),
            # A proxy that collects an answer would keep a stream to itself.
            (b"x-accel-buffering", b"no"),
            *more,
        ],
    }


async def _refuse(send: Send, status: int, reason: str) -> None:
    more = [(b"retry-after", b"%d" % BUSY_SECONDS)] if status in {429, 503} else []
    more += [(b"allow", b"GET")] if status == 405 else []
    await send(_start(status, b"text/plain; charset=utf-8", *more))
    await send({"type": "http.response.body", "body": f"{reason}\n".encode()})
