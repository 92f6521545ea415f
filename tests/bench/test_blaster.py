"""The raw client keeps as many requests in flight as it was told, and counts whole answers."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.blaster import Job, Link, blast
from tests.fakes.broker_thread import broker_beside

ANSWER = (6).to_bytes(4, "big") + b"answer"


@contextmanager
def linked() -> Iterator[tuple[Link, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        link = Link(listener.getsockname(), iter([b"one", b"two", b"three"]))
        with listener.accept()[0] as broker, link.socket:
            yield link, broker


def test_answers_are_counted_once_they_are_whole() -> None:
    buffer = memoryview(bytearray(100))
    with linked() as (link, broker):
        broker.sendall(ANSWER + ANSWER + ANSWER[:7])
        assert link.receive(buffer) == (27, 2)
        broker.sendall(ANSWER[7:])
        assert link.receive(buffer) == (3, 1)
        broker.sendall(ANSWER)
        assert link.receive(buffer) == (10, 1)


def test_a_connection_without_requests_left_sends_nothing() -> None:
    with linked() as (link, _broker):
        assert [link.send() for _ in range(4)] == [3, 3, 5, 0]
        assert len(link.sent_ns) == 3


def test_a_broker_that_hangs_up_is_told_of() -> None:
    with linked() as (link, broker):
        broker.close()
        with pytest.raises(ConnectionError):
            link.receive(memoryview(bytearray(10)))


@pytest.mark.parametrize("in_flight", [1, 5])
def test_every_request_writes_its_record(tmp_path: Path, in_flight: int) -> None:
    with broker_beside(tmp_path, topics={"blast": 2}) as beside:
        job = Job(
            host=beside.running.host,
            port=beside.running.port,
            kind="produce",
            connections=3,
            seconds=0.2,
            topic="blast",
            partitions=2,
            in_flight=in_flight,
        )
        seen = blast(job)
        replicas = beside.running.broker.replicas
        written = sum(replicas.leader("blast", index).log.end_offset for index in range(2))
    assert seen.requests == written
    assert seen.requests >= 3 * in_flight
