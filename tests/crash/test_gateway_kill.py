"""kill -9 in the middle of a stream by REST: what has a receipt is in the log.

Once, where a broker is killed; at least once, where the worker is that writes.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.values import NewTopic
from tests.cluster import ROOT, Cluster, running_cluster
from tests.fakes.raw_stream import RawStream
from tests.fakes.rest_door import CLUSTER, Duplex
from tests.gateway.rest.produce.stage import Stage, on_loop, records_of
from tests.scale import count

pytestmark = [pytest.mark.campaign, pytest.mark.slow, pytest.mark.timeout(900)]

ROUNDS = count(2, 2, long=20)
RECORDS = 20_000
# Receipts that are there when the broker is killed; others are on their way then.
BEFORE = 4_000
# Records in one piece of the body.
PIECE = 100
# What a worker could not send before it is killed.
MOST = 1_000_000
UNLIMITED = {"SAMSA_REST_RECORDS_PER_S": "0", "SAMSA_REST_BYTES_PER_S": "0"}
BROKER = "broker-1"
WORKER = "gateway-1"
# What a client may try again: the time of a delivery is over, or no broker is there.
RETRIABLE = {50003, 50302}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("killed") / "home"
    with running_cluster(folder, gateway_workers=1, environment=UNLIMITED) as found:
        yield found


@pytest.fixture(scope="module")
def connection(cluster: Cluster) -> Connection:
    return Connection(bootstrap=cluster.bootstrap)


def test_a_killed_broker_has_every_record_with_a_receipt_once(
    cluster: Cluster, connection: Connection, report: Callable[[str], None]
) -> None:
    for number in range(ROUNDS):
        topic = f"round-{number}"
        Admin(connection).create([NewTopic(name=topic, partitions=1)])

        receipts = killed_in_the_middle(cluster, connection, topic)

        judge(receipts, values_of(connection, topic))
        refused = sum(receipt["error_code"] != 200 for receipt in receipts)
        report(f"round {number}: {RECORDS} records, {refused} of them refused")


def test_a_killed_worker_leaves_every_record_with_a_receipt_in_the_log(
    cluster: Cluster, connection: Connection, report: Callable[[str], None]
) -> None:
    token = token_of(cluster)
    for number in range(ROUNDS):
        topic = f"worker-{number}"
        Admin(connection).create([NewTopic(name=topic, partitions=1)])

        receipts = asyncio.run(worker_killed_in_the_middle(cluster, topic, token))

        values = values_of(connection, topic)
        told = [values[receipt["offset"]] for receipt in receipts]
        assert told == [str(place) for place in range(len(receipts))]
        report(f"round {number}: {len(receipts)} receipts, {len(values)} records in the log")


async def worker_killed_in_the_middle(
    cluster: Cluster, topic: str, token: str
) -> list[dict[str, Any]]:
    """Return all receipts, which end where the worker did."""
    gateway = urlsplit(cluster.gateway)
    assert gateway.hostname is not None
    assert gateway.port is not None
    cluster_id = (cluster.folder / "cluster-id").read_text().strip()
    client = await RawStream.opened(
        (gateway.hostname, gateway.port),
        f"/v3/clusters/{cluster_id}/topics/{topic}/records",
        {"Authorization": f"Bearer {token}"},
    )
    killed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def send() -> None:
        # Until nobody takes any more.
        with suppress(ConnectionError):
            for first in range(0, MOST, PIECE):
                await client.send(b"".join(map(text_of, range(first, first + PIECE))))
        assert killed.done(), "all was sent before the worker was killed"

    sending = asyncio.create_task(send())
    receipts = await client.receipts(BEFORE)
    killed.set_result(cluster.kill(WORKER))
    receipts += await client.rest()
    client.leave()
    await sending
    await asyncio.to_thread(cluster.wait_for_restart, WORKER, killed.result())
    assert {receipt["error_code"] for receipt in receipts} == {200}
    return receipts


def values_of(connection: Connection, topic: str) -> dict[int, str]:
    return {each.offset: (each.value or b"").decode() for each in records_of(connection, topic)}


def token_of(cluster: Cluster) -> str:
    made = subprocess.run(
        [sys.executable, "manage.py", "tokens", "create", "--write=*", "--", "tests"],
        cwd=ROOT,
        env={**os.environ, "SAMSA_HOME": str(cluster.folder)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return made.stdout.strip()


def killed_in_the_middle(
    cluster: Cluster, connection: Connection, topic: str
) -> list[dict[str, Any]]:
    receipts = []

    @on_loop
    async def story(stage: Stage) -> None:
        path = f"/clusters/{CLUSTER}/topics/{topic}/records"
        async with Duplex(stage.door, path) as client:
            for first in range(0, RECORDS, PIECE):
                client.send(b"".join(map(text_of, range(first, first + PIECE))))
            client.send(b"", is_last=True)
            receipts.extend(await client.receipts(BEFORE))
            killed = cluster.kill(BROKER)
            assert client.unread > 0, "all was read before the broker was killed"
            await asyncio.to_thread(cluster.wait_for_restart, BROKER, killed)
            receipts.extend(await client.rest())

    story(stage=Stage(connection))
    return receipts


def text_of(number: int) -> bytes:
    return json.dumps({"value": {"type": "STRING", "data": str(number)}}).encode()


def judge(receipts: list[dict[str, Any]], values: dict[int, str]) -> None:
    assert len(receipts) == RECORDS
    for number, receipt in enumerate(receipts):
        if receipt["error_code"] == 200:
            assert values[receipt["offset"]] == str(number)
        else:
            assert receipt["error_code"] in RETRIABLE, receipt
    doubled = [value for value, times in Counter(values.values()).items() if times > 1]
    assert doubled == []
