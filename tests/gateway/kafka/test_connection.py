"""A cluster that is not there is a failure with a reason, soon."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from confluent_kafka import KafkaError

from gateway.kafka.admin import Admin
from gateway.kafka.connection import PATIENCE_S, Connection, Deadline, Reach
from gateway.kafka.errors import KafkaFailure, Kind

# What a failure may take beyond what it waits for on purpose, on a machine that is busy.
SLACK_S = 5


@contextmanager
def answering(answer: bytes | None) -> Iterator[str]:
    """Listen, and send the same bytes to whoever speaks; None: never answer."""
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as held:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                held.enter_context(client)
                if answer is not None:
                    # The client may have had enough already.
                    with suppress(OSError):
                        client.recv(1024)
                        client.sendall(answer)
                        client.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        # Wakes the thread out of accept.
        server.shutdown(socket.SHUT_RDWR)
        thread.join(SLACK_S)


def failed_within(bootstrap: str, seconds: float, **options: float | Deadline) -> KafkaFailure:
    started = time.monotonic()
    with pytest.raises(KafkaFailure) as caught:
        Admin(Connection(bootstrap=bootstrap, **options)).topics()  # type: ignore[arg-type]
    assert time.monotonic() - started < seconds
    return caught.value


@pytest.mark.slow
def test_a_port_where_nobody_listens_fails_long_before_the_deadline() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        bootstrap = f"127.0.0.1:{unused.getsockname()[1]}"

        failed = failed_within(bootstrap, PATIENCE_S + SLACK_S)

    assert failed.name == "BROKER_NOT_AVAILABLE"
    assert failed.message == f"{bootstrap}: no broker answers there (connection refused)"
    assert failed.kind is Kind.FAILED


@pytest.mark.slow
def test_a_server_of_another_kind_is_named() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as bootstrap:
        failed = failed_within(bootstrap, PATIENCE_S + SLACK_S)

    assert "speaks HTTP, not Kafka" in failed.message


@pytest.mark.slow
def test_a_server_that_never_answers_costs_the_deadline_and_no_more() -> None:
    with answering(None) as bootstrap:
        failed = failed_within(bootstrap, 1 + SLACK_S, timeout_s=1.0)

    assert failed.name == "REQUEST_TIMED_OUT"
    assert failed.kind is Kind.TIMEOUT


def test_a_property_that_does_not_exist_is_named() -> None:
    with pytest.raises(KafkaFailure, match=r"no\.such") as caught:
        Admin(Connection(bootstrap="127.0.0.1:1", properties={"no.such": "1"}))

    assert caught.value.kind is Kind.USAGE


def test_a_connection_shows_no_secret() -> None:
    connection = Connection(bootstrap="a:1", properties={"sasl.password": "hunter2"})

    assert "hunter2" not in repr(connection)


def test_one_address_that_is_refused_is_not_a_cluster_that_is_away() -> None:
    """A name has an IPv4 and an IPv6 address, and brokers often listen on one of them."""
    reach = Reach("localhost:9092")

    reach.note(KafkaError(KafkaError._ALL_BROKERS_DOWN))  # noqa: SLF001 - a documented constant

    assert not reach.is_down()


def test_an_answer_takes_back_that_a_cluster_was_away() -> None:
    reach = Reach("localhost:9092")
    reach.note(KafkaError(KafkaError._ALL_BROKERS_DOWN))  # noqa: SLF001 - a documented constant

    reach.heard()

    assert reach.down_seconds() == 0


def test_a_deadline_never_says_zero_which_librdkafka_takes_for_no_limit() -> None:
    deadline = Deadline(0)

    assert deadline.is_over()
    assert deadline.left() > 0


def test_all_calls_together_end_with_the_connection() -> None:
    ending = Connection(bootstrap="127.0.0.1:1", timeout_s=60, until=Deadline(0.05))
    shorter = Connection(bootstrap="127.0.0.1:1", timeout_s=0.05, until=Deadline(60))

    assert ending.deadline().left() <= 0.05
    assert shorter.deadline().left() <= 0.05
    assert failed_within("127.0.0.1:1", SLACK_S, timeout_s=60, until=Deadline(0.05)).name
