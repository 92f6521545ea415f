"""DescribeLogDirs: returns this broker's one log dir and the size of each partition in it."""

from collections.abc import Iterable, Iterator

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from brokers.replication.partition import Partition
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served
from brokers.slices import Slices

SERVED = Served(key=35)


async def handle(
    context: Context, _call: Call, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    log_dir = context.replicas.log_dir
    if log_dir.handles.failure is not None:
        failed = DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir.path
        )
        return DescribeLogDirsResponse(results=[failed])
    slices = Slices(context.clock)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in list(_wanted(context, request)):
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = DescribeLogDirsTopic(name=partition.topic)
        topic.partitions.append(_describe(partition))
        await slices.breathe()
    total_bytes, usable_bytes = context.replicas.disk_bytes()
    result = DescribeLogDirsResult(
        log_dir=log_dir.path,
        topics=list(topics.values()),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
    return DescribeLogDirsResponse(results=[result])


def _wanted(context: Context, request: DescribeLogDirsRequest) -> Iterator[Partition]:
    """Yield the requested partitions that are here."""
    partitions: Iterable[Partition] = context.replicas.partitions()
    if request.topics is None:
        yield from partitions
        return
    named = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    yield from (
        partition for partition in partitions if (partition.topic, partition.index) in named
    )


def _describe(partition: Partition) -> DescribeLogDirsPartition:
    log = partition.log
    return DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=log.size_bytes,
        offset_lag=max(0, partition.high_watermark - log.end_offset),
        is_future_key=False,
    )
