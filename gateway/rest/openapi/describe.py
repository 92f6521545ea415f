"""Describes REST views for OpenAPI: inputs and answers, in a few words per method."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.serializers import CharField, IntegerField, Serializer

F = TypeVar("F", bound=Callable[..., Any])
Shape = type[Serializer[Any]]
# Numeric parameters in paths; all others are names.
NUMBERS: Final = frozenset({"partition_id", "broker_id"})
# Answers that any call may get.
ERRORS: Final[Mapping[int, str]] = {
    400: "The request is wrong, or the brokers refused it (40002).",
    401: "The credentials are missing or wrong (40101).",
    403: "The caller lacks the right (40301).",
    404: "The resource in the address does not exist.",
    406: "No media type that was asked for is answered.",
    413: "The body is too large.",
    415: "The body has another media type.",
    429: "The caller's limit is reached; see Retry-After.",
    500: "The cluster failed (50002, 50003), or the gateway (500).",
    503: "No broker answers (50302), or this process is still starting.",
}


class ErrorBody(Serializer[Any]):
    error_code = IntegerField()
    message = CharField(allow_null=True)


def answers(
    shape: Shape | Serializer[Any] | Mapping[str, Any] | None,
    *,
    status: int | Sequence[int] = 200,
    partly: Shape | None = None,
    body: Shape | None = None,
    query: Sequence[str | Shape] = (),
    errors: Mapping[int, str] = MappingProxyType({}),
) -> Callable[[F], F]:
    """Describe the inputs and answers of a view method; its docstring describes its purpose.

    `partly` is the answer with status 207 if a part of the request has failed, and `errors` are
    those that only this method answers with.
    """
    statuses = [status] if isinstance(status, int) else status
    # The library's type stubs accept only classes.
    answered: Any = shape
    done = OpenApiResponse(answered, description="Done.")
    parameters = [
        OpenApiParameter(one, required=False, type=str) if isinstance(one, str) else one
        for one in query
    ]
    return extend_schema(
        request=body,
        responses={
            **{
                number: OpenApiResponse(ErrorBody, description=said)
                for number, said in {**ERRORS, **errors}.items()
            },
            **dict.fromkeys(statuses, done),
            **({207: OpenApiResponse(partly, description="A part has failed.")} if partly else {}),
        },
        parameters=parameters,
    )


class Describe(AutoSchema):
    """The part of the description that all REST views share."""

    def get_operation_id(self) -> str:
        """Return an id from method and path, which no two operations share."""
        parts = [
            part.strip("{}").replace("-", "_").replace(":", "_") or "all"
            for part in self.path.strip("/").split("/")
        ]
        return "_".join([self.method.lower(), *(part.strip("_") or "all" for part in parts)])

    def get_tags(self) -> list[str]:
        tags: list[str] = getattr(self.view, "tags", [])
        return tags

    def map_parsers(self) -> list[str]:
        """Return the media types of bodies, which views parse without a parser of the framework."""
        media_types: Iterable[str] = getattr(self.view, "media_types", ())
        return list(media_types)

    def get_auth(self) -> list[dict[str, Any]]:
        # Security is described once for all, in `document`.
        return []

    def _resolve_path_parameters(self, variables: list[str]) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
                if name in NUMBERS
                else {"type": "string", "minLength": 1},
            }
            for name in variables
        ]
