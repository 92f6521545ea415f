"""Takes the client's scheme and host from a trusted proxy, for the application behind it.

A proxy that terminates TLS connects in clear text and may use a host name of its own. Links,
cookies and origin checks need the client's side as such a proxy reports it; what any other peer
reports is ignored.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from gateway.addresses import Network, is_within, said_by_trusted
from gateway.health import Application, Receive, Scope, Send

WAY: Final = b"x-forwarded-for"
# Names of a few proxies in a row; the beginning of a longer header is forged.
MAX_CHARS: Final = 2_048
# A name or an address, and a port; Django compares it with its allowed hosts.
HOST: Final = re.compile(
    r"[A-Za-z0-9._\-]{1,255}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?"
)
SCHEMES: Final = {"http": {"http": "http", "https": "https"}, "ws": {"http": "ws", "https": "wss"}}


class Forwarded:
    """ASGI middleware."""

    def __init__(self, application: Application, trusted: Sequence[Network]) -> None:
        self._application = application
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_asked = scope["type"] in {"http", "websocket"}
        seen = as_client_sees(scope, self._trusted) if is_asked and self._trusted else scope
        await self._application(seen, receive, send)


def as_client_sees(scope: Scope, trusted: Sequence[Network]) -> Scope:
    """Return a scope with the scheme and Host of the client, as far as a proxy reports them."""
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
    # One header of addresses: of several, readers would take the first, which a client can send.
    return {**scope, **changed, "headers": [*told.items(), *others]}


def _header(scope: Scope, name: bytes) -> str:
    """Return a header; repeated ones as one list.

    Only the end of a longer one: proxies append there, while any client can send the beginning.
    """
    found = b",".join(value for key, value in scope["headers"] if key.lower() == name)
    if len(found) > MAX_CHARS:
        _cut, _, found = found[-MAX_CHARS:].partition(b",")
    return found.decode("latin-1")
