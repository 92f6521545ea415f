"""When a connection lets others go first: a spent slice, a mute, a request that must end first."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from brokers.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from brokers.server.call import Call
from brokers.server.client import MAX_OUTPUT_BYTES
from brokers.server.context import Context
from brokers.server.readers import SLICE_SECONDS
from tests.fakes.clock import ManualClock
from tests.fakes.listener import (
    ByteClient,
    RunningListener,
    handler,
    request_frame,
    running_listener,
    until,
)

SLICE_MS = int(SLICE_SECONDS * 1000)
COST_MS = 2


def pipelined(numbers: range) -> bytes:
    """One request for each number, which stands in its body and in its correlation id."""
    return b"".join(request_frame(FetchRequest(max_bytes=number), 11, number) for number in numbers)


def costly(clock: ManualClock, seen: list[int]) -> Any:
    """A handler whose every request keeps the loop for COST_MS."""

    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        assert request.max_bytes == call.request.correlation_id, "its bytes are another's"
        seen.append(request.max_bytes)
        clock.advance(COST_MS)
        return FetchResponse()

    return handler(1, answer)


async def numbers_of(client: ByteClient, count: int) -> list[int]:
    return [int.from_bytes((await client.frame())[:4], "big") for _ in range(count)]


def only_client(running: RunningListener) -> Any:
    (client,) = running.listener.clients
    return client


def test_a_connection_that_sends_much_at_once_lets_others_go_between() -> None:
    clock = ManualClock()
    seen: list[int] = []

    async def story() -> None:
        async with running_listener([costly(clock, seen)], clock=clock) as running:
            greedy, modest = await running.connect(), await running.connect()
            await until(lambda: len(running.listener.clients) == 2)

            greedy.writer.write(pipelined(range(1, 41)))
            await until(lambda: seen)
            # What the greedy one sent is overwritten where everybody receives.
            modest.writer.write(pipelined(range(100, 102)))

            assert await numbers_of(modest, 2) == [100, 101]
            assert len(seen) < 20, "the modest one waited for more than two slices"
            assert await numbers_of(greedy, 40) == list(range(1, 41))
            assert [number for number in seen if number < 100] == list(range(1, 41))
            await greedy.close()
            await modest.close()

    asyncio.run(story())


def test_however_many_have_more_to_ask_a_turn_of_the_loop_stays_short() -> None:
    clock = ManualClock()
    seen: list[int] = []
    turns: list[float] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()

        def tick() -> None:
            turns.append(clock.monotonic())
            loop.call_soon(tick)

        async with running_listener([costly(clock, seen)], clock=clock) as running:
            clients = [await running.connect() for _ in range(8)]
            await until(lambda: len(running.listener.clients) == 8)
            for client in clients:
                client.writer.write(pipelined(range(1, 21)))
            loop.call_soon(tick)

            for client in clients:
                assert await numbers_of(client, 20) == list(range(1, 21))

            longest = max(after - before for before, after in pairwise(turns))
            assert longest * 1000 <= 2 * (SLICE_MS + 2 * COST_MS)
            for client in clients:
                await client.close()

    asyncio.run(story())


def test_a_connection_that_is_paused_for_two_reasons_goes_on_when_both_are_gone() -> None:
    clock = ManualClock()
    data: Any = bytes(MAX_OUTPUT_BYTES)

    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        clock.advance(2 * SLICE_MS)
        part = PartitionData(partition_index=0, records=data)
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])

    async def story() -> None:
        async with running_listener([handler(1, answer)], clock=clock) as running:
            client = await running.connect()
            await until(lambda: running.listener.clients)
            client.writer.write(pipelined(range(1, 9)))
            paused = only_client(running)
            await until(lambda: paused.requests)
            paused.mute(clock.monotonic() + 0.1)
            clock.advance(200)
            running.listener.deadlines.expire_due()

            assert await numbers_of(client, 8) == list(range(1, 9))
            await client.close()

    asyncio.run(story())


def test_a_connection_that_used_up_its_slice_ends_with_the_broker() -> None:
    clock = ManualClock()
    seen: list[int] = []

    async def story() -> None:
        async with running_listener([costly(clock, seen)], clock=clock) as running:
            client = await running.connect()
            client.writer.write(pipelined(range(1, 41)))
            await until(lambda: seen)

            await running.listener.stop(grace_seconds=0)

            assert len(seen) < 40
            assert await client.is_closed()
            await client.close()

    asyncio.run(story())


def silent_answers(seen: list[int], act: Callable[[Call], None] = lambda _call: None) -> Any:
    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
        seen.append(call.request.correlation_id)
        act(call)
        return FetchResponse()

    return handler(1, answer)


def test_a_request_that_must_end_first_holds_the_ones_behind_it() -> None:
    seen: list[int] = []
    calls: list[Call] = []

    def answer(context: Context, call: Call, request: FetchRequest) -> FetchResponse | None:
        seen.append(call.request.correlation_id)
        if seen == [1]:
            call.hold()
            calls.append(call)
            return None
        return FetchResponse()

    async def story() -> None:
        async with running_listener([handler(1, answer)]) as running:
            client, other = await running.connect(), await running.connect()
            client.writer.write(pipelined(range(1, 4)))
            await until(lambda: calls)
            other.writer.write(pipelined(range(7, 8)))
            assert await numbers_of(other, 1) == [7]
            assert seen == [1, 7]

            calls[0].answer(FetchResponse())
            calls[0].let_go()

            assert await numbers_of(client, 3) == [1, 2, 3]
            await client.close()
            await other.close()

    asyncio.run(story())


def test_a_muted_connection_is_served_again_when_its_time_is_over() -> None:
    clock = ManualClock()
    seen: list[int] = []

    async def story() -> None:
        async with running_listener([silent_answers(seen)], clock=clock) as running:
            client = await running.connect()
            await client.ask(FetchRequest(), 11)
            muted = only_client(running)
            muted.mute(clock.monotonic() + 0.5)
            muted.mute(clock.monotonic() + 0.2)  # does not shorten it
            client.writer.write(pipelined(range(2, 4)))

            for passed in (0, 300):
                clock.advance(passed)
                running.listener.deadlines.expire_due()
                for _ in range(20):
                    await asyncio.sleep(0)
                assert seen == [1]
            clock.advance(300)
            running.listener.deadlines.expire_due()

            assert await numbers_of(client, 2) == [2, 3]
            await client.close()

    asyncio.run(story())


def test_a_request_that_mutes_its_connection_is_answered_and_the_rest_waits() -> None:
    clock = ManualClock()
    seen: list[int] = []

    async def story() -> None:
        def mute(_call: Call) -> None:
            if seen == [1]:
                only_client(running).mute(clock.monotonic() + 1.0)

        async with running_listener([silent_answers(seen, mute)], clock=clock) as running:
            client = await running.connect()
            client.writer.write(pipelined(range(1, 4)))

            assert await numbers_of(client, 1) == [1]
            assert seen == [1]
            clock.advance(1_100)
            running.listener.deadlines.expire_due()
            assert await numbers_of(client, 2) == [2, 3]
            await client.close()

    asyncio.run(story())


def test_a_muted_connection_that_is_closed_leaves_no_deadline() -> None:
    clock = ManualClock()

    async def story() -> None:
        async with running_listener([silent_answers([])], clock=clock) as running:
            client = await running.connect()
            await until(lambda: running.listener.clients)
            muted = only_client(running)
            muted.mute(clock.monotonic() + 1.0)

            muted.close("gone")

            assert len(running.listener.deadlines) == 0
            muted.mute(clock.monotonic() + 2.0)
            assert len(running.listener.deadlines) == 0
            await client.close()

    asyncio.run(story())
