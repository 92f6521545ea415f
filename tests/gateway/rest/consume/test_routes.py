"""Consumers of version 2, asked at workers in turn."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.producer import Producer
from gateway.kafka.values import NewRecord
from tests.fakes.broker_thread import broker_beside
from tests.fakes.gateway_workers import Gateway, running_gateway

pytestmark = pytest.mark.slow
JSON = {"Accept": "application/vnd.kafka.json.v2+json"}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("broker")
    with broker_beside(folder, topics={"orders": 2, "odd": 1}) as broker:
        producer = Producer(Connection(bootstrap=broker.bootstrap), "orders")
        for number in range(10):
            producer.send(NewRecord(value=b'{"n":%d}' % number, partition=number % 2))
        producer.flush()
        yield broker.bootstrap


def asked_in_turn(
    folder: Path, bootstrap: str, scenario: Callable[[Gateway], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with running_gateway(folder, bootstrap) as gateway:
            await scenario(gateway)

    asyncio.run(run())


async def created(gateway: Gateway, group: str, **draft: Any) -> str:
    """Make a consumer and return the path of it."""
    body = {"format": "json", "auto.offset.reset": "earliest", **draft}
    answer = await gateway.ask("POST", f"/consumers/{group}", body)
    assert answer.status == 200, answer.body
    base: str = answer.json()["base_uri"]
    assert base.startswith("http://gateway:8082/consumers/")
    return base.removeprefix("http://gateway:8082")


@pytest.mark.parametrize("name", ["", "mine"])
def test_a_consumer_is_used_on_whichever_worker_is_asked(
    tmp_path: Path, bootstrap: str, name: str
) -> None:
    async def scenario(gateway: Gateway) -> None:
        path = await created(gateway, f"g1{name}", **({"name": name} if name else {}))
        subscribed = await gateway.ask("POST", f"{path}/subscription", {"topics": ["orders"]})
        first = await gateway.ask("GET", f"{path}/records", headers=JSON)
        rest = await gateway.ask("GET", f"{path}/records", headers=JSON)
        commit = await gateway.ask("POST", f"{path}/offsets")
        places = [{"topic": "orders", "partition": number} for number in range(2)]
        committed = await gateway.ask("GET", f"{path}/offsets", {"partitions": places})
        deleted = await gateway.ask("DELETE", path)
        again = await gateway.ask("GET", f"{path}/records", headers=JSON)

        assert subscribed.status == 204
        assert first.status == 200
        assert first.json(), "the first fetch is not empty"
        values = [each["value"]["n"] for each in (*first.json(), *rest.json())]
        assert sorted(values) == list(range(10))
        assert commit.status == 200
        assert sorted(each["offset"] for each in committed.json()["offsets"]) == [5, 5]
        assert deleted.status == 204
        assert (again.status, again.json()["error_code"]) == (404, 40403)

    asked_in_turn(tmp_path, bootstrap, scenario)
