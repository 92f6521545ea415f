"""Large requests that are never completed cost others nothing, however many there are."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from brokers.clock import Clock, SystemClock
from brokers.protocol.frames import BEYOND_BYTES
from brokers.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.frame_room import (
    ABANDONED_SECONDS,
    BESIDE_LARGEST_BYTES,
    STALLED_SECONDS,
)
from tests.fakes.clock import ManualClock
from tests.fakes.listener import (
    ByteClient,
    RunningListener,
    handler,
    request_frame,
    running_listener,
)

MIB = 1024 * 1024
MAX_FRAME = 2 * MIB
LIMIT = MAX_FRAME + BESIDE_LARGEST_BYTES


def versions(context: Context, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    return ApiVersionsResponse()


def produce(context: Context, call: Call, request: ProduceRequest) -> ProduceResponse:
    return ProduceResponse()


HANDLERS = [handler(18, versions), handler(0, produce)]


def large(size: int) -> bytes:
    data = PartitionProduceData(index=0, records=memoryview(bytes(size)))
    return request_frame(
        ProduceRequest(
            acks=1,
            timeout_ms=1,
            topic_data=[TopicProduceData(name="t", partition_data=[data])],
        ),
        9,
    )


class Listening:
    """A listener with a clock of its own, and the clients that it serves."""

    def __init__(self, running: RunningListener, clock: Clock) -> None:
        self.running = running
        self._clock = clock
        self.clients: list[ByteClient] = []

    @property
    def pending(self) -> int:
        return self.running.listener.frame_room.buffers.pending_bytes

    def advance(self, seconds: float) -> None:
        assert isinstance(self._clock, ManualClock)
        self._clock.advance(round(seconds * 1000) + 1)

    async def stranger(self) -> ByteClient:
        self.clients.append(await self.running.connect())
        return self.clients[-1]

    async def served(self) -> ByteClient:
        client = await self.stranger()
        await client.ask(ApiVersionsRequest(), 3)
        return client

    async def take_part(self, client: ByteClient, part: bytes) -> None:
        """Sends, and waits until all of it that finds room was received."""
        metrics = self.running.listener.metrics
        expected = metrics.bytes_in + len(part)
        client.writer.write(part)
        await self.running.until(lambda: metrics.bytes_in >= expected or self.pending >= LIMIT)


@asynccontextmanager
async def listening(
    clock: Clock | None = None, *, frame_seconds: float = 120
) -> AsyncIterator[Listening]:
    clock = clock or ManualClock()
    async with running_listener(
        HANDLERS, clock=clock, frame_seconds=frame_seconds, max_frame_bytes=MAX_FRAME
    ) as running:
        found = Listening(running, clock)
        try:
            yield found
        finally:
            for client in found.clients:
                await client.close()


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


def test_strangers_that_fill_the_room_give_way_to_whom_was_served() -> None:
    async def story() -> None:
        async with listening() as here:
            honest = await here.served()
            half = large(MAX_FRAME - 1_000)[:-1]
            strangers = [await here.stranger() for _ in range(8)]

            for stranger in strangers:
                await here.take_part(stranger, half)
                assert here.pending <= LIMIT
            for size in (200_000, MAX_FRAME - 1_000):
                honest.writer.write(large(size))
                await honest.answer(ProduceResponse, 9)

            assert here.pending <= LIMIT
            assert len(here.running.listener.clients) <= 1 + LIMIT // MAX_FRAME

    run(story())


def test_requests_that_all_wait_for_room_are_served_one_after_the_other() -> None:
    async def story() -> None:
        async with listening(clock=SystemClock()) as here:
            clients = [await here.served() for _ in range(12)]
            whole = large(MAX_FRAME - 1_000)
            for client in clients:
                await here.take_part(client, whole[: MAX_FRAME // 2])
            for client in clients:
                client.writer.write(whole[MAX_FRAME // 2 :])

            answers = asyncio.gather(*(client.answer(ProduceResponse, 9) for client in clients))
            while not answers.done():
                assert here.pending <= LIMIT + BEYOND_BYTES
                await asyncio.sleep(0)
            await answers

            assert here.pending == 0

    run(story())


def test_a_stalled_request_gives_way() -> None:
    async def story() -> None:
        async with listening() as here:
            half = large(MAX_FRAME - 1_000)[:-1]
            stalled = [await here.served() for _ in range(4)]
            for client in stalled:
                await here.take_part(client, half)
            honest = await here.served()
            here.advance(STALLED_SECONDS)

            honest.writer.write(large(MAX_FRAME - 1_000))

            await honest.answer(ProduceResponse, 9)
            assert here.pending <= LIMIT

    run(story())


def test_a_large_request_of_which_nothing_comes_is_given_up() -> None:
    async def story() -> None:
        async with listening(frame_seconds=0.2) as here:
            client = await here.served()
            await here.take_part(client, large(MAX_FRAME - 1_000)[:-1])
            (served,) = here.running.listener.clients
            await here.running.until(lambda: served.frame_mark == served.requests)

            here.advance(ABANDONED_SECONDS)

            assert await client.is_closed()
            assert here.pending == 0
            assert "nothing of a large request came" in here.running.lines[0]["detail"]

    run(story())
