"""The base of all REST views: caller, cluster, bodies, errors and the log of changes.

A view answers with one complete body, in a thread. Streams are bare calls: see `router`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, re_path
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
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
from gateway.rest.openapi.describe import Describe
from gateway.rest.process import methods_at, worker
from gateway.rest.traffic import STRANGERS
from gateway.rest.worker import CLIENT_ID, Worker

METHODS: Final = ["get", "head", "post", "put", "patch", "delete", "options"]
NOT_LET_IN: Final = frozenset({Code.NOT_AUTHENTICATED.status, Code.TOO_MANY.status})
SEGMENT: Final = re.compile(r"\{(\w+)\}")


class ApiView(APIView):
    """Refuses unknown callers, and any cluster but its own."""

    authentication_classes = (CallerAuthentication,)
    renderer_classes: Sequence[type[JSONRenderer]] = (JSONRenderer,)
    # `asked` reads bodies, with limits.
    parser_classes = ()
    permission_classes = ()
    throttle_classes = ()
    metadata_class = None
    schema = Describe()
    media_types: ClassVar[tuple[str, ...]] = (JSON,)
    # The two versions of the interface have different codes for a missing topic.
    no_topic: ClassVar[Code] = Code.NO_TOPIC
    http_method_names = METHODS
    caller: Caller
    asked_cluster: str | None = None

    def dispatch(self, request: HttpRequest, *_args: object, **quoted: str) -> HttpResponseBase:
        """Serve with the unquoted names of the path; all views are of one cluster."""
        names = {name: unquote(value) for name, value in quoted.items()}
        self.asked_cluster = names.pop("cluster_id", None)
        return super().dispatch(request, **names)

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = caller_of(request)
        asked = self.asked_cluster
        if asked is not None and asked != self.worker.cluster_id:
            raise ApiError(Code.NOT_FOUND, f"Cluster {asked} cannot be found.")
        # The client library would cut a name at a NUL.
        if any("\0" in str(name) for name in kwargs.values()):
            raise ApiError(Code.BAD_REQUEST, "no name holds a NUL: leave %00 out of the address")

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
            # Some methods of a path, such as produce, are served beside Django.
            methods = [*self.allowed_methods, *methods_at(request.path)]
            answer["Allow"] = ", ".join(methods)
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
        return worker()

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
        """Raise ApiError if the caller may not do this; the message names the missing right."""
        cluster = "" if kind is Kind.CONSOLE else self.cluster_id
        decision = self.caller.decide(operation, kind, cluster, name)
        if not decision.is_allowed:
            raise ApiError(Code.NOT_ALLOWED, decision.reason)

    def visible(self, kind: Kind, names: list[str]) -> list[str]:
        """Return the given names that the caller may see, in their order."""
        allowed = self.caller.rights.names(Operation.VIEW, cluster=self.cluster_id, kind=kind)
        return allowed.among(names)

    def asked(self, shape: type[Serializer[Any]]) -> Mapping[str, Any]:
        """Return the validated body. Raises ApiError if it does not match the serializer."""
        given = json_of(self.request._request, media_types=self.media_types)  # noqa: SLF001 - documented
        form = shape(data=given)
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


def at(address: str, view: type[ApiView]) -> URLPattern:
    """Return the URL pattern of a view; segments in braces are parameters of any characters.

    Django gets paths as they were sent, so that `a%2Fb` is one segment. A trailing slash changes
    nothing.
    """
    pattern = SEGMENT.sub(lambda found: f"(?P<{found[1]}>[^/]+)", address)
    # Public for the console's middleware: the view itself authenticates programs.
    name = address.replace(":", " ")
    return re_path(f"^{pattern}/?$", public(view.as_view()), name=f"rest {name}")
