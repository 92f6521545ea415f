"""Passes each request to its handler: finds its API, decodes it, and measures its time.

Knows handlers as modules with `SERVED` and `handle`, and nothing of what they do. A plain function
is called at once, on the event loop: that is the hot path, and costs no task. A coroutine function
runs as one of a bounded number of tasks; requests beyond that wait their turn.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sized
from functools import partial
from typing import Any, Final, Protocol

from brokers.protocol.apis import Api
from brokers.protocol.codec import Codec, codec
from brokers.protocol.errors import LeftOver
from brokers.protocol.headers import API_VERSIONS_KEY, Request
from brokers.protocol.schema import Message
from brokers.server.answer_errors import error_check
from brokers.server.call import Call
from brokers.server.client import Client
from brokers.server.context import Context
from brokers.server.express.lanes import Express, Lane
from brokers.server.file_range import release_all
from brokers.server.logs import Log
from brokers.server.metrics import Histogram
from brokers.server.served_api import Served
from brokers.server.tasks import Tasks

# Bytes behind the last field of a request. librdkafka leaves up to three, in Metadata, and kafka-go
# one, in DescribeAcls; more are a sign of another message than the header says.
MAX_TRAILING_BYTES: Final = 16


class HandlerModule(Protocol):
    """A module of brokers.server.handlers. Its function takes the request of its own API."""

    SERVED: Served

    @property
    def handle(self) -> Callable[..., Any]: ...


class Route:
    """One API that is served here."""

    __slots__ = ("api", "codecs", "handle", "has_error", "is_async", "seconds", "tasks")

    def __init__(self, module: HandlerModule, api: Api, seconds: Histogram, tasks: Tasks) -> None:
        self.api = api
        self.tasks = tasks
        self.handle: Callable[..., Any] = module.handle
        self.is_async = inspect.iscoroutinefunction(module.handle)
        self.seconds = seconds
        self.has_error = None if module.SERVED.counts_errors else error_check(api.response)
        self.codecs: dict[int, tuple[Codec[Any], Codec[Any]]] = {}

    def codec_pair(self, version: int) -> tuple[Codec[Any], Codec[Any]] | None:
        """Return the codecs of a version on its first use; None if it is not served.

        Only ApiVersions gets here with such a version: its handler answers in version 0.
        """
        api = self.api
        if not api.serves(version):
            assert api.key == API_VERSIONS_KEY, f"{api.name} version {version} was let in"
            return None
        pair = codec(api.request, version), codec(api.response, version)
        self.codecs[version] = pair
        return pair


class Dispatch:
    """Routes requests to handlers; `run` has to run for handlers that are coroutines."""

    def __init__(
        self,
        context: Context,
        modules: Iterable[HandlerModule],
        log: Log,
        *,
        lanes: Iterable[type[Lane]] = (),
    ) -> None:
        self._context = context
        self._log = log
        self._now = context.clock.monotonic
        self._routes: dict[int, Route] = {}
        # Handlers that may wait for the cluster's metadata, so that an agent that hangs does not
        # keep readers from their offsets, and those that only yield to other requests.
        by_waits = {waits: Tasks(self._failed) for waits in (False, True)}
        context.long_work = Tasks(self._failed)
        self._tasks = (*by_waits.values(), context.long_work)
        for module in modules:
            api = module.SERVED.api()
            assert api.key not in self._routes, f"{api.name} has two handlers"
            seconds = context.metrics.requests_of(api.name)
            self._routes[api.key] = Route(module, api, seconds, by_waits[module.SERVED.waits])
        self.apis = {key: route.api for key, route in self._routes.items()}
        context.apis = self.apis
        # The faster path for requests that need none of this.
        self.express = Express(context, self.apis, lanes)

    async def run(self) -> None:
        """Run waiting handlers until cancelled; that cancels the handlers too."""
        async with asyncio.TaskGroup() as group:
            for tasks in self._tasks:
                tasks.group = group
            await asyncio.get_running_loop().create_future()

    def handle(self, client: Client, request: Request, now: float) -> None:
        """Handle a request of this client; ProtocolError if its bytes are not a request."""
        route = self._routes[request.api.key]
        call = Call(request, client, now)
        pair = route.codecs.get(request.version) or route.codec_pair(request.version)
        try:
            message = route.api.request() if pair is None else pair[0].decode(request.body)
        except LeftOver as error:
            message = self._without_rest(request, pair, error)
        if route.is_async:
            route.tasks.enqueue(call, partial(route.handle, self._context, call, message))
            return
        try:
            answer = route.handle(self._context, call, message)
            if answer is None:
                return
            if pair is None or call.is_done or call.closed_callback is not None:
                call.answer(answer)
                return
            # The same as `call.answer`, without its indirection: the hottest path of the broker.
            call.is_done = True
            buffers = self._encoded(route, pair[1], answer, call)
            if buffers is None:
                call.fail()
            else:
                client.deliver(request, buffers)
        except Exception as error:  # noqa: BLE001 - a handler's bug must not end other clients
            self._failed(call, error)

    def _without_rest(
        self, request: Request, pair: tuple[Codec[Any], Codec[Any]] | None, error: LeftOver
    ) -> Message:
        """Decode a request with bytes behind its last field, which Kafka ignores."""
        assert pair is not None, "only a decoder finds bytes that are left over"
        if error.count > MAX_TRAILING_BYTES:
            raise error
        self._log.limited(
            "request.trailing_bytes",
            "ignored",
            api=request.api.name,
            client_id=request.client_id,
            error=error,
        )
        message: Message = pair[0].decode(request.body[: -error.count])
        return message

    def encode(self, call: Call, message: Message) -> list[Sized] | None:
        """Encode a response; None if it cannot be encoded, which is a handler's bug."""
        route = self._routes[call.request.api.key]
        pair = route.codecs.get(call.version) or route.codec_pair(call.version)
        encoder = pair[1] if pair is not None else codec(route.api.response, 0)
        return self._encoded(route, encoder, message, call)

    def observe(self, call: Call) -> None:
        """Record the time of a response that needed no encoding."""
        self._routes[call.request.api.key].seconds.observe(self._now() - call.started)

    def _encoded(
        self, route: Route, encoder: Codec[Any], message: Message, call: Call
    ) -> list[Sized] | None:
        try:
            buffers: list[Sized] = encoder.encode(message)
        except Exception as error:  # noqa: BLE001 - who answers may have many others to answer
            self._note(call, error)
            release_all(message)
            return None
        if route.has_error is not None and route.has_error(message):
            self._context.metrics.failed(route.api.name)
        route.seconds.observe(self._now() - call.started)
        return buffers

    def _failed(self, call: Call, error: Exception) -> None:
        self._note(call, error)
        call.fail()

    def _note(self, call: Call, error: Exception) -> None:
        self._context.metrics.handler_failures += 1
        self._context.metrics.failed(call.request.api.name)
        self._log.bug(
            "handler.failed",
            error,
            api=call.request.api.name,
            version=call.version,
            client_id=call.request.client_id,
        )
