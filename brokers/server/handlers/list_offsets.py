"""ListOffsets: returns the start and end of a partition, and the offset of a time.

Readers never get an offset behind the high watermark. A search by time reads indexes and decodes
batches, and a request may name all existing partitions, so requests run in small steps, in the
slice of the event loop that all long work shares.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from types import MappingProxyType
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from brokers.replication.partition import Partition
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served
from brokers.storage.reads import FoundRecord
from brokers.storage.time_search import Search

SERVED = Served(key=2)

_NONE: Final = -1
_FIRST_WITH_EPOCHS: Final = 4

# An offset, the time of its record, and the leader epoch.
Found = tuple[int, int, int]


def _latest(partition: Partition) -> Found:
    return partition.last_stable_offset, _NONE, partition.leader_epoch


def _earliest(partition: Partition) -> Found:
    start = partition.log.start_offset
    epoch = partition.log.epochs.epoch_for_offset(start)
    return start, _NONE, _NONE if epoch is None else epoch


def _nowhere(_partition: Partition) -> Found:
    return _NONE, _NONE, _NONE


_NEWEST: Final = -3
# The special timestamps: the first version that has each, and a function that finds its offset, if
# that needs no search. All of a log is local here, so its local part begins at its start, and the
# two offsets of tiered storage do not exist, as in Kafka for a topic without it.
PLACES: Final[Mapping[int, tuple[int, Callable[[Partition], Found] | None]]] = MappingProxyType(
    {
        -1: (1, _latest),
        -2: (1, _earliest),
        _NEWEST: (7, None),
        -4: (8, _earliest),
        -5: (9, _nowhere),
        -6: (11, _nowhere),
    }
)


async def handle(
    context: Context, call: Call, request: ListOffsetsRequest
) -> ListOffsetsResponse | None:
    return await context.replicas.turns.result_of(_answering(context, call, request))


def _answering(
    context: Context, call: Call, request: ListOffsetsRequest
) -> Generator[None, None, ListOffsetsResponse | None]:
    named = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    topics = []
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            is_twice = named[topic.name, wanted.partition_index] > 1
            try:
                found = yield from _finding(context, call, topic.name, wanted, is_twice=is_twice)
            except KafkaError as error:
                found = ListOffsetsPartitionResponse(
                    partition_index=wanted.partition_index, error_code=error.code
                )
            answers.append(found)
            yield
            if not call.is_open:
                return None
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _finding(
    context: Context, call: Call, topic: str, wanted: ListOffsetsPartition, *, is_twice: bool
) -> Generator[None, None, ListOffsetsPartitionResponse]:
    index, timestamp, version = wanted.partition_index, wanted.timestamp, call.version
    if is_twice:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{topic}-{index} is named twice")
    since, place = PLACES.get(timestamp, (0, None))
    if timestamp < 0 and (timestamp not in PLACES or version < since):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"version {version} does not support timestamp {timestamp}",
        )
    if not context.is_serving:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker leads nothing yet")
    partition = context.replicas.leader(topic, index)
    partition.check_epoch(wanted.current_leader_epoch)
    if place is not None:
        offset, found_at, epoch = place(partition)
    else:
        search = (
            partition.search_max_timestamp()
            if timestamp == _NEWEST
            else partition.search_timestamp(timestamp)
        )
        record = yield from _while_open(call, context.replicas.searches.through(search))
        offset, found_at, epoch = (
            (record.offset, record.timestamp, record.leader_epoch)
            if record is not None
            else _nowhere(partition)
        )
    return ListOffsetsPartitionResponse(
        partition_index=index,
        timestamp=found_at,
        offset=offset,
        leader_epoch=epoch if version >= _FIRST_WITH_EPOCHS else _NONE,
    )


def _while_open(call: Call, search: Search) -> Search:
    """Yield the same steps; end without a result once the connection is closed."""
    try:
        while call.is_open:
            try:
                next(search)
            except StopIteration as end:
                found: FoundRecord | None = end.value
                return found
            yield
    finally:
        search.close()
    return None
