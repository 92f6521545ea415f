"""A whole broker that compacts: real logs, the real process that cleans, clients over the wire."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.find_coordinator import FindCoordinatorRequest
from brokers.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from brokers.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.replication.partition import Partition
from brokers.server.coordinators import GROUPS_TOPIC
from tests.builders.cleaning import Row, keyed, latest, rows_of
from tests.fakes.broker import RunningBroker, running_broker
from tests.fakes.listener import ByteClient

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

QUICKLY = {"log.cleaner.backoff.ms": "100"}
COMPACT = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "20000",
    "min.cleanable.dirty.ratio": "0.01",
}
GROUPS = ("billing", "search", "mail")
PARTITIONS = 200
COMMITS = 200_000
SECONDS = 120.0


async def until(fact: Callable[[], object]) -> None:
    """Waits for a fact that another process brings about."""
    async with asyncio.timeout(SECONDS):
        while not fact():  # noqa: ASYNC110 - facts of the product announce themselves to nobody
            await asyncio.sleep(0)


async def write(client: ByteClient, rows: list[Row]) -> None:
    data = PartitionProduceData(index=0, records=keyed(*rows, timestamp=int(time.time() * 1000)))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name="t", partition_data=[data])],
    )
    answer = await client.ask(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def is_clean(running: RunningBroker, topic: str, index: int = 0) -> bool:
    """Whether nothing is left to clean of a log but its active segment."""
    replicas = running.context.replicas
    base = replicas.leader(topic, index).log.segments.active.base_offset
    return replicas.log_dir.first_dirty((topic, index)) >= base


def test_a_compacted_topic_shrinks_to_its_last_values_while_it_is_written(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_broker(
            tmp_path, topics={"t": 1}, configs=COMPACT, defaults=QUICKLY
        ) as running:
            client = await running.connect()
            for number in range(300):
                await write(client, [(b"k%d" % (number % 7), b"%d" % number + b"v" * 300)])
            await write(client, [(b"k0", None), (b"new", b"v" * 15_000)])
            await write(client, [(b"newer", b"v")])

            await until(lambda: is_clean(running, "t"))

            log = running.context.replicas.leader("t", 0).log
            values = latest(rows_of(log))
            assert set(values) == {b"new", b"newer", *(b"k%d" % key for key in range(1, 7))}
            assert values[b"k6"].startswith(b"293")
            assert log.size_bytes < 30_000
            assert running.broker.metrics.cleaned_bytes > 80_000
            assert running.broker.metrics.cleaner_seconds > 0
            assert running.broker.metrics.uncleanable_logs == 0
            await client.close()

    asyncio.run(story())


def test_a_broker_that_is_told_not_to_compact_does_not(tmp_path: Path) -> None:
    async def story() -> None:
        defaults = {**QUICKLY, "log.cleaner.enable": "false"}
        async with running_broker(tmp_path, topics={"t": 1}, configs=COMPACT, defaults=defaults):
            names = {str(task.get_coro()) for task in asyncio.all_tasks()}
            assert any("Housekeeping.run" in name for name in names)
            assert not any("Broker._compact" in name for name in names)

    asyncio.run(story())


async def committed(client: ByteClient, group: str) -> dict[int, tuple[int, str]]:
    """All that a group has committed, by partition."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    while True:
        answer = await client.ask(request, 8)
        (found,) = answer.groups
        if found.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
    assert found.error_code == 0, f"{group}: {found.error_code}"
    (topic,) = found.topics
    return {
        one.partition_index: (one.committed_offset, one.metadata or "") for one in topic.partitions
    }


async def commit(client: ByteClient, group: str, offset: int) -> None:
    """Commits one offset for all partitions."""
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset + index, committed_metadata=f"{offset}"
        )
        for index in range(PARTITIONS)
    ]
    topic = OffsetCommitRequestTopic(name="t", partitions=partitions)
    answer = await client.ask(OffsetCommitRequest(group_id=group, topics=[topic]), 8)
    assert {one.error_code for one in answer.topics[0].partitions} == {0}


async def find(client: ByteClient) -> None:
    """Has the groups' topic made, and waits until this broker coordinates all of them."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=list(GROUPS))

    codes = {-1}
    async with asyncio.timeout(SECONDS):
        while codes != {0}:
            answer = await client.ask(request, 4)
            codes = {one.error_code for one in answer.coordinators}


def offsets_logs(running: RunningBroker) -> list[Partition]:
    return [
        partition
        for partition in running.context.replicas.partitions()
        if partition.topic == GROUPS_TOPIC and partition.log.end_offset > 0
    ]


def test_committed_offsets_take_no_more_room_than_groups_have_and_outlive_a_start(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    defaults = {**QUICKLY, "offsets.topic.segment.bytes": str(1024 * 1024)}

    async def story() -> None:
        kept: dict[str, Any] = {}
        async with running_broker(tmp_path, topics={"t": PARTITIONS}, defaults=defaults) as running:
            client = await running.connect()
            await find(client)
            for number in range(COMMITS // PARTITIONS):
                await commit(client, GROUPS[number % len(GROUPS)], number)

            logs = offsets_logs(running)
            await until(lambda: all(is_clean(running, GROUPS_TOPIC, one.index) for one in logs))

            size = sum(one.log.size_bytes for one in logs)
            written = sum(one.appended_bytes for one in logs)
            # What is not active has one record for each partition of each group.
            active = sum(one.log.segments.active.size for one in logs)
            assert size - active < written / 10
            kept = {group: await committed(client, group) for group in GROUPS}
            assert all(len(found) == PARTITIONS for found in kept.values())
            report(
                f"{COMMITS} commits, {written / 1e6:.1f} MB written, {size / 1e6:.1f} MB kept, "
                f"{active / 1e6:.1f} of them active; "
                f"{running.broker.metrics.cleaner_seconds:.1f} s of processes"
            )
            await client.close()
            twin = running.twin

        async with running_broker(tmp_path, twin=twin, defaults=defaults) as again:
            client = await again.connect()
            await find(client)
            for group, offsets in kept.items():
                assert await committed(client, group) == offsets
            await client.close()

    asyncio.run(story())
