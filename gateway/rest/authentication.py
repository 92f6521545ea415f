"""Tells views of Django REST framework who calls: the same callers as those of the bare side."""

from typing import Final

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from gateway.access.callers import Caller
from gateway.rest import identity, limits
from gateway.rest.credentials import Asked

CHALLENGE: Final = 'Basic realm="Samsa", charset="UTF-8"'


class CallerUser:
    """What REST framework takes for a user; a view asks `request.auth`, the Caller."""

    is_authenticated = True
    is_active = True

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.pk = caller.key

    def __str__(self) -> str:
        return self.caller.key


class CallerAuthentication(BaseAuthentication):
    """Answers with a caller, or raises ApiError, which the exception handler of REST tells."""

    def authenticate(self, request: Request) -> tuple[CallerUser, Caller]:
        caller = identity.of_process().identify(asked_of(request._request))  # noqa: SLF001 - theirs
        limits.of_process().take_request(caller)
        return CallerUser(caller), caller

    def authenticate_header(self, _request: Request) -> str:
        return CHALLENGE


def asked_of(request: HttpRequest) -> Asked:
    """Return what a request of Django says of who asks."""
    return Asked(
        method=request.method or "GET",
        headers={name.lower(): value for name, value in request.headers.items()},
        path=request.path,
        query=request.META.get("QUERY_STRING", "").encode("latin-1", "replace"),
        # Behind trusted proxies the middleware has put the client's there.
        address=request.META.get("REMOTE_ADDR") or "",
        is_secure=request.is_secure(),
    )
