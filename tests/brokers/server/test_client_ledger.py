"""Bytes and requests by client id, of open connections and of those that have closed."""

import asyncio
from dataclasses import dataclass

import pytest

from brokers.clock import SystemClock
from brokers.server import client_ledger
from brokers.server.client_ledger import ClientLedger, ClientRow
from brokers.server.peers import Peer
from brokers.slices import Slices


@dataclass(eq=False)
class Connection:
    client_id: str = "app"
    bytes_in: int = 10
    bytes_out: int = 100
    requests: int = 1
    peer: Peer = Peer(address="127.0.0.1", software="librdkafka", software_version="2.16.0")  # noqa: RUF009 - frozen


def rows(ledger: ClientLedger) -> list[ClientRow]:
    return asyncio.run(ledger.rows(Slices(SystemClock())))


def test_connections_of_one_client_id_are_added_up_open_or_closed() -> None:
    ledger = ClientLedger()
    connections = [Connection() for _ in range(3)]
    for connection in connections:
        ledger.opened(connection)
    ledger.closed(connections[0])
    ledger.closed(connections[0])

    assert rows(ledger) == [("app", "librdkafka", "2.16.0", 2, 30, 300, 3)]


def test_those_with_the_most_traffic_are_told_apart_and_the_rest_is_one_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_ledger, "MAX_TOLD_IDS", 2)
    ledger = ClientLedger()
    for number in range(5):
        ledger.opened(Connection(client_id=f"c{number}", bytes_in=number, bytes_out=0))

    found = rows(ledger)

    assert [row[0] for row in found] == ["c4", "c3", None]
    assert found[-1] == (None, None, None, 3, 0 + 1 + 2, 0, 3)


def test_client_ids_that_closed_longest_ago_are_counted_with_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_ledger, "MAX_CLOSED_IDS", 2)
    ledger = ClientLedger()
    for client_id in ("a", "b", "a", "c"):
        connection = Connection(client_id=client_id)
        ledger.opened(connection)
        ledger.closed(connection)

    found = {row[0]: row[3:] for row in rows(ledger)}

    assert found == {"a": (0, 20, 200, 2), "c": (0, 10, 100, 1), None: (0, 10, 100, 1)}


def test_a_connection_that_closes_while_it_is_counted_is_counted_once() -> None:
    ledger = ClientLedger()
    connections = [Connection() for _ in range(3)]
    for connection in connections:
        ledger.opened(connection)

    class Closing:
        async def breathe(self) -> None:
            for connection in connections:
                ledger.closed(connection)

    found = asyncio.run(ledger.rows(Closing()))  # type: ignore[arg-type]

    assert [row[4:] for row in found] == [(30, 300, 3)]
