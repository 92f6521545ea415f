"""The raw client keeps as many requests in flight as it was told, and counts whole answers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.blaster import INIT_VERSION, Job, Link, blast, new_producer_id
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.init_producer_id import InitProducerIdResponse
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


def answering(listener: socket.socket, answers: list[InitProducerIdResponse]) -> threading.Thread:
    """Answer one request for a producer id on each connection."""

    def answer() -> None:
        for each in answers:
            link, _address = listener.accept()
            with link:
                link.recv(4096)
                body = b"".join(codec(InitProducerIdResponse, INIT_VERSION).encode(each))
                frame = bytes(4) + b"\0" + body
                link.sendall(len(frame).to_bytes(4, "big") + frame)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    return thread


def test_a_producer_id_is_waited_for_while_the_broker_has_none() -> None:
    answers = [
        InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        InitProducerIdResponse(producer_id=2**60, producer_epoch=0),
    ]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = answering(listener, answers)

        assert new_producer_id("127.0.0.1", listener.getsockname()[1]) == 2**60

        thread.join()


def test_a_refusal_of_a_producer_id_is_told_at_once() -> None:
    answers = [InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = answering(listener, answers)

        with pytest.raises(TimeoutError, match="error 31"):
            new_producer_id("127.0.0.1", listener.getsockname()[1])

        thread.join()
