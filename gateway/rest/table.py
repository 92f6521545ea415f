"""The table of routes: every call of a program, by the prefix below which it is served.

Connect's rows are in `connectors.rest.urls`: that package imports this one, and not the reverse.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from django.conf import settings

from gateway.rest import traffic
from gateway.rest.consume import routes as consume
from gateway.rest.produce import routes as produce
from gateway.rest.records import routes as records
from gateway.rest.route import EVENTS, OURS, PASSED, V2, V3, Door, Route
from gateway.rest.router import fits, segments_of
from gateway.rest.v2 import routes as v2
from gateway.rest.v3 import routes as v3


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """The rows below a prefix."""

    prefix: str
    routes: Sequence[Route]


PASSED_ROUTES = Below(prefix=PASSED, routes=(*consume.PASSED_ROUTES, *traffic.PASSED_ROUTES))


def door() -> Door:
    """Return the door of this process, by its settings."""
    return Door.WEB if settings.DOOR == "web" else Door.GATEWAY


@cache
def table(door: Door) -> tuple[Below, ...]:
    """Return what programs may call at a door."""
    return (
        *(Below(prefix=prefix, routes=(*v3.ROUTES, *produce.V3_ROUTES)) for prefix in V3),
        Below(prefix=V2[door], routes=(*v2.ROUTES, *produce.V2_ROUTES, *consume.ROUTES)),
        Below(prefix=OURS[door], routes=records.OUR_ROUTES),
        Below(prefix=EVENTS, routes=records.EVENT_ROUTES),
    )


def bare(door: Door) -> Iterator[tuple[str, Route]]:
    """Yield the bare calls, each with its prefix."""
    for below in table(door):
        for route in below.routes:
            if route.handler is not None:
                yield below.prefix, route


def methods_at(path: str) -> list[str]:
    """Return the methods of this process's bare calls at a path, which is given as it was sent."""
    scope = {"path": path, "raw_path": path.encode("latin-1", "replace")}
    return sorted(
        {
            route.method
            for prefix, route in bare(door())
            if (segments := segments_of(scope, prefix)) is not None and fits(route, segments)
        }
    )
