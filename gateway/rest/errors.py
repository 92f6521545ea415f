"""Turns exceptions of views into the errors that all interfaces share; `codes` lists these."""

import logging
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, UnreadablePostError
from rest_framework import exceptions
from rest_framework.response import Response

from gateway.rest.codes import ApiError, Code, internal, known

log: Final = logging.getLogger(__name__)
# By the status that Django REST framework gives its own errors.
BY_STATUS: Final = {
    400: Code.BAD_REQUEST,
    401: Code.NOT_AUTHENTICATED,
    403: Code.NOT_ALLOWED,
    404: Code.NOT_FOUND,
    405: Code.METHOD_NOT_ALLOWED,
    406: Code.NOT_ACCEPTABLE,
    413: Code.TOO_LARGE,
    415: Code.UNSUPPORTED_TYPE,
    429: Code.TOO_MANY,
}
# SQLite's message for a lock that was not available in time.
LOCKED: Final = "database is locked"
# When it is worth to try again while the database does not answer.
RETRY_AFTER_S: Final = 5
# Report only the first of many errors in one body.
MAX_MISTAKES: Final = 10


def handler(raised: Exception, context: dict[str, Any]) -> Response:
    """Return the answer for an exception of a view."""
    view, request = context.get("view"), context.get("request")
    error = known(raised) or _meant(raised)
    if error is None:
        # One failed call must not end the process that serves the others.
        log.error("rest.view_failed view=%s", type(view).__name__, exc_info=raised)
        error = internal()
    if error.code is Code.NO_TOPIC:
        error = ApiError(getattr(view, "no_topic", Code.NO_TOPIC), error.message)
    mode = None if request is None else request.headers.get("Sec-Fetch-Mode")
    return Response(error.value(), status=error.code.status, headers=dict(error.headers(mode)))


def _meant(raised: Exception) -> ApiError | None:
    """Return the error of an exception of the frameworks; None for a bug."""
    match raised:
        case exceptions.APIException():
            error = _of_framework(raised)
        case Http404():
            error = ApiError(Code.NOT_FOUND, str(raised) or "there is nothing at this address")
        case RequestDataTooBig():
            error = ApiError(Code.TOO_LARGE, "the body is too large: send less in one call")
        case UnreadablePostError():
            error = ApiError(Code.BAD_REQUEST, "the body broke off: send it again")
        case InterfaceError() | OperationalError():
            error = ApiError(Code.UNAVAILABLE, _unavailable(raised), retry_after_s=RETRY_AFTER_S)
        case _:
            error = None
    return error


def _unavailable(raised: Exception) -> str:
    """Return a message about the database without its own text, which may name files of this
    machine.
    """
    log.warning("rest.database_failed reason=%r", str(raised).strip())
    what = "is locked by another process" if LOCKED in str(raised) else "does not answer"
    return f"the database {what}: see whether the change was made, and try again"


def _of_framework(raised: exceptions.APIException) -> ApiError | None:
    code = BY_STATUS.get(raised.status_code)
    if code is None:
        return None
    if isinstance(raised, exceptions.ValidationError):
        return ApiError(code, mistakes(raised.detail))
    if code is Code.METHOD_NOT_ALLOWED:
        return ApiError(
            code, f"{raised.detail} The header Allow lists the methods of this address."
        )
    return ApiError(code, str(raised.detail), retry_after_s=1 if code is Code.TOO_MANY else None)


def mistakes(detail: object) -> str:
    """Return all errors of a body in one sentence, as `field: what is wrong`."""
    return "; ".join(_mistakes(detail, "")[:MAX_MISTAKES])


def _mistakes(detail: object, at: str) -> list[str]:
    if isinstance(detail, dict):
        return [
            one
            for name, below in detail.items()
            for one in _mistakes(
                below, at if name == "non_field_errors" else f"{at}.{name}" if at else str(name)
            )
        ]
    if isinstance(detail, list):
        return [one for below in detail for one in _mistakes(below, at)]
    return [f"{at}: {detail}" if at else str(detail)]
