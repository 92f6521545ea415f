"""Pages of a running broker about groups, and about the times of records."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from brokers.cluster.proposals import DeleteTopic
from brokers.coordination.groups import offset_operations
from brokers.coordination.groups.offset_operations import Committing
from brokers.coordination.groups.values import Committed
from brokers.protocol.messages.offset_commit import OffsetCommitResponse
from brokers.server.group_feed import GroupFeed
from brokers.slices import Slices
from tests.brokers.replication.parts import until
from tests.brokers.server.test_inspection_port import KNOWN, feed, got, port_of
from tests.builders.logs import batch
from tests.fakes.broker import RunningBroker, running_broker
from tests.fakes.listener import WAIT_SECONDS


async def commit(running: RunningBroker, group: str, offset: int) -> None:
    """A consumer without members commits an offset of orders-0."""
    committing = Committing(
        group_id=group,
        generation=-1,
        member_id="",
        instance_id=None,
        version=9,
        committed={("orders", 0): Committed(offset, 0, "", running.context.clock.now_ms())},
        topic_ids={"orders": running.context.image.topics["orders"].id},
        answer=OffsetCommitResponse(),
    )
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    running.context.groups.submit(group, offset_operations.commit(committing), answered.set_result)
    async with asyncio.timeout(WAIT_SECONDS):
        assert isinstance(await answered, OffsetCommitResponse)


def test_a_watcher_is_told_of_groups_and_their_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.server.feed.FRESH_SECONDS", 0)

    async def story() -> None:
        topics = {"orders": 1, "__consumer_offsets": 3}
        async with running_broker(tmp_path, topics=topics) as running:
            await until(lambda: not running.context.groups.is_loading)
            await commit(running, "a", 1)
            first = await feed(running)
            await commit(running, "b", 2)
            second = await feed(running, first["run"], first["number"])
            running.twin.propose_now(DeleteTopic(name="__consumer_offsets"))
            await running.context.wait_applied(running.twin.image.version)
            third = await feed(running, first["run"], second["number"])

            assert [row[:3] for row in first["groups"]] == [["a", "classic", "Empty"]]
            assert [row[:5] for row in first["commits"]] == [["a", "orders", 0, 1, 0]]
            assert first["commit_columns"][:4] == ["group", "topic", "index", "offset"]
            assert first["group_columns"][0] == "group"
            (step,) = second["steps"]
            assert [row[:4] for row in step["commits"]] == [["b", "orders", 0, 2]]
            assert [row[0] for row in step["groups"]] == ["b"]
            (step,) = third["steps"]
            assert sorted(step["groups_gone"]) == ["a", "b"]
            assert sorted(step["commits_gone"]) == [["a", "orders", 0], ["b", "orders", 0]]

    asyncio.run(story())


def test_more_changes_than_are_noted_make_a_snapshot_for_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.server.feed.FRESH_SECONDS", 0)
    monkeypatch.setattr("brokers.server.group_feed.MAX_FACTS", 2)

    async def story() -> None:
        topics = {"orders": 1, "__consumer_offsets": 1}
        async with running_broker(tmp_path, topics=topics) as running:
            await until(lambda: not running.context.groups.is_loading)
            first = await feed(running)
            for number in range(4):
                await commit(running, f"g{number}", number)
            second = await feed(running, first["run"], first["number"])
            third = await feed(running, first["run"], second["number"])

            assert second["kind"] == "snapshot"
            assert len(second["commits"]) == 4
            assert third["kind"] == "steps"

    asyncio.run(story())


def test_a_sample_whose_asker_left_does_not_lose_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokers.server.feed.FRESH_SECONDS", 0)

    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            first = await feed(running)
            running.twin.create_topic("more", partitions=1)
            await running.context.wait_applied(running.twin.image.version)
            with monkeypatch.context() as torn:
                torn.setattr(GroupFeed, "sample", _cancelled)
                async with port_of(running) as client:
                    client.writer.write(f"GET /feed HTTP/1.1\r\nHost: x\r\n{KNOWN}\r\n".encode())
                    assert await client.is_closed()
            second = await feed(running, first["run"], first["number"])

            assert second["kind"] == "snapshot"
            assert [row[0] for row in second["rows"]] == ["orders", "more"]

    asyncio.run(story())


async def _cancelled(_feed: GroupFeed, _slices: Slices) -> None:
    raise asyncio.CancelledError


def test_the_metrics_tell_of_groups(tmp_path: Path) -> None:
    async def story() -> None:
        topics = {"orders": 1, "__consumer_offsets": 2}
        async with running_broker(tmp_path, topics=topics) as running:
            await until(lambda: not running.context.groups.is_loading)
            for number in range(3):
                await commit(running, f"g{number}", number)

            _status, text = await got(running, "/metrics")

            assert '\nsamsa_groups{state="Empty"} 3\n' in text
            assert '\nsamsa_groups{state="Stable"} 0\n' in text
            assert "\nsamsa_offset_commits_total 3\n" in text
            assert "\nsamsa_group_rebalances_total 0\n" in text
            assert "\nsamsa_parked_requests 0\n" in text
            assert "\nsamsa_coordinator_load_seconds_count 2\n" in text
            rounds = int(text.split("\nsamsa_coordinator_rounds_total ")[1].split("\n")[0])
            assert 1 <= rounds <= 3
            assert f"\nsamsa_coordinator_round_seconds_count {rounds}\n" in text

    asyncio.run(story())


def test_the_times_of_records_are_told_for_places_that_are_led_here(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 2}) as running:
            log = running.context.replicas.leader("orders", 1)
            for number in range(3):
                log.append(batch(timestamp=1_000 + number), 1_000)
            await until(lambda: log.high_watermark == 3)

            places = ["orders:1:0", "orders:1:2", "orders:1:3", "orders:0:0", "nowhere:0:0"]
            status, text = await got(running, "/inspect/times?at=" + "&at=".join(places))
            told = json.loads(text)

            assert status == 200
            assert told["times"][:4] == [1_000, 1_002, None, None]
            assert told["times"][4] == {"error": "nowhere-0 is not led here"}
            assert abs(told["ms"] - running.context.clock.now_ms()) < 10_000

    asyncio.run(story())


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("at=orders", "at='orders' is not a position; write topic:index:offset"),
        ("at=orders:0", "is not a position"),
        ("at=orders:0:-1", "is not a position"),
        ("at=orders:0:" + "9" * 20, "is not a position"),
        ("at=:0:0", "is not a position"),
        ("at=t:0:0&" * 501, "501 positions in one request, 500 are allowed"),
        ("a=b&" * 1001, "a question may have 1000 fields"),
    ],
)
def test_places_that_are_none_are_refused_by_name(tmp_path: Path, query: str, reason: str) -> None:
    async def story() -> None:
        async with running_broker(tmp_path) as running:
            status, text = await got(running, f"/inspect/times?{query.rstrip('&')}")

            assert status == 400
            assert reason in text
            assert (await got(running, "/inspect/times?at=t:0:0", ""))[0] == 401
            assert json.loads((await got(running, "/inspect/times"))[1])["times"] == []

    asyncio.run(story())
