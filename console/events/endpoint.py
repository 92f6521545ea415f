"""`/events`: one stream of server-sent events per tab, as a bare ASGI application.

Not a Django view, because each of those occupies a thread for as long as it answers. `arrivals`
does what Django does for a view: it reads host and cookies by Django's request class, and the
session once in a thread.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs

from console.events.arrivals import Arrivals, Asker, Receive, Refused, Scope, Send, head, left
from console.events.hub import (
    MAX_TOPICS_PER_STREAM,
    Hub,
    NotServing,
    Owner,
    Stream,
    TooManyStreams,
)
from console.events.topics import KINDS, is_topic, may_hear

log: Final = logging.getLogger(__name__)
PATH: Final = "/events"
# A page that misses three of these says that it is not connected (`SILENT_MS` of stream.js). An
# event and no comment, because pages do not receive comments.
BEAT_SECONDS: Final = 3.0
BEAT: Final = b"event: beat\ndata: 1\n\n"
# A tab whose connection accepts nothing for this long has gone, or is no browser.
CUT_SECONDS: Final = 60.0
# When a tab reconnects after the stream has ended: spread, to avoid a rush.
RETRY_MS: Final = (1_000, 4_000)
# The longest list of topics with every character escaped, and the rest of the query.
MAX_QUERY_LENGTH: Final = 16_384


class Endpoint:
    """An ASGI application. Belongs to one event loop."""

    def __init__(
        self, hub: Hub, asker: Asker, *, beat_s: float = BEAT_SECONDS, cut_s: float = CUT_SECONDS
    ) -> None:
        self._hub = hub
        self._asker = asker
        self._arrivals = Arrivals(asker)
        self._beat_s = beat_s
        self._cut_s = cut_s

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
        owner = await self._arrivals.owner_of(scope)
        for topic in topics:
            if not may_hear(owner.rights, topic):
                raise Refused(403, f"you may not view {topic}; an admin can give you that right")
        return owner

    async def _serve(self, stream: Stream, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(_end_when_left(stream, receive))
        try:
            await send(head(200, b"text/event-stream"))
            await self._write(send, b"retry: %d\n\n" % _retry_ms())
            while not stream.ended:
                values = await stream.take(patience_s=self._beat_s)
                if not stream.ended:
                    await self._write(send, written(values) if values else BEAT)
            # The page shows the reason, and reconnects automatically if that can help.
            await self._write(send, b"event: end\ndata: %s\n\n" % stream.ended.encode())
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            log.info("events.stream_cut user_id=%s seconds=%g", stream.owner.user_id, self._cut_s)
        finally:
            leaving.cancel()

    async def _write(self, send: Send, body: bytes) -> None:
        """Send, waiting for a slow connection. Raises TimeoutError if it accepts nothing."""
        async with asyncio.timeout(self._cut_s):
            await send({"type": "http.response.body", "body": body, "more_body": True})


def wanted_topics(scope: Scope) -> list[str]:
    """Return the topics in a request's query."""
    if scope["method"] != "GET":
        raise Refused(405, f"{scope['method']} is not answered here; use GET")
    query = scope.get("query_string", b"")
    if len(query) > MAX_QUERY_LENGTH:
        raise Refused(400, f"the query has {len(query)} bytes; at most {MAX_QUERY_LENGTH} fit")
    found = parse_qs(query.decode("ascii", "replace")).get("topic", [])
    if not 1 <= len(found) <= MAX_TOPICS_PER_STREAM:
        raise Refused(400, f"{len(found)} topics asked for; 1 to {MAX_TOPICS_PER_STREAM} can be")
    for topic in found:
        if not is_topic(topic):
            raise Refused(400, f"{topic[:64]!r} is not a topic of {', '.join(KINDS)}:NAME")
    return found


def written(values: Mapping[str, str]) -> bytes:
    """Return values as events; the kind of a topic is the name of its event."""
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (topic.partition(":")[0].encode(), value.encode())
        for topic, value in values.items()
    )


async def _end_when_left(stream: Stream, receive: Receive) -> None:
    await left(receive)
    stream.end("left")


def _retry_ms() -> int:
    low, high = RETRY_MS
    return low + secrets.randbelow(high - low)


async def _refuse(send: Send, status: int, reason: str) -> None:
    await send(head(status, b"text/plain; charset=utf-8"))
    await send({"type": "http.response.body", "body": f"{reason}\n".encode()})
