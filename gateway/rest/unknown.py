"""Answers URLs that no view serves with the same error body as all other errors."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from gateway.access.requirements import public
from gateway.rest.calls import JSON
from gateway.rest.codes import ApiError, Code, internal
from gateway.rest.table import methods_at


@csrf_exempt
@public
def unknown(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001 - given by Django
    """Answer 405 if another method is served beside Django, and 404 otherwise."""
    if methods := methods_at(request.path):
        return not_allowed(request, [*methods, "OPTIONS"])
    return answered(
        ApiError(
            Code.NOT_FOUND,
            f"{request.method} {request.path} is not served: the interface is below /v3, /topics, "
            "/consumers and /v1",
        )
    )


def not_allowed(request: HttpRequest, methods: Sequence[str]) -> HttpResponse:
    """Answer 405; but OPTIONS with the methods, if it is one of them."""
    if request.method == "OPTIONS" and request.method in methods:
        return HttpResponse(headers={"Allow": ", ".join(methods)}, content_type=JSON)
    answer = answered(
        ApiError(
            Code.METHOD_NOT_ALLOWED,
            f"{request.method} is not served at {request.path}: it takes {', '.join(methods)}",
        )
    )
    answer["Allow"] = ", ".join(methods)
    return answer


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - given by Django
    """Answer requests that Django refuses before any view, such as one with an unknown Host."""
    return answered(
        ApiError(
            Code.BAD_REQUEST,
            f"the request was refused: {type(exception).__name__}; where the name in its Host"
            " header is a proxy's, set SAMSA_ALLOWED_HOSTS",
        )
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - given by Django
    return answered(ApiError(Code.NOT_ALLOWED, "this is not allowed"))


def failed(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - given by Django
    return answered(internal())


def answered(error: ApiError) -> HttpResponse:
    return HttpResponse(error.body(), status=error.code.status, content_type=JSON)
