"""The table of APIs against the messages it names."""

import subprocess
import sys

import pytest

from brokers.protocol.apis import API_TABLE, APIS, Api

# Keys of Kafka 4.3's broker listener that only controllers speak, and keys that 4.0 removed.
NOT_ON_A_BROKER_LISTENER = {4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}


def test_the_table_holds_every_key_of_a_broker_listener_in_order() -> None:
    expected = [key for key in range(93) if key not in NOT_ON_A_BROKER_LISTENER]

    assert [api.key for api in API_TABLE] == expected
    assert list(APIS) == expected


@pytest.mark.parametrize("api", API_TABLE, ids=lambda api: api.name)
def test_a_row_agrees_with_its_messages(api: Api) -> None:
    for message in (api.request, api.response):
        assert api.key == message.KEY
        assert api.versions == message.VERSIONS
        assert api.flexible == message.FLEXIBLE


def test_produce_is_advertised_from_zero_and_served_from_three() -> None:
    """KAFKA-18659: librdkafka drops compression where it does not see version 0."""
    produce = APIS[0]

    assert produce.advertised == (0, 13)
    assert not produce.serves(2)
    assert produce.serves(3)


def test_importing_the_table_imports_no_message() -> None:
    program = (
        "import sys, brokers.protocol.apis\n"
        "print([name for name in sys.modules if name.startswith('brokers.protocol.messages.')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
