"""A URL says where the database is, and neither a secret nor a file of the host."""

import pytest

from connectors.plugins.postgres.addresses import parse_address, problem


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jdbc:postgresql://db:5433/orders", ("db", 5433, "orders", "", "prefer")),
        ("postgresql://me@db/a%20b?sslmode=require", ("db", 5432, "a b", "me", "require")),
        ("jdbc:postgresql://db/x?user=me&ssl=true", ("db", 5432, "x", "me", "require")),
        ("postgres://[::1]:1/x", ("::1", 1, "x", "", "prefer")),
    ],
)
def test_a_url_is_taken_apart(text: str, told: tuple[str, int, str, str, str]) -> None:
    address = parse_address(text)

    assert (
        address.host,
        address.port,
        address.database,
        address.user,
        address.ssl_mode,
    ) == told


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mysql://db/x", "write jdbc:postgresql"),
        ("postgresql://me:secret@db/x", "connection.password"),
        ("postgresql://db/x?password=secret", "connection.password"),
        ("postgresql:///x?host=/var/run", "names one host"),
        ("postgresql://a,b/x", "names one host"),
        ("postgresql://db/x?sslkey=/etc/ssl/private/key", "sslkey is not served"),
        ("postgresql://db/x?service=other", "service is not served"),
        ("postgresql://db/", "name of a database"),
        ("postgresql://db:99999/x", "cannot be read"),
        ("postgresql://db/x?sslmode=maybe", "not one of disable"),
    ],
)
def test_what_a_url_may_not_have_is_named_without_its_secret(text: str, reason: str) -> None:
    told = problem(text)

    assert told is not None
    assert reason in told
    assert "secret" not in told
