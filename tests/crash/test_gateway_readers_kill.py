"""kill -9 of a broker under open sockets: they go on, and miss no record without a word."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.values import NewTopic
from tests.cluster import running_cluster
from tests.gateway.ws.site import Client, Site, run, write
from tests.scale import count

pytestmark = [pytest.mark.campaign, pytest.mark.slow, pytest.mark.timeout(900)]

ROUNDS = count(1, 1, long=20)
# Written before the broker is killed, and after it has come back.
EACH = 2_000
BROKER = "broker-1"
PARTITIONS = 2
# A group that lost its coordinator, and a client that waits to connect again, take some seconds.
WAIT_S = 90


class Seen:
    """What one subscription was told, by partition: where it is, without a hole or a repetition."""

    def __init__(self) -> None:
        self.next: dict[int, int] = {}
        self.records = 0
        # Offsets that came again: what a group had not acked when it lost its partitions.
        self.again = 0

    def take(self, frame: Any) -> None:
        if frame["type"] == "assigned":
            for one in frame["partitions"]:
                self.next.setdefault(one["partition"], 0)
        elif frame["type"] == "gap":
            assert frame["from"] == self.next[frame["partition"]], frame
            self.next[frame["partition"]] = frame["to"]
        elif frame["type"] == "batch":
            for record in frame["records"]:
                at = self.next[record["partition"]]
                assert record["offset"] <= at, f"{record['offset']} comes after {at}"
                self.again += record["offset"] < at
                self.next[record["partition"]] = max(at, record["offset"] + 1)
                self.records += record["offset"] == at
        else:
            assert frame["type"] in {"revoked", "acked"}, frame
            assert not frame.get("ended"), frame


async def read(client: Client, all_seen: dict[str, Seen], wanted: int) -> None:
    """Read until so many different records have come to each subscription."""
    async with asyncio.timeout(WAIT_S):
        while min(seen.records for seen in all_seen.values()) < wanted:
            frame = await client.next()
            all_seen[frame["sid"]].take(frame)
            if frame["type"] == "batch":
                await client.say(type="credit", sid=frame["sid"], records=len(frame["records"]))


def test_sockets_go_on_behind_a_broker_that_was_killed(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    with running_cluster(tmp_path / "home") as cluster:
        connection = Connection(bootstrap=cluster.bootstrap)

        async def put(topic: str) -> None:
            for partition in range(PARTITIONS):
                values = [b"%d" % number for number in range(EACH)]
                await asyncio.to_thread(write, cluster, topic, values, partition)

        async def story(site: Site, topic: str) -> None:
            ways: dict[str, dict[str, object]] = {
                "name": {"topics": [topic]},
                "group": {"topics": [topic], "group": topic},
                "pattern": {"pattern": topic},
            }
            all_seen = {name: Seen() for name in ways}
            async with site.client() as client:
                for name, asked in ways.items():
                    start = {"credit": {"records": 200}, "from": "earliest"}
                    await client.say(type="subscribe", sid=name, **asked, **start)
                await put(topic)
                await read(client, all_seen, PARTITIONS * EACH // 2)
                killed = cluster.kill(BROKER)
                await asyncio.to_thread(cluster.wait_for_restart, BROKER, killed)
                await put(topic)
                await read(client, all_seen, 2 * PARTITIONS * EACH)
            for name, seen in all_seen.items():
                assert seen.next == dict.fromkeys(range(PARTITIONS), 2 * EACH)
                assert name == "group" or not seen.again
            report(f"{topic}: {all_seen['group'].again} records came again to the group")

        for number in range(ROUNDS):
            topic = f"round-{number}"
            Admin(connection).create([NewTopic(name=topic, partitions=PARTITIONS)])
            run(cluster, partial(story, topic=topic), seconds=300)
