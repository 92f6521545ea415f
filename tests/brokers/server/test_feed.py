"""What the feed of a running broker tells of its traffic, its clients and itself."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from brokers.disk_room import room_at
from brokers.protocol.messages.api_versions import ApiVersionsRequest
from brokers.server.feed import Feed
from tests.brokers.server.express.test_late import FETCH, PRODUCE, read, write
from tests.brokers.server.test_inspection_port import feed
from tests.builders.logs import batch
from tests.fakes.broker import running_broker

SIZE = len(batch())


def row_of(told: Any, kind: str, key: str | None) -> Any:
    (row,) = [row for row in told[kind] if row[0] == key]
    return dict(zip(told[kind[:-1] + "_columns"], row, strict=True))


@pytest.fixture(autouse=True)
def _every_question_takes_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brokers.server.feed.FRESH_SECONDS", 0)


def test_bytes_and_requests_are_counted_on_regular_ways_and_in_lanes(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            client = await running.connect()
            hello = ApiVersionsRequest(client_software_name="kcat", client_software_version="1.7")
            await client.ask(hello, 3)
            for _ in range(4):
                await client.ask(write(), PRODUCE)
            for offset in range(4):
                await client.ask(read(offset), FETCH)
            told = await feed(running)

            topic = row_of(told, "topics", "orders")
            assert topic["bytes_in"] == 4 * SIZE
            assert topic["bytes_out"] == (4 + 3 + 2 + 1) * SIZE
            who = row_of(told, "clients", "test")
            assert (who["software"], who["software_version"]) == ("kcat", "1.7")
            assert (who["connections"], who["requests"]) == (1, 9)
            metrics = running.broker.metrics
            assert (who["bytes_in"], who["bytes_out"]) == (metrics.bytes_in, metrics.bytes_out)
            api = row_of(told, "apis", "Produce")
            assert (api["requests"], api["errors"], sum(api["buckets"])) == (4, 0, 4)
            await client.close()

    asyncio.run(story())


def test_a_step_has_the_traffic_since_the_last_one_and_what_is_gone(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            client = await running.connect()
            await client.ask(write(), PRODUCE)
            first = await feed(running)
            await client.ask(write(), PRODUCE)
            second = await feed(running, first["run"], first["number"])
            third = await feed(running, first["run"], second["number"])

            (step,) = second["steps"]
            assert step["topics"] == [["orders", 2 * SIZE, 0]]
            assert [row[0] for row in step["clients"]] == ["test"]
            assert [row[:2] for row in step["apis"]] == [["Produce", 2]]
            (step,) = third["steps"]
            assert (step["topics"], step["clients"], step["apis"]) == ([], [], [])
            assert (step["gone_topics"], step["gone_clients"], step["gone_members"]) == ([], [], [])
            await client.close()

    asyncio.run(story())


def test_answers_with_errors_are_counted_once_for_each_request(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            client = await running.connect()
            absent = write()
            absent.topic_data[0].name = "absent"
            far = read(99)
            await client.ask(write(), PRODUCE)
            for message, version in ((absent, PRODUCE), (absent, PRODUCE), (far, FETCH)):
                await client.ask(message, version)
            told = await feed(running)

            assert row_of(told, "apis", "Produce")["errors"] == 2
            assert row_of(told, "apis", "Fetch")["errors"] == 1
            await client.close()

    asyncio.run(story())


def test_the_totals_tell_memory_disk_and_the_delay_of_the_loop(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            client = await running.connect()
            await client.ask(write(), PRODUCE)
            running.broker.metrics.loop_delay.observe(0.003)
            told = await feed(running)
            totals = told["totals"]

            assert totals["memory_bytes"] > 1_000_000
            assert totals["disk_size_bytes"] >= totals["disk_free_bytes"] > 0
            assert 0 < totals["disk_used_bytes"] <= totals["disk_size_bytes"]
            assert totals["disk_device"] == room_at(tmp_path).device
            assert totals["log_bytes"] == SIZE
            assert 0 < totals["started_ms"] <= told["ms"]
            assert totals["loop_delay_p99_ms"] >= 4.096
            assert len(told["bucket_bounds_ms"]) + 1 == len(told["apis"][0][3])
            await client.close()

    asyncio.run(story())


def test_who_waits_for_a_sample_that_is_given_up_takes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.server.feed.FRESH_SECONDS", 60)

    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            made = Feed(running.broker.context)
            sample, taken = made._sample, 0  # noqa: SLF001 (the one slow part)
            stays = asyncio.Event()

            async def slow() -> None:
                nonlocal taken
                taken += 1
                if taken == 1:
                    await stays.wait()
                await sample()

            monkeypatch.setattr(made, "_sample", slow)
            first = asyncio.create_task(made.read("", 0))
            others = [asyncio.create_task(made.read("", 0)) for _ in range(3)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            first.cancel()
            told = await asyncio.gather(*others)

            assert taken == 2
            assert all("orders" in "".join(pieces) for pieces in told)
            made.close()

    asyncio.run(story())
