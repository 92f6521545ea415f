"""Authenticates calls of Django REST framework views: the same callers as those of bare calls."""

from functools import cache
from threading import Lock
from typing import Final

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from gateway.access.callers import Caller
from gateway.rest import identity, limits
from gateway.rest.codes import ApiError, Code
from gateway.rest.credentials import Asked
from gateway.rest.identity import Identity
from gateway.rest.strangers import Strangers

CHALLENGE: Final = 'Basic realm="Samsa", charset="UTF-8"'


class CallerUser:
    """The user object for REST framework; views read `request.auth`, the Caller."""

    is_authenticated = True
    is_active = True

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.pk = caller.key

    def __str__(self) -> str:
        return self.caller.key


class Gate:
    """Authenticates callers of views within the limits of their address. Thread-safe.

    Views are counted separately from bare calls.
    """

    def __init__(self, known: Identity, strangers: Strangers) -> None:
        self._known = known
        self._strangers = strangers
        self._lock = Lock()

    def admitted(self, asked: Asked) -> Caller:
        """Return the caller. Raises ApiError if it is unknown, or if its address has to wait."""
        key = self._known.key_of(asked)
        if (caller := self._known.remembered(key)) is not None:
            return caller
        # Callers known some minutes ago never wait for clients that try made-up credentials.
        is_new = not self._known.was_known(key)
        with self._lock:
            if is_new:
                self._strangers.check(key)
                self._strangers.enter(asked.address)
        try:
            caller = self._known.identify(asked)
        except ApiError as error:
            if error.code is Code.NOT_AUTHENTICATED:
                with self._lock:
                    self._strangers.refuse(key, error)
            raise
        if is_new:
            with self._lock:
                self._strangers.found(asked.address)
        return caller


@cache
def gate() -> Gate:
    return Gate(identity.of_process(), Strangers())


class CallerAuthentication(BaseAuthentication):
    """Returns a caller, or raises ApiError, which REST framework's exception handler answers."""

    def authenticate(self, request: Request) -> tuple[CallerUser, Caller]:
        caller = gate().admitted(asked_of(request._request))  # noqa: SLF001 - theirs
        limits.of_process().take_request(caller)
        return CallerUser(caller), caller

    def authenticate_header(self, _request: Request) -> str:
        return CHALLENGE


def asked_of(request: HttpRequest) -> Asked:
    """Return the credentials and address of a Django request."""
    return Asked(
        method=request.method or "GET",
        headers={name.lower(): value for name, value in request.headers.items()},
        path=request.path,
        query=request.META.get("QUERY_STRING", "").encode("latin-1", "replace"),
        # Behind trusted proxies, the middleware has replaced it with the client's address.
        address=request.META.get("REMOTE_ADDR") or "",
        is_secure=request.is_secure(),
    )
