"""A whole broker and a client that asks for records and never reads them."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from brokers.clock import SystemClock
from brokers.cluster.proposals import DeleteTopic
from brokers.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.builders.logs import batch
from tests.fakes.broker import RunningBroker, running_broker
from tests.fakes.listener import ByteClient, request_frame, until

# Together more than the kernel holds for a connection that is not read: 4 MiB at most by default.
BATCHES = 10
BATCH_BYTES = 1_000_000


def fetch() -> FetchRequest:
    partition = FetchPartition(partition=0, partition_max_bytes=50 << 20)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=50 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic="orders", partitions=[partition])],
    )


async def produced(client: ByteClient, size: int) -> Any:
    records = batch(size=size, timestamp=SystemClock().now_ms())
    data = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="orders", partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    return (await client.ask(request, 9)).responses[0].partition_responses[0]


@contextmanager
def reader_that_does_not_read(running: RunningBroker) -> Iterator[None]:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect((running.host, running.port))
        sock.sendall(request_frame(fetch(), 11))
        yield


def test_a_topic_is_deleted_and_made_again_under_a_reader_that_does_not_read(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with running_broker(tmp_path, topics={"orders": 1}) as running:
            client = await running.connect()
            for _ in range(BATCHES):
                assert (await produced(client, BATCH_BYTES)).error_code == 0
            handles = running.context.replicas.log_dir.handles
            old = running.context.replicas.leader("orders", 0).log
            with reader_that_does_not_read(running):
                await until(lambda: old.segments.active.file.pins > 0)

                running.twin.propose_now(DeleteTopic(name="orders"))
                running.twin.create_topic("orders", partitions=1)
                await running.context.wait_applied(running.twin.image.version)

                assert (await produced(client, 100)).error_code == 0
                answer = await client.ask(fetch(), 11)
                (partition,) = answer.responses[0].partitions
                assert (partition.error_code, partition.high_watermark) == (0, 1)
                assert handles.doomed_files == 1
            await until(lambda: handles.doomed_files == 0)
            await client.close()
        assert running.broker.is_clean

    asyncio.run(story())
