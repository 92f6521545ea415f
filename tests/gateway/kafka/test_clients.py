"""Settings of clients: what each gets, and which of several settings wins."""

import pytest

from gateway.kafka import clients
from gateway.kafka.connection import Connection, Reach

HERE = "127.0.0.1:1"


def settings(*uses: clients.Settings, **properties: str) -> dict[str, object]:
    connection = Connection(
        bootstrap=HERE,
        client_id="a-program",
        properties={name.replace("_", "."): value for name, value in properties.items()},
    )
    return clients.settings_of(connection, Reach(HERE), *uses)


def test_client_has_the_address_and_id_of_its_connection() -> None:
    found = settings()

    assert (found["bootstrap.servers"], found["client.id"]) == (HERE, "a-program")


def test_later_use_wins_over_earlier_ones_and_properties_over_all() -> None:
    found = settings({"a": 1, "b": 1, "c": 1}, {"b": 2, "c": 2}, c="3")

    assert (found["a"], found["b"], found["c"]) == (1, 2, "3")


@pytest.mark.parametrize(
    ("properties", "is_idempotent"),
    [({}, True), ({"linger.ms": "1"}, True), ({"acks": "1"}, False)],
)
def test_producer_is_idempotent_unless_a_property_rules_it_out(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], is_idempotent: bool
) -> None:
    given: list[dict[str, object]] = []
    monkeypatch.setattr(clients, "Producer", given.append)
    connection = Connection(bootstrap=HERE, properties=properties)

    clients.make_producer(connection, Reach(HERE), clients.WRITES, delivery_s=1)

    assert given[0]["enable.idempotence"] is is_idempotent
    assert given[0]["message.timeout.ms"] == 1000
