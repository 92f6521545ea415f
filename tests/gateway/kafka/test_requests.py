"""Single requests over the brokers' codec, to a broker of ours and to servers that are none."""

import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from brokers.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from gateway.kafka import default_configs
from gateway.kafka.acls import AclRule, Acls
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.requests import ask
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


def test_unreachable_broker_is_passed_over(connection: Connection) -> None:
    known = Connection(bootstrap=f"127.0.0.1:1,{connection.bootstrap}", timeout_s=5)

    default_configs.alter(known, EDIT, is_dry_run=True)


def test_unreachable_cluster_is_a_failure() -> None:
    with pytest.raises(KafkaFailure, match="BROKER_NOT_AVAILABLE"):
        default_configs.alter(Connection(bootstrap="127.0.0.1:1"), EDIT, is_dry_run=True)


def test_silent_server_is_given_up_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        asked = Connection(bootstrap=address, timeout_s=0.05)

        with pytest.raises(KafkaFailure, match="REQUEST_TIMED_OUT"):
            default_configs.alter(asked, EDIT, is_dry_run=True)


def test_brokers_without_security_are_a_failure(connection: Connection) -> None:
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


@pytest.mark.parametrize(
    "answer",
    [
        # An array and a string that are longer than the answer, a part of one, and a second one.
        struct.pack(">iii", 1, 0, 2**31 - 1),
        struct.pack(">iiihh", 1, 0, 1, 0, 32_000),
        struct.pack(">ii", 1, 0),
        struct.pack(">iii", 1, 0, 0) + b"more",
    ],
)
def test_malformed_answer_is_a_failure(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            link, _ = server.accept()
            with link:
                link.recv(1024)
                link.sendall(struct.pack(">i", len(answer)) + answer)

        thread = threading.Thread(target=serve)
        thread.start()
        asked = Connection(bootstrap=f"127.0.0.1:{server.getsockname()[1]}", timeout_s=5)

        with pytest.raises(KafkaFailure, match="BROKER_NOT_AVAILABLE"):
            ask(asked, DescribeGroupsRequest(), DescribeGroupsResponse, "groups", version=1)
        thread.join()


def test_value_that_no_request_can_carry_is_refused() -> None:
    edits = [ConfigEdit(key="log.retention.ms", value="x" * 40_000)]

    with pytest.raises(KafkaFailure, match="INVALID_REQUEST"):
        default_configs.alter(Connection(bootstrap="127.0.0.1:1"), edits, is_dry_run=True)


def test_brokers_with_a_login_are_not_asked(connection: Connection) -> None:
    secured = replace(connection, properties={"security.protocol": "SASL_PLAINTEXT"})

    with pytest.raises(KafkaFailure, match="UNSUPPORTED_VERSION"):
        default_configs.describe(secured)
