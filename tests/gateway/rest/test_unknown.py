"""A method that an address does not take is told with those that it takes."""

import time
from collections.abc import Iterator

import pytest

from gateway.rest.traffic import STRANGERS
from tests.database import sqlite_databases
from tests.fakes.broker_thread import broker_beside
from tests.fakes.whole_door import Told, WholeDoor, whole_door

pytestmark = pytest.mark.slow

COUNTED_S = 30
CLUSTER = "the-cluster-of-a-test1"
C = f"/v3/clusters/{CLUSTER}"
CONSUMER = "/rest/consumers/g/instances/i"
ALLOWED = {
    ("GET", f"{C}/topics/orders/records"): "POST",
    ("DELETE", f"/kafka{C}/topics/a%2Fb/records:batch"): "POST",
    ("PUT", f"{C}/topics/orders"): "DELETE, GET, HEAD, PATCH",
    ("PUT", f"{C}/topics/-/configs:alter"): "POST",
    ("PUT", "/rest/topics/orders"): "GET, HEAD, POST",
    ("DELETE", "/rest/topics/orders/partitions/0"): "GET, HEAD, POST",
    ("GET", "/rest/consumers/g"): "POST",
    ("GET", CONSUMER): "DELETE",
    ("PUT", f"{CONSUMER}/subscription"): "DELETE, GET, POST",
    ("POST", f"{CONSUMER}/records"): "GET",
    ("POST", "/rest/v1/topics/orders/records"): "GET",
    ("POST", "/v3/openapi.json"): "GET, HEAD",
}
NOWHERE = ["/v3/nothing", "/rest/consumers/g/x/y", "/rest/v1/topics", "/sse/v2"]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeDoor]:
    folder = tmp_path_factory.mktemp("door")
    with (
        sqlite_databases(folder),
        broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": 1}) as broker,
        whole_door(folder, broker.bootstrap, cluster=CLUSTER) as found,
    ):
        from tests.builders import tokens  # noqa: PLC0415 - after the settings

        found.token = tokens.token(grants=tokens.EVERYTHING)
        yield found


def allowed(answer: Told) -> list[str]:
    methods = answer.headers["allow"].split(", ")
    return sorted(methods, key=lambda method: (method == "OPTIONS", method))


@pytest.mark.parametrize(("method", "target"), ALLOWED)
def test_a_wrong_method_is_told_with_those_that_are_taken(
    door: WholeDoor, method: str, target: str
) -> None:
    answer = door.ask(method, target, {})

    assert answer.code == (405, 405)
    assert allowed(answer) == [*ALLOWED[method, target].split(", "), "OPTIONS"]


@pytest.mark.parametrize(("method", "target"), ALLOWED)
def test_options_names_the_methods_of_an_address(door: WholeDoor, method: str, target: str) -> None:
    answer = door.ask("OPTIONS", target)

    assert (answer.status, answer.body) == (200, b"")
    assert allowed(answer) == [*ALLOWED[method, target].split(", "), "OPTIONS"]


@pytest.mark.parametrize("target", NOWHERE)
def test_a_wrong_method_at_no_address_is_not_found(door: WholeDoor, target: str) -> None:
    assert door.ask("PATCH", target, {}).code == (404, 404)


def test_calls_that_are_not_let_in_are_counted_together(door: WholeDoor) -> None:
    before = door.worker.traffic.rows().get(STRANGERS, {}).get("requests", 0)

    codes = [
        door.ask(method, target, authorization="Bearer made-up").code
        for method, target in (
            ("GET", f"{C}/topics"),
            ("POST", f"{C}/topics/orders/records"),
            ("GET", "/rest/v1/topics/orders/records"),
        )
    ]

    assert codes == [(401, 40101)] * 3
    # A call is counted when it is over, which its client hears first.
    until = time.monotonic() + COUNTED_S
    while door.worker.traffic.rows()[STRANGERS]["requests"] < before + 3:
        assert time.monotonic() < until
