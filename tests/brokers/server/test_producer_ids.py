"""Producer ids: never one twice, and no more blocks than are needed."""

import asyncio
from collections.abc import Callable

import pytest

from brokers.cluster.proposals import Outcome, ProducerIdsResult
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.server.producer_ids import ProducerIds
from brokers.storage.errors import OutOfSpace
from brokers.storage.producer_ids import SeenProducerIds


class Blocks:
    """Blocks of `size` ids in turn, each given out when the gate is open."""

    def __init__(self, size: int = 10) -> None:
        self.size = size
        self.given = 0
        self.error = ErrorCode.NONE
        self.asked_above: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def allocate(self, highest_seen: int) -> Outcome:
        self.asked_above.append(highest_seen)
        await self.gate.wait()
        if self.error is not ErrorCode.NONE:
            return Outcome(error=self.error, message="away")
        self.given += 1
        return Outcome(result=ProducerIdsResult(first=100 * self.given, count=self.size), version=1)


def new_ids(
    seen: SeenProducerIds | None = None, save: Callable[[], None] = lambda: None
) -> ProducerIds:
    return ProducerIds(seen or SeenProducerIds(), save=save)


def test_ids_come_in_order_and_blocks_follow_each_other() -> None:
    async def run() -> None:
        blocks, ids = Blocks(size=3), new_ids()
        given = [await ids.next(blocks.allocate) for _ in range(7)]
        assert given == [100, 101, 102, 200, 201, 202, 300]

    asyncio.run(run())


def test_all_who_wait_share_one_block() -> None:
    async def run() -> None:
        blocks, ids = Blocks(), new_ids()
        given = await asyncio.gather(*(ids.next(blocks.allocate) for _ in range(5)))
        assert sorted(given) == [100, 101, 102, 103, 104]
        assert blocks.given == 1

    asyncio.run(run())


def test_the_next_block_is_fetched_before_the_last_id_is_gone() -> None:
    async def run() -> None:
        blocks, ids = Blocks(size=100), new_ids()
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
        blocks, ids = Blocks(), new_ids()
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
        blocks, ids = Blocks(), new_ids()
        blocks.error = ErrorCode.REQUEST_TIMED_OUT
        with pytest.raises(KafkaError, match="REQUEST_TIMED_OUT") as caught:
            await ids.next(blocks.allocate)
        assert caught.value.code.retriable
        blocks.error = ErrorCode.NONE
        assert await ids.next(blocks.allocate) == 100

    asyncio.run(run())


def test_a_block_is_noted_before_its_first_id_is_given_out() -> None:
    async def run() -> None:
        blocks, seen, noted = Blocks(size=10), SeenProducerIds(), list[int]()
        ids = new_ids(seen, lambda: noted.append(seen.highest))

        first = asyncio.ensure_future(ids.next(blocks.allocate))
        first.add_done_callback(lambda _done: noted.append(-1))

        assert await first == 100
        assert noted == [109, -1]

    asyncio.run(run())


def test_a_block_that_cannot_be_noted_is_not_given_out() -> None:
    refusals = [OutOfSpace("samsa.producer-ids", "checkpoint")]

    def save() -> None:
        if refusals:
            raise refusals.pop()

    async def run() -> None:
        blocks, ids = Blocks(size=10), new_ids(save=save)

        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR") as caught:
            await ids.next(blocks.allocate)

        assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await ids.next(blocks.allocate) == 200

    asyncio.run(run())


def test_every_block_is_asked_for_above_what_was_seen_and_given() -> None:
    async def run() -> None:
        blocks, seen = Blocks(size=1), SeenProducerIds()
        ids = new_ids(seen)
        seen.note(42)

        await ids.next(blocks.allocate)
        seen.note(7_000)
        while len(blocks.asked_above) < 3:
            await ids.next(blocks.allocate)

        assert blocks.asked_above == [42, 7_000, 7_000]

    asyncio.run(run())


def test_a_block_is_dropped_when_a_log_meets_one_of_its_unused_ids() -> None:
    async def run() -> None:
        blocks, seen = Blocks(size=10), SeenProducerIds()
        ids = new_ids(seen)
        assert await ids.next(blocks.allocate) == 100

        seen.note(105)

        assert await ids.next(blocks.allocate) == 200

    asyncio.run(run())


@pytest.mark.parametrize("seen_id", [99, 100, 110, 5_000])
def test_a_block_outlives_ids_of_other_blocks_and_those_given_out_of_it(seen_id: int) -> None:
    async def run() -> None:
        blocks, seen = Blocks(size=10), SeenProducerIds()
        ids = new_ids(seen)
        assert await ids.next(blocks.allocate) == 100

        seen.note(seen_id)

        assert await ids.next(blocks.allocate) == 101

    asyncio.run(run())


def test_a_block_that_is_used_while_it_is_asked_for_is_asked_for_again_but_not_for_ever() -> None:
    async def run() -> None:
        blocks, seen = Blocks(size=10), SeenProducerIds()
        ids = new_ids(seen)

        async def used(highest_seen: int) -> Outcome:
            outcome = await blocks.allocate(highest_seen)
            seen.note(100 * blocks.given + 5)
            return outcome

        with pytest.raises(KafkaError, match="in use already") as caught:
            await ids.next(used)

        assert caught.value.code.retriable
        assert blocks.given == 3

    asyncio.run(run())
