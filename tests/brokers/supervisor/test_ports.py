"""A port that cannot be had is named, with what it was for and what to do."""

import os
import socket
from collections.abc import Iterator

import pytest

from brokers.supervisor.errors import StartRefused
from brokers.supervisor.ports import answers, is_taken, listen, require_free

LOCAL = "127.0.0.1"


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((LOCAL, 0)) as listener:
        yield int(listener.getsockname()[1])


def test_a_taken_port_is_named(taken: int) -> None:
    with pytest.raises(StartRefused) as refused:
        require_free(LOCAL, taken, "broker-1", "--port")

    assert str(refused.value) == (
        f"port {taken}, meant for broker-1, is taken by another program ({LOCAL}:{taken}):"
        " stop that program or give another --port"
    )


def test_a_port_taken_on_all_addresses_is_taken_on_one() -> None:
    with socket.create_server(("", 0)) as everywhere:
        assert is_taken(LOCAL, everywhere.getsockname()[1])


def test_a_free_port_stays_free_after_the_question() -> None:
    with listen(LOCAL, 0, "x", "--port") as listener:
        port = listener.getsockname()[1]

    assert not is_taken(LOCAL, port)
    assert not is_taken(LOCAL, port)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(
        StartRefused, match=r"--bind 192\.0\.2\.1 is not an address of this machine"
    ):
        require_free("192.0.2.1", 0, "broker-1", "--port")


def test_a_name_that_does_not_resolve_is_refused() -> None:
    with pytest.raises(StartRefused, match=r"--bind no\.such\.invalid is not an address"):
        require_free("no.such.invalid", 0, "broker-1", "--port")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may take every port")
def test_a_port_for_root_is_refused() -> None:
    with pytest.raises(StartRefused, match="port 1, meant for broker-1, is only for root"):
        require_free(LOCAL, 1, "broker-1", "--port")


def test_whether_anybody_answers_is_told(taken: int) -> None:
    assert answers(LOCAL, taken)

    with listen(LOCAL, 0, "x", "--port") as listener:
        port = listener.getsockname()[1]
    assert not answers(LOCAL, port)
