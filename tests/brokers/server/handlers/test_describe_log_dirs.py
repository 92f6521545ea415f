"""DescribeLogDirs: the one log dir, what is in it, and the room around it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from brokers.server.handlers import describe_log_dirs
from brokers.storage.errors import LogDirFailed
from tests.brokers.replication.parts import REPLICATED, Rig, image, rig, topic
from tests.builders.logs import NOW_MS, batch


async def ask(broker: Rig, version: int = 5, topics: Any = None) -> Any:
    answer = await broker.ask_async(
        describe_log_dirs, DescribeLogDirsRequest(topics=topics), version
    )
    return answer.results[0]


@pytest.mark.parametrize("version", range(1, 6))
def test_every_partition_is_shown_with_its_size(tmp_path: Path, version: int) -> None:
    async def run() -> None:
        cluster = image(topic(partitions=2), configs={"t": REPLICATED})
        async with rig(tmp_path, cluster) as broker:
            broker.leader().append(batch(), NOW_MS)
            result = await ask(broker, version)

            assert (result.error_code, result.log_dir) == (ErrorCode.NONE, str(tmp_path))
            [shown] = result.topics
            sizes = [(p.partition_index, p.partition_size, p.offset_lag) for p in shown.partitions]
            assert sizes == [(0, len(batch()), 0), (1, 0, 0)]
            if version >= 4:
                assert 0 < result.usable_bytes <= result.total_bytes

    asyncio.run(run())


def test_partitions_that_are_not_here_are_left_out(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(partitions=3))) as broker:
            wanted = [
                DescribableLogDirTopic(topic="t", partitions=[1, 9]),
                DescribableLogDirTopic(topic="x", partitions=[0]),
            ]
            [shown] = (await ask(broker, topics=wanted)).topics
            assert [p.partition_index for p in shown.partitions] == [1]
            assert (await ask(broker, topics=[])).topics == []

    asyncio.run(run())


def test_a_log_dir_that_has_failed_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            failure = LogDirFailed(str(tmp_path), "fsync", OSError(5, "Input/output error"))
            broker.replicas.log_dir.handles.fail(failure)
            assert (await ask(broker)).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(run())
