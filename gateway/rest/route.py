"""Defines a row of the table of routes, and the prefixes below which rows are served.

From rows come Django's URLs, the router of bare calls, the rights of a caller, the methods that a
405 names, and OpenAPI. Packages declare their rows; `table` has them all.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from gateway.rest.calls import JSON
from gateway.rest.gate import Right


class Door(Enum):
    """The process that serves."""

    GATEWAY = "the gateway's own port"
    WEB = "the web server, beside the console"


V3: Final = ("/v3", "/kafka/v3")
# Clients of version 2 expect it at the root; on its own port, the console has the root.
V2: Final[Mapping[Door, str]] = {Door.GATEWAY: "", Door.WEB: "/rest"}
# Our own additions to the published interfaces.
OURS: Final[Mapping[Door, str]] = {Door.GATEWAY: "/v1", Door.WEB: "/rest/v1"}
EVENTS: Final = "/sse/v1"
# Calls that another worker of the home passes to this one, which owns their object.
PASSED: Final = "/passed"
# Kafka Connect's REST, which is also at the root of its own port.
CONNECT: Final = "/connect"
# Paths below these belong to programs; at the gateway's own port, all paths do.
PREFIXES: Final[Mapping[Door, Sequence[str]]] = {
    Door.GATEWAY: ("",),
    Door.WEB: (*V3, "/rest", "/ws", "/sse", CONNECT),
}

# The answer 422, for rows whose bodies have fields with a closed set or range of values.
UNPROCESSABLE: Final = {
    422: "A field of the body has a value that is not taken; the codes begin with 422, or 40001.",
}
Handler = Callable[..., Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A method at a path, whose segments in braces are parameters."""

    method: str
    path: str
    # A bare call: a function of the room that `room` makes of a worker, and of the call.
    handler: Handler | None = None
    room: Callable[[Any], Any] | None = None
    # Else a view of Django REST framework, which has a function of the method's name.
    view: type[Any] | None = None
    # All of them are needed. Rights on names in a body are the handler's to require.
    rights: tuple[Right, ...] = ()
    # The serializers of the body and of the query, which come before the rights.
    body: type[Any] | None = None
    filter: type[Any] | None = None
    # The media type of its errors.
    error_type: str = JSON
    # The fields below are for OpenAPI only; a row without a tag is left out of it.
    tag: str = ""
    # Of a view, both are the docstring of its function.
    summary: str = ""
    says: str = ""
    status: int | tuple[int, ...] = 200
    # The media types of bodies and answers of a bare call.
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = (JSON,)
    # The serializers of what a view answers, and with 207 where a part has failed.
    answer: Any = None
    partly: type[Any] | None = None
    query: tuple[str, ...] = ()
    # Errors beside those that any call may get.
    errors: Mapping[int, str] = field(default_factory=dict)
