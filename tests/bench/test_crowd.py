"""A crowd of idle connections is there, from many addresses, and is missed when it is not."""

import socket
from pathlib import Path

import pytest

from bench.crowd import ADDRESSES, closed, crowd, possible
from tests.fakes.broker_thread import BesideBroker, broker_beside

pytestmark = pytest.mark.slow

COUNT = 120


def addresses(beside: BesideBroker) -> dict[str, int]:
    found: dict[str, int] = {}
    for client in list(beside.running.broker.listener.clients):
        found[client.peer.address] = found.get(client.peer.address, 0) + 1
    return found


def test_every_connection_has_been_answered_and_stays(tmp_path: Path) -> None:
    with (
        broker_beside(tmp_path) as beside,
        crowd(beside.running.host, beside.running.port, COUNT) as links,
    ):
        seen = addresses(beside)

        assert len(links) == COUNT
        assert sum(seen.values()) == COUNT
        assert len(seen) == ADDRESSES
        assert closed(links) == 0


def test_a_connection_that_the_broker_closed_is_a_failure(tmp_path: Path) -> None:
    def lose_one() -> None:
        host, port = beside.running.host, beside.running.port
        with crowd(host, port, 3) as links:
            links[1].shutdown(socket.SHUT_WR)
            # The broker closes its side, which is the news that this one waits for.
            assert links[1].recv(1) == b""

    with broker_beside(tmp_path) as beside, pytest.raises(AssertionError, match="1 of 3 idle"):
        lose_one()


def test_no_more_connections_are_tried_than_descriptors_allow() -> None:
    assert possible(10) == 10
    assert possible(2**40) < 2**40
