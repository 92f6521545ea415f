"""kill -9 of a broker in the middle of a stream by REST: what has a receipt is there, and once."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.values import NewTopic
from tests.cluster import Cluster, running_cluster
from tests.fakes.rest_door import CLUSTER, Duplex
from tests.gateway.rest.produce.stage import Stage, on_loop, records_of
from tests.scale import count

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROUNDS = count(2, 2, long=20)
RECORDS = 20_000
# Receipts that are there when the broker is killed; others are on their way then.
BEFORE = 4_000
# Records in one piece of the body.
PIECE = 100
BROKER = "broker-1"
# What a client may try again: the time of a delivery is over, or no broker is there.
RETRIABLE = {50003, 50302}


def test_a_killed_broker_has_every_record_with_a_receipt_once(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    with running_cluster(tmp_path / "home") as cluster:
        connection = Connection(bootstrap=cluster.bootstrap)
        for number in range(ROUNDS):
            topic = f"round-{number}"
            Admin(connection).create([NewTopic(name=topic, partitions=1)])

            receipts = killed_in_the_middle(cluster, connection, topic)

            found = records_of(connection, topic)
            judge(receipts, {each.offset: (each.value or b"").decode() for each in found})
            refused = sum(receipt["error_code"] != 200 for receipt in receipts)
            report(f"round {number}: {RECORDS} records, {refused} of them refused")


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
