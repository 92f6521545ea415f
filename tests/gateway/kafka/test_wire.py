"""Single questions in Kafka's own bytes, to a broker of ours and to what is none."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.kafka import default_configs
from gateway.kafka.acls import AclRule, Acls
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import ConfigEdit, ResourceKind
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow
EDIT = [ConfigEdit(key="log.retention.ms", value="7777777")]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": 1}) as broker:
        yield Connection(bootstrap=broker.bootstrap, timeout_s=5)


def test_a_config_of_all_brokers_is_set(connection: Connection) -> None:
    admin = Admin(connection)

    admin.alter_configs(ResourceKind.BROKER, "", EDIT)

    [found] = [
        config
        for config in admin.configs(ResourceKind.BROKER, "1")
        if config.key == "log.retention.ms"
    ]
    assert (found.value, found.source) == ("7777777", "DYNAMIC_DEFAULT_BROKER_CONFIG")


def test_a_broker_that_does_not_answer_is_passed_over(connection: Connection) -> None:
    known = Connection(bootstrap=f"127.0.0.1:1,{connection.bootstrap}", timeout_s=5)

    default_configs.alter(known, EDIT, is_dry_run=True)


def test_nobody_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(KafkaFailure, match="BROKER_NOT_AVAILABLE"):
        default_configs.alter(Connection(bootstrap="127.0.0.1:1"), EDIT, is_dry_run=True)


def test_what_says_nothing_is_given_up_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        asked = Connection(bootstrap=address, timeout_s=0.05)

        with pytest.raises(KafkaFailure, match="REQUEST_TIMED_OUT"):
            default_configs.alter(asked, EDIT, is_dry_run=True)


def test_brokers_without_rules_say_so(connection: Connection) -> None:
    anything = AclRule(
        resource_type="ANY",
        resource_name=None,
        pattern_type="ANY",
        principal=None,
        host=None,
        operation="ANY",
        permission="ANY",
    )

    with pytest.raises(KafkaFailure, match="SECURITY_DISABLED"):
        Acls(connection).matching(anything)
