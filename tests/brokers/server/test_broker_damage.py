"""A whole broker, a damaged log, and clients on both sides of the damage."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from brokers.clock import SystemClock
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from brokers.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from brokers.protocol.records.batch import MAGIC_POSITION
from brokers.storage.files import LocalFiles
from tests.builders.logs import batch, spans
from tests.fakes.broker import RunningBroker, running_broker
from tests.fakes.listener import ByteClient, until

pytestmark = pytest.mark.slow

TOPIC = {"orders": 1}
CONFIGS = {"internal.segment.bytes": "680000"}
SIZE = len(batch())
BATCHES = 4_100
DAMAGED = 3_500


class CountingFiles(LocalFiles):
    """Local files that count what is read."""

    def __init__(self) -> None:
        self.bytes_read = 0

    def pread(self, fd: int, length: int, position: int) -> bytes:
        data = os.pread(fd, length, position)
        self.bytes_read += len(data)
        return data


async def fetched(client: ByteClient, offset: int) -> Any:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic="orders", partitions=[partition])],
    )
    answer = await client.ask(request, 11)
    return answer.responses[0].partitions[0]


async def offset_at(client: ByteClient, timestamp: int) -> Any:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name="orders", partitions=[wanted])
    answer = await client.ask(ListOffsetsRequest(topics=[topic]), 5)
    return answer.topics[0].partitions[0]


async def write(running: RunningBroker, now_ms: int) -> None:
    partition = running.context.replicas.leader("orders", 0)
    for number in range(BATCHES):
        partition.append(batch(timestamp=now_ms + number), now_ms)
    await until(lambda: partition.high_watermark == BATCHES)


def flip_magic(path: Path, number: int) -> None:
    with path.open("r+b") as file:
        file.seek(number * SIZE + MAGIC_POSITION)
        file.write(b"\x09")


def test_a_consumer_at_damage_is_told_and_costs_the_others_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        now_ms = SystemClock().now_ms()
        async with running_broker(tmp_path, topics=TOPIC, configs=CONFIGS) as running:
            await write(running, now_ms)
            segment = running.context.replicas.leader("orders", 0).log.segments[0]
            assert segment.size > DAMAGED * SIZE
        flip_magic(Path(segment.file.path), DAMAGED)

        files = CountingFiles()
        async with running_broker(tmp_path, twin=running.twin, files=files) as again:
            stuck, other = await again.connect(), await again.connect()
            files.bytes_read = 0
            for _ in range(50):
                told = await fetched(stuck, DAMAGED)
                assert told.error_code == ErrorCode.CORRUPT_MESSAGE
                behind = await fetched(other, DAMAGED + 1)
                assert spans(bytes(behind.records))[0] == (DAMAGED + 1, DAMAGED + 1)
                before = await fetched(other, DAMAGED - 1)
                assert spans(bytes(before.records)) == [(DAMAGED - 1, DAMAGED - 1)]
            found = await offset_at(other, now_ms + DAMAGED)
            assert (found.error_code, found.offset) == (0, DAMAGED + 1)

            # A walk through the segment alone would be 680 KB, and each fetch had its own once.
            assert files.bytes_read < 50 * 3 * 100_000
            await until(lambda: events(again, "log.damaged"))
            (told_of,) = events(again, "log.damaged")
            assert f"from offset {DAMAGED} to {DAMAGED}" in told_of["error"]
            await stuck.close()
            await other.close()

    asyncio.run(story())


def events(running: RunningBroker, event: str) -> list[dict[str, Any]]:
    return [line for line in running.lines if line["event"] == event]
