"""The scheme and the name by which a client came, from proxies that are trusted and no others."""

import asyncio
from typing import Any

import pytest

from gateway.addresses import client_address, networks
from gateway.forwarding import MAX_CHARS, Forwarded
from gateway.health import Receive, Scope, Send

TRUSTED = networks(["10.0.0.7"])


def seen(
    *headers: tuple[bytes, bytes], peer: str = "10.0.0.7", kind: str = "http", scheme: str = "http"
) -> tuple[str, list[bytes]]:
    """Return the scheme and the Host headers that reach the application."""
    scope = reached(*headers, peer=peer, kind=kind, scheme=scheme)
    return scope["scheme"], [value for name, value in scope["headers"] if name == b"host"]


def reached(
    *headers: tuple[bytes, bytes], peer: str = "10.0.0.7", kind: str = "http", scheme: str = "http"
) -> Scope:
    found: list[Scope] = []

    async def application(scope: Scope, _receive: Receive, _send: Send) -> None:
        found.append(scope)

    async def nothing(*_: Any) -> Any:
        raise AssertionError("nobody speaks")

    scope = {
        "type": kind,
        "scheme": scheme,
        "client": (peer, 50_000) if peer else None,
        "headers": [(b"host", b"inner:8082"), *headers],
    }
    asyncio.run(Forwarded(application, TRUSTED)(scope, nothing, nothing))
    return found[0]


HTTPS = (b"x-forwarded-proto", b"https")
NAMED = (b"x-forwarded-host", b"kafka.example:8443")


def test_a_trusted_proxy_says_how_the_client_came() -> None:
    assert seen(HTTPS, NAMED) == ("https", [b"kafka.example:8443"])


def test_a_socket_is_one_over_tls() -> None:
    assert seen(HTTPS, kind="websocket", scheme="ws")[0] == "wss"


@pytest.mark.parametrize("peer", ["192.0.2.1", "127.0.0.1", ""])
def test_nobody_else_is_believed(peer: str) -> None:
    assert seen(HTTPS, NAMED, peer=peer) == ("http", [b"inner:8082"])


def test_a_proxy_that_says_nothing_changes_nothing() -> None:
    assert seen() == ("http", [b"inner:8082"])


@pytest.mark.parametrize(
    "header",
    [
        (b"x-forwarded-proto", b"javascript"),
        (b"x-forwarded-proto", b"https" * 1_000),
        (b"x-forwarded-host", b""),
        (b"x-forwarded-host", b"a b"),
        (b"x-forwarded-host", b"evil.example/path"),
        (b"x-forwarded-host", b"user@evil.example"),
        (b"x-forwarded-host", "schlüssel.example".encode()),
        (b"x-forwarded-host", b"a" * 256),
        (b"x-forwarded-host", b"a.example:123456"),
        (b"x-forwarded-host", b"[::1"),
    ],
)
def test_what_is_no_scheme_or_no_name_is_not_taken(header: tuple[bytes, bytes]) -> None:
    assert seen(header) == ("http", [b"inner:8082"])


def test_the_last_of_several_headers_is_the_proxys() -> None:
    forged = (b"x-forwarded-host", b"evil.example")

    assert seen(forged, NAMED) == ("http", [b"kafka.example:8443"])


def test_of_several_lists_of_addresses_a_client_sends_none() -> None:
    forged = (b"x-forwarded-for", b"127.0.0.1")
    added = (b"X-Forwarded-For", b"198.51.100.9")

    headers = reached(forged, added)["headers"]

    assert [value for name, value in headers if name.lower() == b"x-forwarded-for"] == [
        b"127.0.0.1,198.51.100.9"
    ]


def test_of_a_way_that_is_too_long_the_end_counts() -> None:
    made_up = b", ".join([b"198.51.100.1"] * 1_000)
    scope = reached((b"x-forwarded-for", made_up + b", 192.0.2.9"))
    way = dict(scope["headers"])[b"x-forwarded-for"].decode()
    assert len(way) <= MAX_CHARS
    assert client_address("10.0.0.7", way, TRUSTED) == "192.0.2.9"


def test_a_header_that_is_one_long_word_says_nothing() -> None:
    scope = reached((b"x-forwarded-for", b"1" * (MAX_CHARS + 1)))
    assert dict(scope["headers"])[b"x-forwarded-for"] == b""
