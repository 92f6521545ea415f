"""Decides which calls have to name this server by a host name of its own.

A page of another site can make its own name resolve to this machine. What a browser then adds by
itself, the console's session, opens nothing under such a name; a token or password does, since only
its owner can add it.
"""

from collections.abc import Mapping

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http.request import split_domain_port, validate_host

from gateway.forwarding import HOST
from gateway.rest import cookies
from gateway.rest.calls import CALLER, Scope
from gateway.rest.codes import ApiError, Code
from gateway.rest.credentials import asked_of


def check(scope: Scope) -> None:
    """Raise ApiError if a program's call or socket is refused for its host name."""
    if not any(name == b"cookie" for name, _ in scope["headers"]):
        return
    asked = asked_of(scope)
    if "authorization" in asked.headers or not cookies.session_of(asked) or is_ours(asked.headers):
        return
    raise ApiError(
        Code.BAD_REQUEST,
        f"the console's session opens nothing under the name {asked.headers['host'][:253]!r}: use"
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
        host = self.META.get("HTTP_HOST") or f"{self.META['SERVER_NAME']}:{self.get_port()}"
        is_of_program = CALLER in self.scope
        return host if is_of_program and HOST.fullmatch(host) else super().get_host()
