"""Shards come and go with the leadership of their partitions, and nobody is left without a word."""

import asyncio
from pathlib import Path

import pytest

from brokers.coordination.runtime import ShardState
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.coordination.desk import NAME, cluster, desk, offsets, value
from tests.brokers.replication.parts import ME, OTHER, GatedFiles, topic, until
from tests.fakes.toy_shard import add, count_slowly, put, touch, wait, wait_noted


async def turns(number: int = 20) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def test_a_shard_for_each_partition_that_is_led_here(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path, cluster(offsets(partitions=6), topic("t", id=2))) as tool:
            assert set(tool.runtime.states()) == set(range(6))
            assert await tool.told_of(add("a", 1), index=5) == 1
            assert [index for index, shard in tool.runtime.active() if shard.sums] == [5]

    asyncio.run(run())


def test_group_of_another_broker_gets_not_coordinator(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path, cluster(offsets(leader=OTHER))) as tool:
            assert await tool.told_of(add("a", 1)) is ErrorCode.NOT_COORDINATOR
            with pytest.raises(KafkaError, match=f"does not coordinate by {NAME}-7"):
                tool.runtime.look(7, lambda shard: shard.sums)

    asyncio.run(run())


@pytest.mark.parametrize("moves_away", [True, False])
def test_waiting_clients_get_an_error_when_leadership_ends(
    tmp_path: Path, moves_away: bool
) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            parked = tool.ask(wait("p"))
            files.gate.clear()
            on_way = [tool.ask(add("a", 1)), tool.ask(wait_noted("b"))]
            await turns()
            on_way += [tool.ask(add("a", 1)), tool.ask(put("a", 2)), tool.ask(wait_noted("c"))]
            leader = OTHER if moves_away else ME
            await tool.apply(cluster(offsets(leader=leader, epoch=1), version=2))
            await turns()

            for answers in (parked, *on_way):
                assert value(answers) is ErrorCode.NOT_COORDINATOR
            assert tool.runtime.parked == 0
            assert len(tool.broker.replicas.deadlines) == 0
            files.gate.set()
            await turns()
            # The round came true behind our back, and nobody is told a second time.
            assert all(len(answers) == 1 for answers in on_way)
            assert tool.shards[0].sums == {}

    asyncio.run(run())


def test_a_shard_that_comes_back_holds_what_the_log_holds(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            await tool.told_of(add("a", 1))
            await tool.apply(cluster(offsets(leader=OTHER, epoch=1), version=2))
            assert tool.runtime.states() == {}
            await tool.apply(cluster(offsets(epoch=2), version=3))
            assert tool.runtime.states() == {0: ShardState.LOADING}
            await tool.is_active()
            assert len(tool.shards) == 2
            assert tool.sums() == {"a": 1}

    asyncio.run(run())


def test_an_image_that_changes_nothing_here_leaves_the_shard(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            await tool.told_of(add("a", 1))
            await tool.apply(cluster(offsets(), topic("t", id=2), version=2))
            await until(lambda: tool.sums() == {"a": 1, "images": 1})
            assert tool.shards[0].images == [(1, 2)]
            assert len(tool.shards) == 1

    asyncio.run(run())


def test_image_that_arrives_during_a_load_is_applied_after_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path, is_loaded=False) as tool:
            tool.runtime.apply(cluster(offsets(), version=2))
            tool.runtime.apply(cluster(offsets(), version=3))
            shard = await tool.is_active()
            assert shard.images == [(1, 3)]

    asyncio.run(run())


def test_recreated_topic_gets_new_shards(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            await tool.told_of(add("a", 1))
            await tool.apply(cluster(offsets(number=2), version=2))
            await tool.is_active()
            assert tool.sums() == {}

    asyncio.run(run())


def test_a_partition_that_is_led_late_is_found_by_who_asks(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path, cluster(offsets(leader=OTHER))) as tool:
            await tool.broker.apply(cluster(offsets(epoch=1), version=2))
            assert await tool.told_of(add("a", 1)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            await tool.is_active()
            assert await tool.told_of(add("a", 1)) == 1

    asyncio.run(run())


def test_chores_are_done_in_every_shard(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path, cluster(offsets(partitions=2))) as tool:
            for index in range(2):
                await tool.told_of(add(f"g{index}", 1), index)
            tool.runtime.run_chores()
            await until(lambda: tool.sums(0) == {"g0": 101} and tool.sums(1) == {"g1": 101})

    asyncio.run(run())


def test_timers_and_jobs_end_with_their_shard(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            tool.ask(touch("a"))
            tool.ask(count_slowly("b", 1_000_000))
            await tool.apply(cluster(offsets(leader=OTHER, epoch=1), version=2))
            await turns()
            await tool.broker.pass_time(5_000)
            await tool.apply(cluster(offsets(epoch=2), version=3))
            await tool.is_active()
            assert tool.sums() == {}

    asyncio.run(run())


def test_the_end_sends_the_parked_away_and_waits_for_what_is_on_its_way(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            parked, on_way = tool.ask(wait("p")), tool.ask(add("a", 1))
            closing = asyncio.ensure_future(tool.runtime.close())
            await turns()
            assert value(parked) is ErrorCode.NOT_COORDINATOR
            assert await tool.told_of(add("a", 1)) is ErrorCode.NOT_COORDINATOR
            assert on_way == []
            assert not closing.done()

            files.gate.set()
            await closing
            assert value(on_way) == 1
            assert tool.runtime.states() == {}

    asyncio.run(run())


def test_the_end_does_not_wait_for_a_load(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path, is_loaded=False) as tool:
            await tool.runtime.close()
            await tool.runtime.close()
            assert tool.runtime.states() == {}

    asyncio.run(run())
