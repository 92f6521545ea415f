"""What the environment may say, and how it is told when it makes no sense."""

import os

import pytest

from brokers.config import (
    MAX_CONNECTIONS_PER_IP,
    NUMBERS,
    BrokerConfig,
    ConfigError,
    broker_config,
    environment,
)

NEEDED = {"SAMSA_AGENT_SOCKET": "/run/agent.sock", "SAMSA_LOG_DIR": "/data"}


def test_what_is_not_said_has_a_default() -> None:
    config = broker_config(NEEDED)

    assert config == BrokerConfig(agent_socket="/run/agent.sock", log_dir="/data")
    assert config.advertised_host == "127.0.0.1"
    assert config.number(MAX_CONNECTIONS_PER_IP) == NUMBERS[MAX_CONNECTIONS_PER_IP]


def test_everything_can_be_said() -> None:
    config = broker_config(
        {
            **NEEDED,
            "SAMSA_BIND": "0.0.0.0",  # noqa: S104 - an address in a value, not a socket
            "SAMSA_PORT": "9092",
            "SAMSA_WANTED_ID": "2",
            "SAMSA_ADVERTISE": "kafka.example",
            "SAMSA_INSPECTION_PORT": "9192",
            "SAMSA_SECRET_FILE": "/secret",
            "SAMSA_METRICS_SECRET_FILE": "/metrics",
            "SAMSA_READY_FD": "7",
            "SAMSA_DEFAULTS": '{"max.connections.per.ip": "3"}',
        }
    )

    assert config.advertised_host == "kafka.example"
    assert (config.port, config.inspection_port, config.ready_fd) == (9092, 9192, 7)
    assert (config.secret_file, config.metrics_secret_file) == ("/secret", "/metrics")
    assert config.wanted_id == 2
    assert config.number(MAX_CONNECTIONS_PER_IP) == 3


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])  # noqa: S104 - in a value only
def test_clients_are_never_sent_to_everywhere(everywhere: str) -> None:
    config = broker_config({**NEEDED, "SAMSA_BIND": everywhere})

    assert config.advertised_host == os.uname().nodename


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("SAMSA_LOG_DIR", "", "SAMSA_LOG_DIR is not set"),
        ("SAMSA_PORT", "http", "SAMSA_PORT is 'http', not a number"),
        ("SAMSA_PORT", "-1", "SAMSA_PORT is -1"),
        ("SAMSA_INSPECTION_PORT", "65536", "between 0 .* and 65535"),
        ("SAMSA_DEFAULTS", "{", "SAMSA_DEFAULTS is not JSON"),
        ("SAMSA_DEFAULTS", "[]", "a JSON object of strings"),
        ("SAMSA_DEFAULTS", '{"a": 1}', "a JSON object of strings"),
    ],
)
def test_what_makes_no_sense_is_named_with_its_value(name: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        broker_config({**NEEDED, name: value})


def test_a_limit_that_is_no_number_is_named() -> None:
    config = broker_config({**NEEDED, "SAMSA_DEFAULTS": '{"max.connections.per.ip": "many"}'})

    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip is 'many'"):
        config.number(MAX_CONNECTIONS_PER_IP)


def test_children_get_a_copy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMSA_TEST", "1")

    copy = environment()
    copy["SAMSA_TEST"] = "2"

    assert environment()["SAMSA_TEST"] == "1"
