"""The addresses below `/messages/`, as a bare ASGI application.

Not views of Django's, because each of those holds a thread for as long as it answers, and collects
what it answers. Who asks is found out as for `/events`; the session, the rights and the hosts are
the same.

    GET /messages/stream?cluster=&topic=&partitions=0,3&mode=newest|oldest|offset|time|tail
        &from=&to=&limit=&filter=&key=auto&value=auto&cursor=  lines of JSON, application/x-ndjson
    GET /messages/export?...&form=ndjson|csv                                   the same as a file
    GET /messages/record?cluster=&topic=&partition=&offset=&part=key|value|header:0     its bytes
"""

import asyncio
import io
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import Final

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest

from console.events.arrivals import Arrivals, Asker, Receive, Refused, Scope, Send, head, left
from console.events.endpoint import CUT_SECONDS
from console.events.hub import Hub, NotServing, Owner, Stream, TooManyStreams
from console.messages import files, streams
from console.messages.jobs import Job, Means, Refusal, Visitor
from console.messages.lines import done_line
from console.messages.question import BadQuestion, Query
from console.preferences import preferences_of
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Resource, decide
from gateway.access.operations import Kind, Operation
from gateway.access.record_reader import RecordReader
from gateway.addresses import client_address
from gateway.kafka.readers.admission import Admission, admit
from gateway.kafka.readers.pipe import Pipe, Stopped

log: Final = logging.getLogger(__name__)
STREAM: Final = "/messages/stream"
EXPORT: Final = "/messages/export"
RECORD: Final = "/messages/record"
# Streams of a web process, each with a reading thread and a client of some 20 MB at most.
MAX_STREAMS: Final = 24
# Of one user: two windows side by side, with a tail and a search in each.
MAX_PER_USER: Final = 6
# How long an ended stream waits for its reading thread.
LAST_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path: what it needs beside the right to read, and the factory of its job."""

    needs: tuple[Operation, ...]
    job: Callable[[Means, Query, tzinfo, Visitor], Job]


ROUTES: Final[Mapping[str, Route]] = {
    STREAM: Route(needs=(), job=streams.stream),
    EXPORT: Route(needs=(Operation.EXPORT,), job=files.export),
    RECORD: Route(needs=(Operation.EXPORT,), job=files.part),
}


class Endpoint:
    """An ASGI application. Belongs to one event loop."""

    def __init__(
        self,
        hub: Hub,
        asker: Asker,
        means: Means,
        *,
        threads: Executor | None = None,
        cut_s: float = CUT_SECONDS,
    ) -> None:
        self._hub = hub
        self._asker = asker
        self._arrivals = Arrivals(asker)
        self._means = means
        self._threads = threads or ThreadPoolExecutor(MAX_STREAMS, thread_name_prefix="messages")
        self._cut_s = cut_s
        self._open: Counter[int] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            owner, job, admission = await self._admitted(scope)
            stream = self._opened(owner)
        except Refused as refused:
            await refuse(send, refused.status, str(refused), "")
        except BadQuestion as bad:
            await refuse(send, 400, bad.message, bad.next_step, position=bad.position)
        except TooManyStreams as limit:
            await refuse(send, 429, str(limit), "close another one, and try again")
        except NotServing as reason:
            await refuse(send, 503, str(reason), "try again in a moment")
        else:
            self._asker.begin()
            try:
                await self._serve(stream, job, admission, receive, send)
            finally:
                self._open[owner.user_id] -= 1
                self._hub.close(stream)
                self._asker.end()

    async def _admitted(self, scope: Scope) -> tuple[Owner, Job, Admission]:
        """Return the user and the admitted job. Raises for a missing right or an invalid query."""
        if scope["method"] != "GET":
            raise Refused(405, f"{scope['method']} is not answered here; use GET")
        route = ROUTES[scope["path"]]
        query = Query(scope.get("query_string", b""))
        owner = await self._arrivals.owner_of(scope)
        request = ASGIRequest(scope, io.BytesIO())
        peer = (scope.get("client") or ("",))[0]
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
        visitor = Visitor(
            user_id=owner.user_id, address=client_address(peer, forwarded, settings.TRUSTED_PROXIES)
        )
        job = route.job(self._means, query, preferences_of(request).zone, visitor)
        admission = admit(_reader_of(owner, job.cluster), [job.topic])
        for operation in route.needs:
            resource = Resource(kind=Kind.TOPIC, cluster=job.cluster, name=job.topic)
            decision = decide(owner.rights, operation, resource)
            if not decision.is_allowed:
                raise Refused(403, decision.reason)
        return owner, job, admission

    def _opened(self, owner: Owner) -> Stream:
        """Take a place; the hub ends the returned stream with the session, and with the process."""
        if self._open.total() >= MAX_STREAMS:
            raise TooManyStreams(f"this web server reads for {MAX_STREAMS} streams already")
        if self._open[owner.user_id] >= MAX_PER_USER:
            raise TooManyStreams(f"this user has {MAX_PER_USER} streams of records open")
        stream = self._hub.open(owner, ())
        self._open[owner.user_id] += 1
        return stream

    async def _serve(
        self, stream: Stream, job: Job, admission: Admission, receive: Receive, send: Send
    ) -> None:
        pipe = Pipe()
        work = asyncio.ensure_future(self._work(job, admission, pipe))
        watchers = [
            asyncio.create_task(_stop_when_left(pipe, receive)),
            asyncio.create_task(_stop_when_ended(pipe, stream)),
        ]
        try:
            await self._forward(job, pipe, work, send)
        except TimeoutError:
            log.info("messages.stream_cut user_id=%s seconds=%g", stream.owner.user_id, self._cut_s)
        finally:
            pipe.stop("the stream has ended")
            for watcher in watchers:
                watcher.cancel()
            # It notices within the tick of its reader; only then is its place free.
            await asyncio.wait([work], timeout=LAST_SECONDS)

    async def _work(self, job: Job, admission: Admission, pipe: Pipe) -> Refusal | None:
        """Do a job; its output ends with it."""
        loop = asyncio.get_running_loop()
        try:
            follow = await loop.run_in_executor(self._threads, job.work, admission, pipe)
            if follow is not None:
                await follow()
        except Refusal as refusal:
            return refusal
        except Stopped:
            return None
        except Exception:
            # An unexpected error must not look like an end: report it to the browser, and log it.
            log.exception("messages.job_failed topic=%r", job.topic)
            pipe.put_last(done_line("failed", "the web server failed; its log says why", None))
        finally:
            pipe.finish()
        return None

    async def _forward(
        self, job: Job, pipe: Pipe, work: "asyncio.Future[Refusal | None]", send: Send
    ) -> None:
        """Send pieces as the connection accepts them. Raises TimeoutError if it accepts none."""
        pieces = await pipe.take()
        if not pieces and (refusal := await work) is not None:
            await refuse(send, refusal.status, refusal.message, refusal.next_step)
            return
        await send(head(200, job.content_type, *job.headers))
        while pieces:
            # Send many lines as one piece; together they are no larger than the limit of a pipe.
            body = b"".join(pieces)
            async with asyncio.timeout(self._cut_s):
                await send({"type": "http.response.body", "body": body, "more_body": True})
            pieces = await pipe.take()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _reader_of(owner: Owner, cluster_id: str) -> RecordReader[Refused]:
    caller = Caller(kind=CallerKind.SESSION, name=str(owner.user_id), rights=owner.rights)
    return RecordReader(caller=caller, cluster_id=cluster_id, error=partial(Refused, 403))


async def _stop_when_left(pipe: Pipe, receive: Receive) -> None:
    await left(receive)
    pipe.stop("left")


async def _stop_when_ended(pipe: Pipe, stream: Stream) -> None:
    while not stream.ended:
        await stream.take(patience_s=CUT_SECONDS)
    pipe.stop(stream.ended)


async def refuse(
    send: Send, status: int, message: str, next_step: str, *, position: int | None = None
) -> None:
    """Answer with an object that says what was wrong and what to do next."""
    refusal = {"message": message, "next_step": next_step, "position": position}
    await send(head(status, b"application/json"))
    await send({"type": "http.response.body", "body": json.dumps(refusal).encode()})
