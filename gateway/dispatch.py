"""Sends HTTP requests past Django to bare ASGI applications, by their path.

For calls that Django cannot serve: an answer that stays open would occupy one of its threads, and
an endless body would never reach a view. Django gets a body only after its sender is known, or
little of it: it reads all of a body before a view can refuse it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from django.conf import settings

from gateway import host_names
from gateway.access.callers import Caller, of_host
from gateway.health import Application, Message, Receive, Scope, Send
from gateway.middleware import HEADERS, UNLESS_SAID
from gateway.rest.bodies import MAX_BODY_BYTES
from gateway.rest.calls import CALLER, HOST_USER, BrokenOff, Call, declared_by, headers_of
from gateway.rest.codes import ApiError
from gateway.rest.incoming import Arriving, Budget, unread
from gateway.rest.inflating import plain
from gateway.rest.route import CONNECT
from gateway.rest.router import NOBODY, Traffic


class Calls(Protocol):
    """The programmatic calls."""

    def find(self, scope: Scope) -> Application | None:
        """Return the application of a request; None if Django serves it."""
        ...

    def find_own(self, scope: Scope) -> Application:
        """Return the application of a request on the process's own socket."""
        ...


class Callers(Protocol):
    """Authenticates callers. Raises ApiError for an unknown caller or one beyond its limit."""

    async def of(self, scope: Scope) -> Caller: ...

    async def of_page(self, scope: Scope) -> Caller | None: ...

    def network_of(self, scope: Scope) -> str: ...


class Dispatch:
    """An ASGI application for HTTP.

    `bare` is by path. Paths below the prefixes in `programs` are for programs: their callers are
    authenticated here, and Django gets the path as it was sent, so that an escaped slash (`a%2Fb`)
    stays in its name; the views unquote it.
    """

    def __init__(
        self,
        bare: Mapping[str, Application],
        *,
        calls: Calls,
        callers: Callers,
        budget: Budget,
        traffic: Traffic,
        programs: Sequence[str] = (),
        otherwise: Application,
    ) -> None:
        self._bare = bare
        self._calls = calls
        self._callers = callers
        self._budget = budget
        self._traffic = traffic
        self._programs = programs
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused: ApiError | None = None
        if self._is_of_host(scope):
            await self._serve_host(scope, receive, send)
            return
        if is_own(scope):
            application: Application | None = self._calls.find_own(scope)
        elif scope["path"] in self._bare:
            application = self._bare[scope["path"]]
        else:
            application = self._calls.find(scope)
            if application is not None or is_of_program(scope, self._programs):
                try:
                    host_names.check(scope)
                    scope, receive = plain(scope, receive)
                except ApiError as error:
                    refused = error
        if refused is not None:
            await self._fail(scope, send, refused)
        elif application is not None:
            await application(scope, receive, with_headers(send))
        else:
            is_program = is_of_program(scope, self._programs)
            serve = self._serve_program if is_program else self._serve_page
            await serve(scope, receive, send)

    async def _serve_program(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a call by a view, which finds its caller in the scope, or why there is none."""
        scope = _as_sent(scope)
        try:
            caller = await self._callers.of(scope)
        except ApiError as error:
            if declared_by(headers_of(scope)) == 0:
                await self._otherwise({**scope, CALLER: error}, receive, send)
            else:
                # At once: meanwhile the server would keep some of the body.
                await self._fail(scope, send, error)
            return
        scope[CALLER] = caller
        await self._within(scope, receive, send, sender=caller, limit=MAX_BODY_BYTES)

    async def _serve_host(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the owner of the home, whom the kernel has named, by the views of Connect."""
        caller = of_host(scope[HOST_USER])
        scope = {**_as_sent(scope), CALLER: caller}
        await self._within(scope, receive, send, sender=caller, limit=MAX_BODY_BYTES)

    async def _serve_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a page or a form of the console; only users with a session send large forms."""
        declared = declared_by(headers_of(scope))
        sender: Caller | str = self._callers.network_of(scope)
        limit = settings.STRANGERS_BODY_BYTES
        if declared is None or declared > limit:
            user = await self._callers.of_page(scope)
            if user is not None:
                sender, limit = user, settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        await self._within(scope, receive, send, sender=sender, limit=limit)

    async def _within(
        self, scope: Scope, receive: Receive, send: Send, *, sender: Caller | str, limit: int
    ) -> None:
        """Serve by Django; a body that declares to be too large is refused by its view."""
        declared = declared_by(headers_of(scope))
        if declared is not None and declared > limit:
            async with unread(receive) as empty:
                await self._otherwise(scope, empty, send)
            return
        body = Arriving(receive, self._budget, sender=sender, limit=limit)
        try:
            with suppress(BrokenOff):
                # The server closes a connection whose answer has no end.
                await self._otherwise(scope, body.next, send)
        finally:
            body.release()
        if body.refused is not None:
            await self._fail(scope, send, body.refused)

    async def _fail(self, scope: Scope, send: Send, error: ApiError) -> None:
        """Answer a call with an error."""
        call = Call(
            scope, _nothing, with_headers(send), caller=NOBODY, cluster_id="", parameters={}
        )
        self._traffic.begin(call)
        # Kafka Connect has the status as the code of an error.
        is_connect = is_below(scope["path"], CONNECT)
        await call.fail(error, number=error.code.status if is_connect else error.code.number)
        self._traffic.count(call)

    def _is_of_host(self, scope: Scope) -> bool:
        is_served = CONNECT in self._programs and is_below(scope["path"], CONNECT)
        return is_served and is_own(scope) and HOST_USER in scope


async def _nothing() -> Message:
    raise AssertionError("the body of a refused call is not read")


def _as_sent(scope: Scope) -> Scope:
    raw: bytes | None = scope.get("raw_path")
    path = scope["path"] if raw is None else raw.partition(b"?")[0].decode("latin-1")
    return {**scope, "path": path}


def is_of_program(scope: Scope, prefixes: Sequence[str]) -> bool:
    """Tell whether a request came from a program, to a path below one of the prefixes.

    One on the process's own socket did not: the worker that passed it on has checked it.
    """
    return not is_own(scope) and any(is_below(scope["path"], prefix) for prefix in prefixes)


def is_own(scope: Scope) -> bool:
    """Tell whether a request arrived on the process's own socket, which only its user can open."""
    server = scope.get("server")
    # A unix socket has a path and no port.
    return server is not None and server[1] is None


def is_below(path: str, prefix: str) -> bool:
    return not prefix or path == prefix or path.startswith(f"{prefix}/")


def with_headers(send: Send) -> Send:
    """Add the headers of every answer, which Django's middleware adds to Django's own."""
    added = [
        (name.lower().encode(), value.encode())
        for name, value in {**HEADERS, **UNLESS_SAID}.items()
    ]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return send_with_headers
