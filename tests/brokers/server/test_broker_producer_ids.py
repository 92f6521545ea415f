"""A whole broker whose store was set back: a new producer gets an id of its own, and its records
are stored beside those of the earlier one.
"""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from brokers.clock import SystemClock
from brokers.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from brokers.protocol.messages.init_producer_id import InitProducerIdRequest
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.builders.logs import batch, spans
from tests.fakes.broker import RunningBroker, running_broker
from tests.fakes.twin import Twin


async def wrote_as_new_producer(running: RunningBroker) -> tuple[int, int]:
    """Return the id of a new idempotent producer, and where its first batch went."""
    client = await running.connect()
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    given = await client.ask(request, 4)
    assert given.error_code == 0
    records = batch(producer=given.producer_id, timestamp=SystemClock().now_ms())
    data = PartitionProduceData(index=0, records=records)
    answer = await client.ask(
        ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name="orders", partition_data=[data])],
        ),
        9,
    )
    await client.close()
    done: Any = answer.responses[0].partition_responses[0]
    assert done.error_code == 0
    return given.producer_id, done.base_offset


async def stored(running: RunningBroker) -> list[tuple[int, int]]:
    client = await running.connect()
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    answer = await client.ask(
        FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[FetchTopic(topic="orders", partitions=[partition])],
        ),
        11,
    )
    await client.close()
    return spans(bytes(answer.responses[0].partitions[0].records))


def test_a_producer_after_the_store_was_set_back_is_no_duplicate_of_one_before(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        twin = Twin()
        async with running_broker(tmp_path, twin=twin, topics={"orders": 1}) as running:
            first = await wrote_as_new_producer(running)

        twin.set_back(twin.image)

        async with running_broker(tmp_path, twin=twin) as running:
            second = await wrote_as_new_producer(running)
            assert (first[1], second[1]) == (0, 1)
            assert second[0] != first[0]
            assert await stored(running) == [(0, 0), (1, 1)]

    asyncio.run(story())


def test_an_id_that_was_given_out_and_never_used_is_not_given_out_again(tmp_path: Path) -> None:
    async def given() -> int:
        async with running_broker(tmp_path, twin=twin) as running:
            client = await running.connect()
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            answer = await client.ask(request, 4)
            await client.close()
            assert isinstance(answer.producer_id, int)
            return answer.producer_id

    twin = Twin()
    first = asyncio.run(given())
    twin.set_back(twin.image)

    assert asyncio.run(given()) != first


def test_a_producer_is_no_duplicate_of_one_in_a_folder_from_another_cluster(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        first_home, second_home = tmp_path / "first", tmp_path / "second"
        for home in (first_home, second_home):
            home.mkdir()
        async with running_broker(first_home, topics={"orders": 1}) as running:
            imported = await wrote_as_new_producer(running)
        twin = Twin()
        async with running_broker(second_home, twin=twin, topics={"orders": 1}):
            pass
        folder = second_home / "data" / "orders-0"
        metadata = (folder / "partition.metadata").read_bytes()
        shutil.rmtree(folder)
        shutil.copytree(first_home / "data" / "orders-0", folder)
        (folder / "partition.metadata").write_bytes(metadata)

        async with running_broker(second_home, twin=twin) as running:
            own = await wrote_as_new_producer(running)
            assert own[0] != imported[0]
            assert await stored(running) == [(0, 0), (1, 1)]

    asyncio.run(story())
