"""Routes a call to the bare application of its path; other calls go on to Django.

Paths are compared segment by segment before they are unquoted, so that an escaped slash (`a%2Fb`)
stays in its name. A trailing slash changes nothing, and no redirect is sent.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import unquote_to_bytes

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.rest.calls import Call, Gone, Receive, Scope, Send
from gateway.rest.codes import ApiError, internal, known
from gateway.rest.gate import require_cluster, require_rights
from gateway.rest.route import Route

log: Final = logging.getLogger(__name__)
# No longer path exists: the longest names are some hundred characters each.
MAX_PATH: Final = 4_096
# An unauthenticated caller: without rights, nothing is allowed.
NOBODY: Final = Caller(kind=CallerKind.USER, name="", rights=Rights())


class Callers(Protocol):
    """Authenticates callers. Raises ApiError for an unknown caller or one beyond its limit."""

    async def of(self, scope: Scope) -> Caller: ...


class Traffic(Protocol):
    """Counts the traffic of callers."""

    def begin(self, call: Call) -> None: ...

    def count(self, call: Call) -> None: ...


class Router:
    """An ASGI application for HTTP. Belongs to one event loop."""

    def __init__(
        self,
        routes: Sequence[Route],
        *,
        callers: Callers,
        traffic: Traffic,
        cluster_id: Callable[[], str],
    ) -> None:
        self._callers = callers
        self._traffic = traffic
        self._cluster_id = cluster_id
        # By the number of segments, so that few patterns are compared.
        self._routes: dict[int, list[tuple[tuple[str, ...], Route]]] = {}
        for route in routes:
            pattern = tuple(route.path.strip("/").split("/"))
            self._routes.setdefault(len(pattern), []).append((pattern, route))

    def find(self, scope: Scope, *, under: str = "") -> tuple[Route, Mapping[str, str]] | None:
        """Return the route of a request below a prefix; None if no route matches."""
        segments = segments_of(scope, under)
        if segments is None:
            return None
        for pattern, route in self._routes.get(len(segments), ()):
            if route.method == scope["method"]:
                parameters = matched(pattern, segments)
                if parameters is not None:
                    return route, parameters
        return None

    async def serve(
        self,
        route: Route,
        parameters: Mapping[str, str],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        try:
            caller = await self._callers.of(scope)
        except ApiError as error:
            refused = Call(
                scope, receive, send, caller=NOBODY, cluster_id="", parameters=parameters
            )
            self._traffic.begin(refused)
            try:
                await refused.fail(error, content_type=route.error_type)
            finally:
                self._traffic.count(refused)
            return
        call = Call(
            scope,
            receive,
            send,
            caller=caller,
            cluster_id=self._cluster_id(),
            parameters=parameters,
        )
        self._traffic.begin(call)
        try:
            require_cluster(call.cluster_id, parameters)
            require_rights(caller, call.cluster_id, route.rights, parameters)
            assert route.handler is not None, "Django serves views"
            await route.handler(call)
        except Gone:
            pass
        except Exception as raised:
            # One failed call must not end the process that serves the others.
            meant = known(raised)
            if meant is None:
                log.exception("rest.call_failed route=%s", route.path)
            await call.fail(meant or internal(), content_type=route.error_type)
        finally:
            self._traffic.count(call)


def bound(
    routes: Iterable[Route], worker: object, rooms: dict[Callable[[Any], Any], Any]
) -> list[Route]:
    """Return rows whose handlers have their rooms of a worker; `rooms` keeps one of each kind."""
    found = []
    for route in routes:
        handler, room = route.handler, route.room
        if handler is None or room is None:
            found.append(route)
            continue
        if room not in rooms:
            rooms[room] = room(worker)
        found.append(replace(route, handler=partial(handler, rooms[room]), room=None))
    return found


def segments_of(scope: Scope, under: str) -> list[str] | None:
    """Return the quoted segments of a path below a prefix; None if it is not below."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    if len(raw) > MAX_PATH:
        return None
    path = raw.partition(b"?")[0].decode("latin-1")
    if under and not (path == under or path.startswith(f"{under}/")):
        return None
    return path[len(under) :].strip("/").split("/")


def fits(route: Route, segments: Sequence[str]) -> bool:
    """Tell whether a path is one of a route."""
    pattern = route.path.strip("/").split("/")
    return len(pattern) == len(segments) and matched(pattern, segments) is not None


def matched(pattern: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    """Return the parameters of a matching path; each is UTF-8 and not empty."""
    found = {}
    for wanted, given in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            try:
                value = unquote_to_bytes(given).decode("utf-8")
            except UnicodeDecodeError:
                return None
            if not value:
                return None
            found[wanted[1:-1]] = value
        elif wanted != given:
            return None
    return found
