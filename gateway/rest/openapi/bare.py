"""Describes bare calls for OpenAPI, from the rows of the table of routes."""

import re
from typing import Any, Final

from gateway.rest.openapi.describe import ERRORS
from gateway.rest.route import Route

Operation = dict[str, Any]
PARAMETER: Final = re.compile(r"\{(\w+)\}")
ERROR: Final = {"$ref": "#/components/schemas/ErrorBody"}
NO_CONTENT: Final = 204


def operation(prefix: str, route: Route) -> Operation:
    """Return the description of a call below a prefix."""
    words = re.findall(r"\w+", f"{prefix}{route.path}")
    body: Operation = {"content": {kind: {"schema": {}} for kind in route.takes}}
    done: Operation = {"description": "Done."}
    if route.status != NO_CONTENT:
        done["content"] = {kind: {"schema": {}} for kind in route.gives}
    return {
        "operationId": "_".join(["stream", route.method.lower(), *words]),
        "summary": route.summary,
        "description": route.says or route.summary,
        "tags": [route.tag],
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in PARAMETER.findall(route.path)
            ),
            *({"name": name, "in": "query", "schema": {"type": "string"}} for name in route.query),
        ],
        **({"requestBody": body} if route.takes else {}),
        "responses": {
            str(route.status): done,
            **{
                str(status): {"description": said, "content": {route.error_type: {"schema": ERROR}}}
                for status, said in {**ERRORS, **route.errors}.items()
            },
        },
    }
