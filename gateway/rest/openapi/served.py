"""Serves the description below each prefix of version 3, without authentication."""

import json
from functools import lru_cache
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from gateway.access.requirements import public
from gateway.rest.calls import JSON
from gateway.rest.openapi.document import document
from gateway.rest.route import V3
from gateway.rest.table import door, table
from gateway.rest.unknown import not_allowed

METHODS: Final = ("GET", "HEAD", "OPTIONS")
FILE: Final = "openapi.json"


@csrf_exempt
@public
def serve(request: HttpRequest) -> HttpResponse:
    """Answer with the description, using the prefix of the request."""
    if request.method not in METHODS[:2]:
        return not_allowed(request, METHODS)
    prefix = request.path.removesuffix(f"/{FILE}")
    return HttpResponse(_made(prefix if prefix in V3 else V3[0]), content_type=JSON)


@lru_cache(maxsize=len(V3))
def _made(prefix: str) -> bytes:
    """Return the serialized description; building it takes half a second."""
    below = [below for below in table(door()) if below.prefix not in V3 or below.prefix == prefix]
    return json.dumps(document(below)).encode()
