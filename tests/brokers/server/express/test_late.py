"""Lanes on a whole broker: answers leave in the order of the requests, whichever way they took."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.connection import MAX_PIPELINED
from brokers.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from brokers.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from brokers.protocol.schema import Message
from brokers.server.express.lanes import Express
from tests.brokers.replication.parts import GatedFiles
from tests.builders.logs import batch
from tests.fakes.broker import RunningBroker, running_broker
from tests.fakes.listener import ByteClient, request_frame

PRODUCE, FETCH = 9, 12


def write() -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch())
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name="orders", partition_data=[data])],
    )


def read(offset: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        session_epoch=-1,
        max_wait_ms=5_000,
        min_bytes=1,
        topics=[FetchTopic(topic="orders", partitions=[wanted])],
    )


async def greeted(running: RunningBroker) -> ByteClient:
    """A client that has begun as all clients do: no lane takes the first request."""
    client = await running.connect()
    await client.ask(ApiVersionsRequest(), 0)
    return client


@contextmanager
def taken_by_lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Keeps how many bytes each request had that a lane took."""
    taken: list[int] = []
    serve = Express.serve

    def counted(self: Express, data: Any, view: Any, count: int, now: float) -> Any:
        answer = serve(self, data, view, count, now)
        if answer is not None:
            taken.append(count)
        return answer

    monkeypatch.setattr(Express, "serve", counted)
    yield taken


def base_offset(answer: Any) -> int:
    found: int = answer.responses[0].partition_responses[0].base_offset
    return found


@pytest.mark.parametrize("durability", ["synced", "replicated"])
def test_a_producer_and_a_reader_get_what_they_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    async def story(taken: list[int]) -> None:
        configs = {"samsa.durability": durability, "retention.ms": "-1"}
        async with running_broker(tmp_path, topics={"orders": 1}, configs=configs) as running:
            client = await greeted(running)
            for number in range(5):
                assert base_offset(await client.ask(write(), PRODUCE)) == number
            assert len(taken) == 4
            for offset in range(5):
                answer = await client.ask(read(offset), FETCH)
                data = answer.responses[0].partitions[0]
                assert data.high_watermark == 5
                assert len(data.records) == (5 - offset) * len(batch())
            assert len(taken) == 4 + 4
            await client.close()

    with taken_by_lanes(monkeypatch) as taken:
        asyncio.run(story(taken))


def test_answers_keep_their_order_behind_one_that_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(taken: list[int]) -> None:
        files = GatedFiles()
        configs = {"retention.ms": "-1"}
        async with running_broker(
            tmp_path, topics={"orders": 1}, configs=configs, files=files
        ) as running:
            client = await greeted(running)
            await client.ask(write(), PRODUCE)
            await client.ask(read(0), FETCH)
            files.gate.clear()
            asked: list[tuple[Message, int, type[Message]]] = [
                (write(), PRODUCE, ProduceResponse),
                (read(0), FETCH, FetchResponse),
                (ApiVersionsRequest(), 0, ApiVersionsResponse),
                (write(), PRODUCE, ProduceResponse),
            ]

            # One by one, so that each comes in a read of its own.
            for number, (message, version, _response) in enumerate(asked):
                before = running.broker.metrics.bytes_in
                client.send(message, version, correlation_id=number)
                async with asyncio.timeout(10):
                    while running.broker.metrics.bytes_in == before:  # noqa: ASYNC110
                        await asyncio.sleep(0)
            files.gate.set()
            answers = [
                await client.answer(response, version) for _message, version, response in asked
            ]

            assert [base_offset(answers[0]), base_offset(answers[3])] == [1, 2]
            assert answers[1].responses[0].partitions[0].high_watermark == 1
            assert answers[2].api_keys
            assert len(taken) == 3
            await client.close()

    with taken_by_lanes(monkeypatch) as taken:
        asyncio.run(story(taken))


def test_a_client_that_leaves_while_its_batch_waits_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story() -> None:
        files = GatedFiles()
        async with running_broker(
            tmp_path, topics={"orders": 1}, configs={"retention.ms": "-1"}, files=files
        ) as running:
            client = await greeted(running)
            await client.ask(write(), PRODUCE)
            files.gate.clear()
            client.send(write(), PRODUCE)
            room = running.context.replicas.room
            async with asyncio.timeout(10):
                while not room.append_bytes:  # noqa: ASYNC110
                    await asyncio.sleep(0)

            client.writer.transport.abort()

            async with asyncio.timeout(10):
                while room.append_bytes:  # noqa: ASYNC110
                    await asyncio.sleep(0)
            files.gate.set()

    asyncio.run(story())


def test_batches_that_had_to_wait_for_earlier_answers_are_appended_too(tmp_path: Path) -> None:
    async def story() -> None:
        files = GatedFiles()
        async with running_broker(
            tmp_path, topics={"orders": 1}, configs={"retention.ms": "-1"}, files=files
        ) as running:
            client = await greeted(running)
            files.gate.clear()
            count = MAX_PIPELINED + 20
            client.writer.write(
                b"".join(request_frame(write(), PRODUCE, number) for number in range(count))
            )
            room = running.context.replicas.room
            async with asyncio.timeout(10):
                while room.appends < MAX_PIPELINED:  # noqa: ASYNC110
                    await asyncio.sleep(0)
            files.gate.set()

            for number in range(count):
                assert base_offset(await client.answer(ProduceResponse, PRODUCE)) == number

            await client.close()

    asyncio.run(story())
