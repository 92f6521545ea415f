"""Subscriptions by pattern, and what appears while a socket reads: out of a real broker."""

import asyncio
from collections.abc import Iterator

import pytest

from gateway.access.grants import Grant, Rights
from gateway.access.operations import Operation
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.readers import engine
from gateway.kafka.values import NewTopic
from gateway.ws import group_reader
from tests.fakes.broker_thread import BesideBroker, broker_beside
from tests.gateway.ws.site import Client, Site, run, write

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BesideBroker]:
    # How often members and the group hear of each other.
    defaults = {
        "group.consumer.heartbeat.interval.ms": "300",
        "group.initial.rebalance.delay.ms": "0",
    }
    with broker_beside(tmp_path_factory.mktemp("broker"), defaults=defaults) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _looks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (engine, "WATCH_S"),
        (engine, "LIST_S"),
        (engine, "FRESH_S"),
        (group_reader, "LOOK_FOR_TOPICS_S"),
    ):
        monkeypatch.setattr(module, name, 0.05)


async def make(broker: BesideBroker, name: str, values: list[bytes]) -> None:
    def work() -> None:
        Admin(Connection(bootstrap=broker.bootstrap)).create([NewTopic(name=name, partitions=1)])
        write(broker, name, values)

    await asyncio.to_thread(work)


async def subscribe(client: Client, **frame: object) -> list[dict[str, object]]:
    credit = {"records": 100}
    await client.say(type="subscribe", sid="a", credit=credit, **frame)
    assigned: list[dict[str, object]] = (await client.hear("assigned"))["partitions"]
    return assigned


def test_a_partition_that_is_added_is_assigned_and_read(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        await make(broker, "grown", [b"old"])
        async with site.client() as client:
            await subscribe(client, topics=["grown"])
            admin = Admin(Connection(bootstrap=broker.bootstrap))
            await asyncio.to_thread(admin.add_partitions, "grown", 2)
            await asyncio.to_thread(write, broker, "grown", [b"new"], 1)
            assert (await client.hear("assigned"))["partitions"] == [
                {"topic": "grown", "partition": 1, "offset": 0}
            ]
            assert [one["value"] for one in await client.records(1)] == ["new"]

    run(broker, work)


def test_topics_of_a_pattern_are_read_as_they_come_and_may_be_read(broker: BesideBroker) -> None:
    may = [
        Grant(operation=Operation.READ_PAYLOADS, pattern=pattern) for pattern in ("eu-a*", "eu-b*")
    ]

    async def work(site: Site) -> None:
        site.callers.rights = Rights(may)
        await make(broker, "eu-a1", [b"1"])
        await make(broker, "eu-secret", [b"2"])
        async with site.client() as client:
            first = await subscribe(client, pattern="eu-.*", **{"from": "earliest"})
            assert [one["topic"] for one in first] == ["eu-a1"]
            assert [one["value"] for one in await client.records(1)] == ["1"]
            await make(broker, "eu-secret2", [b"3"])
            await make(broker, "eu-b", [b"4"])
            assert (await client.hear("assigned"))["partitions"] == [
                {"topic": "eu-b", "partition": 0, "offset": 0}
            ]
            assert [one["value"] for one in await client.records(1)] == ["4"]
            site.callers.change(Rights(may[:1]))
            told = await client.hear("revoked")
            assert ([one["topic"] for one in told["partitions"]], told["reason"]) == (
                ["eu-b"],
                "not allowed",
            )

    run(broker, work)


def test_a_member_of_a_group_reads_what_its_pattern_means_and_may_be_read(
    broker: BesideBroker,
) -> None:
    async def work(site: Site) -> None:
        site.callers.rights = Rights(
            [
                Grant(operation=Operation.READ_PAYLOADS, pattern="us-a*"),
                Grant(operation=Operation.RESET_GROUPS, pattern="g"),
            ]
        )
        await make(broker, "us-a1", [b"1"])
        await make(broker, "us-secret", [b"2"])
        async with site.client() as client:
            first = await subscribe(client, pattern="us-.*", group="g", **{"from": "earliest"})
            assert [one["topic"] for one in first] == ["us-a1"]
            assert [one["value"] for one in await client.records(1)] == ["1"]
            await make(broker, "us-a2", [b"3"])
            told = await client.hear("assigned")
            assert [one["topic"] for one in told["partitions"]] == ["us-a2"]
            assert [one["value"] for one in await client.records(1)] == ["3"]
            await asyncio.to_thread(write, broker, "us-a1", [b"4"])
            assert [one["value"] for one in await client.records(1)] == ["4"]

    run(broker, work)


def test_a_member_of_a_group_is_moved_and_paused_in_its_own_partitions(
    broker: BesideBroker,
) -> None:
    at = {"topic": "steered", "partition": 0}

    async def work(site: Site) -> None:
        await make(broker, "steered", [b"%d" % number for number in range(10)])
        admin = Admin(Connection(bootstrap=broker.bootstrap))
        await asyncio.to_thread(admin.add_partitions, "steered", 2)
        async with site.client() as client:
            await subscribe(client, topics=["steered"], group="steered", **{"from": "earliest"})
            told = await client.hear("batch")
            found = told["records"]
            assert (told["hw"], told["lag"]) == (10, 10 - len(found))
            found += await client.records(10 - len(found)) if len(found) < 10 else []
            assert [one["offset"] for one in found] == list(range(10))

            await client.say(type="seek", sid="a", offsets=[{**at, "offset": 7}])
            assert (await client.hear("assigned"))["partitions"] == [{**at, "offset": 7}]
            assert [one["offset"] for one in await client.records(3)] == [7, 8, 9]

            await client.say(type="pause", sid="a", partitions=[at])
            await client.say(type="seek", sid="a", offsets=[{**at, "offset": 5}])
            await client.hear("assigned")
            await asyncio.to_thread(write, broker, "steered", [b"other"], 1)
            assert [one["value"] for one in await client.records(1)] == ["other"]
            await client.say(type="resume", sid="a", partitions=[at])
            assert [one["offset"] for one in await client.records(5)] == [5, 6, 7, 8, 9]

    run(broker, work)


def test_a_member_of_a_group_waits_for_the_first_topic_of_its_pattern(
    broker: BesideBroker,
) -> None:
    async def work(site: Site) -> None:
        async with site.client() as client:
            await client.say(
                type="subscribe",
                sid="a",
                group="waiting",
                pattern="asia-.*",
                credit={"records": 5},
                **{"from": "earliest"},
            )
            await client.say(type="ping", id="between")
            await client.hear("pong")
            await make(broker, "asia-a", [b"1"])
            assert [one["topic"] for one in (await client.hear("assigned"))["partitions"]] == [
                "asia-a"
            ]
            assert [one["value"] for one in await client.records(1)] == ["1"]

    run(broker, work)
