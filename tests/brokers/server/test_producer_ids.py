"""Producer ids: never one twice, and no more blocks than are needed."""

import asyncio

import pytest

from brokers.cluster.proposals import Outcome, ProducerIdsResult
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.server.producer_ids import ProducerIds


class Blocks:
    """Blocks of `size` ids in turn, each given out when the gate is open."""

    def __init__(self, size: int = 10) -> None:
        self.size = size
        self.given = 0
        self.error = ErrorCode.NONE
        self.gate = asyncio.Event()
        self.gate.set()

    async def allocate(self) -> Outcome:
        await self.gate.wait()
        if self.error is not ErrorCode.NONE:
            return Outcome(error=self.error, message="away")
        self.given += 1
        return Outcome(result=ProducerIdsResult(first=100 * self.given, count=self.size), version=1)


def test_ids_come_in_order_and_blocks_follow_each_other() -> None:
    async def run() -> None:
        blocks, ids = Blocks(size=3), ProducerIds()
        given = [await ids.next(blocks.allocate) for _ in range(7)]
        assert given == [100, 101, 102, 200, 201, 202, 300]

    asyncio.run(run())


def test_all_who_wait_share_one_block() -> None:
    async def run() -> None:
        blocks, ids = Blocks(), ProducerIds()
        given = await asyncio.gather(*(ids.next(blocks.allocate) for _ in range(5)))
        assert sorted(given) == [100, 101, 102, 103, 104]
        assert blocks.given == 1

    asyncio.run(run())


def test_the_next_block_is_fetched_before_the_last_id_is_gone() -> None:
    async def run() -> None:
        blocks, ids = Blocks(size=100), ProducerIds()
        for _ in range(92):
            await ids.next(blocks.allocate)
        for _ in range(5):
            await asyncio.sleep(0)
        assert blocks.given == 2

        blocks.gate.clear()
        rest = [await ids.next(blocks.allocate) for _ in range(9)]
        assert rest[-1] == 200

    asyncio.run(run())


def test_one_who_leaves_does_not_take_the_block_from_the_others() -> None:
    async def run() -> None:
        blocks, ids = Blocks(), ProducerIds()
        blocks.gate.clear()
        leaver = asyncio.ensure_future(ids.next(blocks.allocate))
        stayer = asyncio.ensure_future(ids.next(blocks.allocate))
        await asyncio.sleep(0)
        leaver.cancel()
        blocks.gate.set()
        assert await stayer == 100

    asyncio.run(run())


def test_a_store_without_blocks_is_an_error_to_try_again_on_and_the_next_try_may_succeed() -> None:
    async def run() -> None:
        blocks, ids = Blocks(), ProducerIds()
        blocks.error = ErrorCode.REQUEST_TIMED_OUT
        with pytest.raises(KafkaError, match="REQUEST_TIMED_OUT") as caught:
            await ids.next(blocks.allocate)
        assert caught.value.code.retriable
        blocks.error = ErrorCode.NONE
        assert await ids.next(blocks.allocate) == 100

    asyncio.run(run())
