"""Describes views for OpenAPI, from the rows of the table of routes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.serializers import CharField, IntegerField, Serializer

from gateway.rest.route import Route

# Numeric parameters in paths; all others are names.
NUMBERS: Final = frozenset({"partition_id", "broker_id"})
# Answers that any call may get.
ERRORS: Final[Mapping[int, str]] = {
    400: "The request is wrong, or the brokers refused it (40002).",
    401: "The credentials are missing or wrong (40101).",
    403: "The caller lacks the right (40301).",
    404: "The resource in the address does not exist.",
    406: "None of the requested media types can be sent.",
    413: "The body is too large.",
    415: "The body has another media type.",
    429: "The caller's limit is reached; see Retry-After.",
    500: "The cluster failed (50002, 50003), or the gateway (500).",
    503: "No broker answers (50302), or this process is still starting.",
}


class ErrorBody(Serializer[Any]):
    error_code = IntegerField()
    message = CharField(allow_null=True)


class Describe(AutoSchema):
    """Describes the function of a view by its docstring and its row."""

    @property
    def row(self) -> Route:
        found: Route = self.view.routes[self.method]  # type: ignore[attr-defined] # it is an ApiView
        return found

    def get_operation_id(self) -> str:
        """Return an id from method and path, which no two operations share."""
        parts = [
            part.strip("{}").replace("-", "_").replace(":", "_") or "all"
            for part in self.path.strip("/").split("/")
        ]
        return "_".join([self.method.lower(), *(part.strip("_") or "all" for part in parts)])

    def get_tags(self) -> list[str]:
        return [self.row.tag]

    def get_request_serializer(self) -> type[Serializer[Any]] | None:
        return self.row.body

    def get_response_serializers(self) -> Any:  # noqa: ANN401 - as the framework has it
        row = self.row
        statuses = (row.status,) if isinstance(row.status, int) else row.status
        done = OpenApiResponse(row.answer, description="Done.")
        found = {
            number: OpenApiResponse(ErrorBody, description=said)
            for number, said in {**ERRORS, **row.errors}.items()
        }
        found |= dict.fromkeys(statuses, done)
        if row.partly is not None:
            found[207] = OpenApiResponse(row.partly, description="A part has failed.")
        return found

    def get_override_parameters(self) -> list[Any]:
        named = [OpenApiParameter(name, required=False, type=str) for name in self.row.query]
        return [*named, *([] if self.row.filter is None else [self.row.filter])]

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
