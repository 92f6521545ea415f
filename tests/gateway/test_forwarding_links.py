"""Links behind a proxy that ends TLS: where the client came, and not where the proxy went."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.addresses import networks
from tests.database import project_home, sqlite_databases
from tests.fakes.broker_thread import broker_beside

project_home()

from tests.builders import tokens  # noqa: E402
from tests.fakes.whole_door import WholeDoor, whole_door  # noqa: E402

pytestmark = pytest.mark.slow
CLUSTER = "the-cluster-of-a-test1"
PROXIED = {"x_forwarded_proto": "https", "x_forwarded_host": "testserver"}


@pytest.fixture(scope="module", params=["127.0.0.1/32", "192.0.2.0/24"])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[WholeDoor, str]]:
    """A door that trusts a proxy, and where its clients are told that it is."""
    folder = tmp_path_factory.mktemp("door")
    with (
        sqlite_databases(folder),
        broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": 1}) as broker,
        whole_door(
            folder, broker.bootstrap, cluster=CLUSTER, trusted=networks([request.param])
        ) as found,
    ):
        found.token = tokens.token(grants=tokens.EVERYTHING)
        is_believed = request.param.startswith("127.")
        yield found, "https://testserver" if is_believed else f"http://127.0.0.1:{found.port}"


def test_links_of_version_3_lead_where_the_client_came(door: tuple[WholeDoor, str]) -> None:
    found, base = door

    topic = asked(found, "GET", f"/v3/clusters/{CLUSTER}/topics/orders")

    assert topic["metadata"]["self"] == f"{base}/v3/clusters/{CLUSTER}/topics/orders"


def test_a_consumer_is_told_to_come_where_the_client_came(door: tuple[WholeDoor, str]) -> None:
    found, base = door

    made = asked(found, "POST", "/rest/consumers/g", {})

    assert made["base_uri"] == f"{base}/rest/consumers/g/instances/{made['instance_id']}"


@pytest.mark.parametrize("call", ["GET /v3/clusters", "POST /rest/consumers/g"])
def test_a_client_that_names_no_host_is_led_to_the_address_that_it_has_reached(
    door: tuple[WholeDoor, str], call: str
) -> None:
    found, _ = door
    head = (
        f"{call} HTTP/1.0\r\nAuthorization: Bearer {found.token}\r\nContent-Length: 2\r\n\r\n{{}}"
    )

    with socket.create_connection(("127.0.0.1", found.port), timeout=60) as link:
        link.sendall(head.encode())
        told = b"".join(iter(lambda: link.recv(65_536), b""))

    assert b" 200 " in told.partition(b"\r\n")[0]
    assert f'"http://127.0.0.1:{found.port}/'.encode() in told


def asked(door: WholeDoor, method: str, target: str, body: object = None) -> Any:
    told = door.ask(method, target, body, media_type="application/vnd.kafka.v2+json", **PROXIED)
    assert told.status == 200, told.body
    return told.json()
