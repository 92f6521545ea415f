"""Clients are lent to few at a time, and those in doubt are not lent again."""

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.pool import Pool


def pool(*, max_clients: int = 1, wait_s: float = 0.01) -> Pool:
    return Pool(lambda: Connection(bootstrap="127.0.0.1:1"), max_clients=max_clients, wait_s=wait_s)


def test_clients_are_lent_again() -> None:
    lender = pool()

    with lender.borrowed() as first:
        pass
    with lender.borrowed() as second:
        assert second is first


def test_clients_whose_answer_did_not_come_are_replaced() -> None:
    lender = pool()

    with pytest.raises(KafkaFailure), lender.borrowed() as first:
        raise failure("REQUEST_TIMED_OUT", "topic a")
    with pytest.raises(KafkaFailure), lender.borrowed() as second:
        raise failure("UNKNOWN_TOPIC_OR_PARTITION", "topic a")
    with lender.borrowed() as third:
        assert first is not second
        assert third is second


def test_who_waits_too_long_is_told() -> None:
    lender = pool()

    with (
        lender.borrowed(),
        pytest.raises(KafkaFailure, match="all of its 1 clients were busy"),
        lender.borrowed(),
    ):
        pass


def test_a_connection_that_is_not_known_yet_leaves_the_place_free() -> None:
    def unknown() -> Connection:
        raise OSError

    lender = Pool(unknown, max_clients=1, wait_s=0.01)

    for _ in range(2):
        with pytest.raises(OSError), lender.borrowed():
            pass


def test_clients_are_lent_again_after_what_is_no_fault_of_theirs() -> None:
    lender = pool()

    with pytest.raises(PermissionError), lender.borrowed() as first:
        raise PermissionError
    with lender.borrowed() as second:
        assert second is first


def test_clients_are_lent_to_who_has_their_name() -> None:
    lender = pool(max_clients=2)

    with lender.borrowed() as plain:
        pass
    with lender.borrowed("for alice") as named:
        assert named.admin._connection.client_id == "for alice"  # noqa: SLF001 - what brokers see
    for name, wanted in (("", plain), ("for alice", named)):
        with lender.borrowed(name) as found:
            assert found is wanted


def test_another_name_takes_the_place_of_the_one_that_nobody_wants() -> None:
    lender = pool(max_clients=2)
    kept = []
    for name in ("a", "b", "c"):
        with lender.borrowed(name) as clients:
            kept.append(clients)

    with lender.borrowed("b") as second, lender.borrowed("a") as first:
        assert second is kept[1]
        assert first is not kept[0]
