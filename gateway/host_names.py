"""Decides which calls have to name this server by a host name of its own.

A page of another site can make its own name resolve to this machine. What a browser then adds by
itself, the console's session, opens nothing under such a name; a token or password does, since only
its owner can add it.
"""

from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http.request import split_domain_port, validate_host

from gateway.forwarding import HOST
from gateway.rest import cookies
from gateway.rest.calls import CALLER, Scope, own_address
from gateway.rest.codes import ApiError, Code
from gateway.rest.credentials import asked_of

# Of a header that is refused, in its error.
SHOWN: Final = 80


def check(scope: Scope) -> None:
    """Raise ApiError if a program's call or socket is refused for its host name."""
    host = next((value for name, value in scope["headers"] if name == b"host"), None)
    if host and not HOST.fullmatch(host.decode("latin-1")):
        raise ApiError(
            Code.BAD_REQUEST,
            f"the header Host is {host[:SHOWN].decode('latin-1')!r}: give a name or an address,"
            " and a port if it is not the usual one",
        )
    if not any(name == b"cookie" for name, _ in scope["headers"]):
        return
    asked = asked_of(scope)
    if "authorization" in asked.headers or not cookies.session_of(asked) or is_ours(asked.headers):
        return
    raise ApiError(
        Code.BAD_REQUEST,
        f"the console's session is not valid under the name {asked.headers['host'][:253]!r}: use"
        " the address that `./samsa status` shows, start the home with the name in"
        " SAMSA_ALLOWED_HOSTS, or use a token",
    )


def is_ours(headers: Mapping[str, str]) -> bool:
    """Tell whether a call names this server as its operator does, or not at all."""
    # Browsers always send it.
    host = headers.get("host")
    if host is None:
        return True
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


class Request(ASGIRequest):
    """A request of Django, which compares its host name unless `check` has done so."""

    def get_host(self) -> str:
        if CALLER not in self.scope:
            return super().get_host()
        return self.META.get("HTTP_HOST") or own_address(self.scope)
