"""Reads JSON bodies of calls with one complete answer, within limits."""

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from django.http import HttpRequest

from gateway.rest.calls import too_large
from gateway.rest.codes import ApiError, Code

# A topic with all configs and the replicas of some thousand partitions fits.
MAX_BODY_BYTES: Final = 1_048_576


def json_of(request: HttpRequest, *, media_types: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the object in the body; ApiError for anything else."""
    given = (request.content_type or media_types[0]).lower()
    if given not in media_types:
        raise ApiError(
            Code.UNSUPPORTED_TYPE,
            f"the body is {given[:100]!r}: send it as {' or '.join(media_types)}",
        )
    declared = request.META.get("CONTENT_LENGTH") or ""
    if declared.isdecimal() and int(declared[:20]) > MAX_BODY_BYTES:
        raise too_large(int(declared[:20]), MAX_BODY_BYTES)
    body = request.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise too_large(len(body), MAX_BODY_BYTES)
    return parsed(body)


def parsed(body: bytes) -> Mapping[str, Any]:
    """Return the object in JSON; numbers that JSON cannot express, such as NaN, are refused."""
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except RecursionError:
        raise ApiError(Code.BAD_REQUEST, "the body is nested too deeply") from None
    except ValueError as error:
        raise ApiError(Code.BAD_REQUEST, f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ApiError(
            Code.BAD_REQUEST, f"the body is a {type(found).__name__}: send a JSON object, as {{}}"
        )
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")
