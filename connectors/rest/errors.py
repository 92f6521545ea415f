"""Converts the exceptions of views to answers of Kafka Connect: `error_code` is the status."""

from typing import Any

from rest_framework.response import Response

from connectors.refusals import Conflict, NotFound, NotServed, Refused, Unfit
from connectors.vault import CannotOpen
from gateway.rest import errors
from gateway.rest.codes import Code

# The kinds of refusals, special ones first.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (Refused, 403),
    (Unfit, 400),
    (CannotOpen, 500),
)
# Kafka Connect's text for an unknown address.
OF_ADDRESS = {
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    406: "HTTP 406 Not Acceptable",
}


def body(status: int, message: str) -> dict[str, object]:
    return {"error_code": status, "message": message}


def handler(raised: Exception, context: dict[str, Any]) -> Response:
    """Return the answer for an exception of a view."""
    if isinstance(raised, (NotServed, CannotOpen)):
        status = next(status for kind, status in STATUS if isinstance(raised, kind))
        return Response(body(status, str(raised)), status=status)
    answer = errors.handler(raised, context)
    message = str(answer.data["message"])
    if answer.status_code in (Code.METHOD_NOT_ALLOWED.status, Code.NOT_ACCEPTABLE.status):
        message = OF_ADDRESS[answer.status_code]
    answer.data = body(answer.status_code, message)
    return answer
