"""Builds the OpenAPI description of this process, once per prefix."""

from collections.abc import Iterable
from typing import Any, Final

from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator

from gateway.rest.openapi.bare import operation
from gateway.rest.table import Below
from gateway.rest.views import at, patterns

Document = dict[str, Any]
TITLE: Final = "Samsa"
VERSION: Final = "1"
ABOUT: Final = """\
Programs without a client of Kafka produce, consume and administer here.

Versions 2 and 3 are those of Kafka's published REST interface; `/v1` is ours.
Send a token (`Authorization: Bearer …`), or a user name and password by Basic.
All errors have the form `{"error_code", "message"}`; the message says what to do next.
`/ws/v1/frames.json` describes WebSocket frames.
"""
TAGS: Final = (
    "Records",
    "Topics",
    "Partitions",
    "Configs",
    "Consumer groups",
    "Brokers",
    "Clusters",
    "ACLs",
    "Version 2",
)
SCHEMES: Final = {
    "token": {"type": "http", "scheme": "bearer"},
    "user": {"type": "http", "scheme": "basic"},
}


class Generator(SchemaGenerator):
    """Lists paths without their optional trailing slash."""

    def _get_paths_and_endpoints(self) -> list[tuple[str, str, str, Any]]:
        found = super()._get_paths_and_endpoints()  # type: ignore[no-untyped-call]
        return [
            (address.rstrip("/"), pattern, method, view) for address, pattern, method, view in found
        ]


def document(table: Iterable[Below]) -> Document:
    """Return the description of rows, which are described once for each prefix."""
    table = list(table)
    views = [path(at(below.prefix), include(patterns(below.routes))) for below in table]
    made: Document = Generator(patterns=views).get_schema(public=True)  # type: ignore[no-untyped-call]
    for below in table:
        for route in below.routes:
            if route.handler is not None:
                methods = made["paths"].setdefault(f"{below.prefix}{route.path}", {})
                methods[route.method.lower()] = operation(below.prefix, route)
    made["info"] = {"title": TITLE, "version": VERSION, "description": ABOUT}
    made["tags"] = [{"name": name} for name in TAGS]
    # Paths are complete: no server is listed, so that there is nothing to choose.
    made.pop("servers", None)
    made["security"] = [{name: []} for name in SCHEMES]
    made.setdefault("components", {})["securitySchemes"] = SCHEMES
    return made
