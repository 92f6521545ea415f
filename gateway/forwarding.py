"""Takes the scheme and the name by which a client came from a trusted proxy, for all behind it.

A proxy that ends TLS speaks clear text to us and may ask by a name of its own. What it says of the
client's side is what links, cookies and checks of origins have to go by; what anybody else says of
that is not looked at.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from gateway.addresses import Network, is_within, said_by_trusted
from gateway.health import Application, Receive, Scope, Send

WAY: Final = b"x-forwarded-for"
# Names of a few proxies in a row; what is longer has been made up in its beginning.
MAX_CHARS: Final = 2_048
# A name or an address, and a port; Django compares it with the names that it goes by.
HOST: Final = re.compile(
    r"[A-Za-z0-9._\-]{1,255}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?"
)
SCHEMES: Final = {"http": {"http": "http", "https": "https"}, "ws": {"http": "ws", "https": "wss"}}


class Forwarded:
    """An ASGI application around another one."""

    def __init__(self, application: Application, trusted: Sequence[Network]) -> None:
        self._application = application
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_asked = scope["type"] in {"http", "websocket"}
        seen = as_client_sees(scope, self._trusted) if is_asked and self._trusted else scope
        await self._application(seen, receive, send)


def as_client_sees(scope: Scope, trusted: Sequence[Network]) -> Scope:
    """Return a scope with the scheme and the Host that the client used, as far as a proxy says."""
    peer = (scope.get("client") or ("",))[0]
    if not is_within(peer, trusted):
        return scope
    way = _header(scope, WAY)
    changed: dict[str, Any] = {}
    schemes = SCHEMES["ws" if scope["type"] == "websocket" else "http"]
    proto = said_by_trusted(_header(scope, b"x-forwarded-proto"), peer, way, trusted)
    if proto is not None and (scheme := schemes.get(proto.lower())):
        changed["scheme"] = scheme
    host = said_by_trusted(_header(scope, b"x-forwarded-host"), peer, way, trusted)
    told = {WAY: way.encode("latin-1")}
    if host is not None and HOST.fullmatch(host):
        told[b"host"] = host.encode("ascii")
    others = [pair for pair in scope["headers"] if pair[0].lower() not in told]
    # One list of addresses: of several, readers would take the first one, which a client can send.
    return {**scope, **changed, "headers": [*told.items(), *others]}


def _header(scope: Scope, name: bytes) -> str:
    """Return a header; one that comes several times as one list.

    Of one that is too long, its end: that is what proxies add, and what is before it anybody sends.
    """
    found = b",".join(value for key, value in scope["headers"] if key.lower() == name)
    if len(found) > MAX_CHARS:
        _cut, _, found = found[-MAX_CHARS:].partition(b",")
    return found.decode("latin-1")
