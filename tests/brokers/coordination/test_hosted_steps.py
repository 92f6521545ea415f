"""An operation of several rounds: nobody comes in between, and what is done stays done."""

import asyncio
from pathlib import Path

from brokers.protocol.errors import ErrorCode
from tests.brokers.coordination.desk import desk, noting, turns, value
from tests.brokers.replication.parts import GatedFiles, until
from tests.fakes.toy_shard import put, put_in_steps


def test_steps_of_an_operation_are_not_interleaved(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            order: list[str] = []
            for name, operation in (("steps", put_in_steps("a", 4)), ("put", put("a", 9))):
                tool.runtime.submit(0, operation, noting(order, name))
            other = tool.ask(put("b", 1))
            files.gate.set()
            await until(lambda: len(order) == 2 and bool(other))

            assert order == ["steps", "put"]
            written = [value for key, value, _at in tool.shards[0].replayed if key == b"=a"]
            assert written == [b"1", b"2", b"3", b"4", b"9"]
            assert tool.broker.leader("__consumer_offsets").log.end_offset == 6

    asyncio.run(run())


def test_steps_that_no_batch_holds_together_are_done_one_after_the_other(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            limit = tool.broker.leader("__consumer_offsets").settings.log.rules.max_batch_bytes
            subject = "a" * (limit // 20)

            assert await tool.told_of(put_in_steps(subject, 30)) == 30
            assert tool.sums() == {subject: 30}

    asyncio.run(run())


def test_an_operation_that_is_refused_halfway_has_done_the_steps_before(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            partition = tool.broker.leader("__consumer_offsets")
            asked = tool.ask(put_in_steps("a", 1_000))
            await until(lambda: tool.sums().get("a", 0) > 2)
            partition.leader_epoch += 1
            await until(lambda: bool(asked))
            partition.leader_epoch -= 1

            assert value(asked) is ErrorCode.NOT_COORDINATOR
            done = tool.sums()["a"]
            assert 2 < done < 1_000
            assert await tool.told_of(put("a", 7)) == done

    asyncio.run(run())


def test_a_disk_that_hangs_between_two_steps_costs_the_client_the_answer_only(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            asked = tool.ask(put_in_steps("a", 3))
            await turns()
            await tool.broker.pass_time(5_000 + 5_000 // 16)
            await until(lambda: bool(asked))
            assert value(asked) is ErrorCode.COORDINATOR_NOT_AVAILABLE

            files.gate.set()
            await until(lambda: tool.sums() == {"a": 3})
            assert await tool.told_of(put("a", 5)) == 3

    asyncio.run(run())
