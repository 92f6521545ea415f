"""The base of all REST views: caller, cluster, bodies, errors and the log of changes.

A view answers with one complete body, in a thread. Streams are bare calls: see `router`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, ClassVar, Final
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, re_path
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway.access import audit
from gateway.access.callers import Caller
from gateway.access.operations import Kind, Operation
from gateway.access.requirements import public
from gateway.kafka.pool import Clients
from gateway.rest import compression
from gateway.rest.authentication import CallerAuthentication
from gateway.rest.bodies import json_of
from gateway.rest.calls import JSON
from gateway.rest.codes import ApiError, Code
from gateway.rest.errors import handler
from gateway.rest.gate import require, require_cluster, require_rights
from gateway.rest.openapi.describe import Describe
from gateway.rest.route import Route
from gateway.rest.traffic import STRANGERS
from gateway.rest.worker import CLIENT_ID, Worker, of_process

METHODS: Final = ["get", "head", "post", "put", "patch", "delete", "options"]
NOT_LET_IN: Final = frozenset({Code.NOT_AUTHENTICATED.status, Code.TOO_MANY.status})
CLUSTER: Final = "cluster_id"
View = Callable[..., HttpResponseBase]
SEGMENT: Final = re.compile(r"\{(\w+)\}")


class ApiView(APIView):
    """Refuses unknown callers, and any cluster but its own."""

    authentication_classes = (CallerAuthentication,)
    renderer_classes: Sequence[type[JSONRenderer]] = (JSONRenderer,)
    # `initial` reads bodies, with limits.
    parser_classes = ()
    permission_classes = ()
    throttle_classes = ()
    metadata_class = None
    schema = Describe()
    media_types: ClassVar[tuple[str, ...]] = (JSON,)
    # The two versions of the interface have different codes for a missing topic.
    no_topic: ClassVar[Code] = Code.NO_TOPIC
    http_method_names = METHODS
    # The rows of its path, by method, and the methods of bare calls there.
    routes: Mapping[str, Route] = MappingProxyType({})
    beside: Sequence[str] = ()
    caller: Caller
    parameters: Mapping[str, str]
    # The body or the query, as the row's serializer has validated it.
    asked: Mapping[str, Any]

    def dispatch(self, request: HttpRequest, *_args: object, **quoted: str) -> HttpResponseBase:
        """Serve with the unquoted names of the path; all views are of one cluster."""
        self.parameters = {name: unquote(value) for name, value in quoted.items()}
        names = {name: value for name, value in self.parameters.items() if name != CLUSTER}
        return super().dispatch(request, **names)

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = caller_of(request)
        require_cluster(self.cluster_id, self.parameters)
        # The client library would cut a name at a NUL.
        if any("\0" in str(name) for name in kwargs.values()):
            raise ApiError(Code.BAD_REQUEST, "no name holds a NUL: leave %00 out of the address")
        route = self.routes.get("GET" if request.method == "HEAD" else request.method or "")
        # Neither OPTIONS nor a method that the path does not take has a row.
        if route is not None:
            self.asked = self._validated(route)
            require_rights(self.caller, self.cluster_id, route.rights, self.parameters)

    def options(self, request: Request, *args: object, **kwargs: object) -> Response:  # type: ignore[override]  # noqa: ARG002 - as the framework has it
        """Answer with the methods of the address."""
        return Response()

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Any]:
        return handler

    def finalize_response(
        self, request: Request, response: Response, *args: object, **kwargs: object
    ) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        if answer.status_code == Code.METHOD_NOT_ALLOWED.status or request.method == "OPTIONS":
            answer["Allow"] = ", ".join([*self.allowed_methods, *self.beside])
        caller = getattr(self, "caller", None)
        if caller is None and answer.status_code in NOT_LET_IN:
            self.worker.traffic.add(STRANGERS, requests=1, errors=1)
        if caller is not None:
            content = getattr(answer, "data", None)
            self.worker.traffic.add(
                caller.key,
                requests=1,
                errors=int(answer.status_code >= 400 and content is not None),
                bytes_in=length_of(request),
            )
            if isinstance(answer, Response):
                if compression.is_wanted(request, caller):
                    answer.add_post_render_callback(compression.compress)
                # The size of the answer is known only later.
                answer.add_post_render_callback(
                    lambda written: self.worker.traffic.add(
                        caller.key, bytes_out=len(written.content)
                    )
                )
        return answer

    @property
    def worker(self) -> Worker:
        return of_process()

    @property
    def cluster_id(self) -> str:
        return self.worker.cluster_id

    @contextmanager
    def clients(self) -> Iterator[Clients]:
        """Lend clients whose client id tells brokers who makes a change.

        The brokers' audit log has that name, but it proves nothing: any client may use it.
        """
        is_read = self.request.method in {"GET", "HEAD"}
        client_id = "" if is_read else f"{CLIENT_ID} {self.caller.key}"
        with self.worker.admins.borrowed(client_id) as clients:
            yield clients

    def require(self, operation: Operation, kind: Kind, name: str = "") -> None:
        """Raise ApiError if the caller may not do this; for names that no path has."""
        require(self.caller, self.cluster_id, operation, kind, name)

    def visible(self, kind: Kind, names: list[str]) -> list[str]:
        """Return the given names that the caller may see, in their order."""
        allowed = self.caller.rights.names(Operation.VIEW, cluster=self.cluster_id, kind=kind)
        return allowed.among(names)

    def _validated(self, route: Route) -> Mapping[str, Any]:
        """Return the body or the query, as a row's serializer validates it."""
        if route.filter is not None:
            form = route.filter(data=self.request.query_params.dict())
        elif route.body is not None:
            given = json_of(self.request._request, media_types=self.media_types)  # noqa: SLF001 - documented
            form = route.body(data=given)
        else:
            return {}
        form.is_valid(raise_exception=True)
        found: Mapping[str, Any] = form.validated_data
        return found

    def note(self, event: str, subject: str, **details: str) -> None:
        """Log a change that the caller has made; `event` is in the past tense."""
        actor = audit.Actor(name=self.caller.principal, address=self.request.META["REMOTE_ADDR"])
        audit.record(f"rest.{event}", actor=actor, subject=subject, **details)


def length_of(request: Request) -> int:
    """Return the declared length of a request's body."""
    declared = request.META.get("CONTENT_LENGTH") or ""
    return int(declared[:20]) if declared.isascii() and declared.isdigit() else 0


def caller_of(request: Request) -> Caller:
    for found in (request.auth, request.user):
        if isinstance(found, Caller):
            return found
    raise ApiError(
        Code.NOT_AUTHENTICATED,
        "credentials are required: send a token as `Authorization: Bearer TOKEN`, or a user of "
        "the console by Basic",
    )


def patterns(routes: Iterable[Route]) -> list[URLPattern]:
    """Return the URL patterns of rows, which are below one prefix, in their order.

    Segments in braces are parameters of any characters: Django gets paths as they were sent, so
    that `a%2Fb` is one segment. A trailing slash changes nothing.
    """
    by_path: dict[str, list[Route]] = {}
    beside: dict[str, list[str]] = {}
    for route in routes:
        if route.view is not None:
            by_path.setdefault(route.path, []).append(route)
        else:
            beside.setdefault(SEGMENT.sub("{}", route.path), []).append(route.method)
    return [
        _pattern(path, rows, sorted(beside.get(SEGMENT.sub("{}", path), ())))
        for path, rows in by_path.items()
    ]


def at(prefix: str) -> str:
    """Return a prefix as Django's `path` takes it."""
    return f"{prefix.strip('/')}/".lstrip("/")


def _pattern(path: str, rows: Sequence[Route], beside: Sequence[str]) -> URLPattern:
    [view] = {row.view for row in rows if row.view is not None}
    served = {name.upper() for name in view.http_method_names if hasattr(view, name)}
    # A function without a row would be served without its rights.
    assert served - {"HEAD", "OPTIONS"} == {row.method for row in rows}, f"{view} has other rows"
    address = path.strip("/")
    pattern = SEGMENT.sub(lambda found: f"(?P<{found[1]}>[^/]+)", address)
    # Public for the console's middleware: the view itself authenticates programs.
    serve: View = public(view.as_view(routes={row.method: row for row in rows}, beside=beside))
    return re_path(f"^{pattern}/?$", serve, name=f"rest {address.replace(':', ' ')}")
