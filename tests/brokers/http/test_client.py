"""The blocking client and the server of this room, over a unix socket."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brokers.clock import SystemClock
from brokers.http.address import Address
from brokers.http.client import Connection
from brokers.http.protocol import NoResponse, ResponseTooLarge
from brokers.http.server import TEXT, Exchange, Limits, Page, Request, Server

LIMITS = Limits(connections=2, fields=3, page_seconds=10.0, body_bytes=4)


async def answer(request: Request, exchange: Exchange) -> None:
    def pieces() -> Iterator[str]:
        yield f"{request.method} {request.path} {dict(request.query)} {request.body!r} "
        yield "x" * len(request.path)

    await exchange.send(Page(200, TEXT, pieces()))


def with_server(tmp_path: Path, story: Callable[[Connection], None]) -> None:
    async def whole() -> None:
        server, path = Server(answer, limits=LIMITS, clock=SystemClock()), tmp_path / "s"
        await server.open_socket(path)
        connection = Connection(Address(path=path), wait_seconds=10.0, max_bytes=100)
        try:
            await asyncio.to_thread(story, connection)
        finally:
            connection.close()
            await server.close()

    asyncio.run(whole())


def test_one_connection_carries_requests_with_and_without_a_body(tmp_path: Path) -> None:
    def story(connection: Connection) -> None:
        first = connection.exchange("GET", "/a?b=1&b=2")
        second = connection.exchange("POST", "/", body=b"1234")
        third = connection.exchange("POST", "/", body=b"12345")

        assert first.body == b"GET /a {'b': ['1', '2']} b'' xx"
        assert second.body == b"POST / {} b'1234' x"
        assert third.body == b"POST / {} None x", "a body beyond the limit is not kept"

    with_server(tmp_path, story)


def test_server_refuses_targets_that_it_cannot_parse(tmp_path: Path) -> None:
    def story(connection: Connection) -> None:
        found = [connection.exchange("GET", target) for target in ("//[", "/?a=1&b=2&c=3&d=4")]

        assert [response.status for response in found] == [400, 400]
        assert b"'//[' is not the address of a page" in found[0].body
        assert b"may have 3 fields" in found[1].body

    with_server(tmp_path, story)


def test_body_beyond_the_limit_ends_the_connection(tmp_path: Path) -> None:
    def story(connection: Connection) -> None:
        with pytest.raises(ResponseTooLarge, match="more than 100 bytes"):
            connection.exchange("GET", "/" + "x" * 100)

        assert connection.exchange("GET", "/").status == 200

    with_server(tmp_path, story)


def test_cut_connection_is_opened_again_and_a_missing_server_is_named(tmp_path: Path) -> None:
    def story(connection: Connection) -> None:
        assert connection.exchange("GET", "/").status == 200
        connection.cut()
        assert connection.exchange("GET", "/").status == 200

    with_server(tmp_path, story)
    with pytest.raises(NoResponse, match="No such file"):
        Connection(Address(path=tmp_path / "t"), wait_seconds=1.0, max_bytes=1).exchange("GET", "/")


@pytest.mark.parametrize(
    ("address", "authority"),
    [
        (Address(host="h", port=80), "h"),
        (Address(host="h", port=8080), "h:8080"),
        (Address(host="::1", port=8080), "[::1]:8080"),
        (Address(path=Path("s")), "localhost"),
    ],
)
def test_host_header_names_the_port_where_it_is_not_the_default(
    address: Address, authority: str
) -> None:
    assert address.authority == authority
