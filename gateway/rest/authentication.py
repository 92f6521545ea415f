"""Gives Django REST framework views the caller that `gateway.dispatch` has authenticated."""

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from gateway.access.callers import Caller
from gateway.rest.calls import CALLER
from gateway.rest.codes import ApiError


class CallerUser:
    """The user object for REST framework; views read `request.auth`, the Caller."""

    is_authenticated = True
    is_active = True

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.pk = caller.key

    def __str__(self) -> str:
        return self.caller.key


class CallerAuthentication(BaseAuthentication):
    """Returns a caller, or raises ApiError, which REST framework's exception handler answers."""

    def authenticate(self, request: Request) -> tuple[CallerUser, Caller]:
        found: Caller | ApiError = request._request.scope[CALLER]  # type: ignore[attr-defined]  # noqa: SLF001 - theirs
        if isinstance(found, ApiError):
            raise found
        return CallerUser(found), found
