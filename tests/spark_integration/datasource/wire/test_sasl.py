"""A login by steps, with the exchange of RFC 7677 as the example."""

from collections.abc import Generator

import pytest

from spark_integration.datasource.wire import sasl
from spark_integration.datasource.wire.errors import Refused
from spark_integration.datasource.wire.settings import Login

NONCE = "rOprNGfwEbeRWgbNEkqO"
LOGIN = Login(mechanism="SCRAM-SHA-256", user="user", password="pencil")  # noqa: S106 (an RFC's)
FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_plain_says_user_and_password() -> None:
    login = Login(mechanism="PLAIN", user="alice", password="secret")  # noqa: S106 (made up)

    assert list(sasl.steps(login)) == [b"\0alice\0secret"]


def test_scram_proves_the_password_and_checks_the_brokers_proof() -> None:
    exchange = sasl.steps(LOGIN, nonce=NONCE)

    assert next(exchange) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert exchange.send(FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    with pytest.raises(StopIteration):
        exchange.send(FINAL)


@pytest.mark.parametrize(
    ("first", "final", "said"),
    [
        (FIRST.replace(b"r=rO", b"r=xx"), FINAL, "lacks the client's nonce"),
        (FIRST.replace(b"i=4096", b"i=1"), FINAL, "requests 1 SCRAM iterations"),
        (FIRST.replace(b"i=4096", b"i=99999999"), FINAL, "requests 99999999 SCRAM iterations"),
        (FIRST.replace(b"s=W2", b"s=?2"), FINAL, "or a salt"),
        (b"\xff\xfe", FINAL, "lacks the client's nonce"),
        (FIRST, b"v=AAAA", "did not prove"),
        (FIRST, b"e=other-error", "error other-error"),
    ],
    ids=["nonce", "too few", "too many", "salt", "bytes", "proof", "error"],
)
def test_scram_refuses_a_broker_that_does_not_play_by_the_rules(
    first: bytes, final: bytes, said: str
) -> None:
    exchange = sasl.steps(LOGIN, nonce=NONCE)
    next(exchange)

    with pytest.raises(Refused, match=said):
        hear(exchange, first, final)


def hear(exchange: Generator[bytes, bytes, None], *answers: bytes) -> None:
    for answer in answers:
        exchange.send(answer)
