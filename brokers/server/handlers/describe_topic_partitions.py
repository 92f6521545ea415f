"""DescribeTopicPartitions: describes topics page by page.

Uses the image only. Topics are sorted by name, so that a cursor means the same for every broker: a
page ends at its limit of partitions, in the middle of a topic if necessary, and the cursor names
the first partition that did not fit.
"""

from collections.abc import Iterator
from typing import Final

from brokers.cluster.image import ClusterImage, Topic
from brokers.cluster.topic_names import INTERNAL_TOPICS, check_topic_name
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.metadata_cache import (
    ALL_TOPIC_OPERATIONS,
    availability,
)
from brokers.server.served_api import Served

SERVED: Final = Served(key=75)

# The limit of partitions in one response, Kafka's max.request.partition.size.limit. Describing so
# many takes about 5 ms.
MAX_PARTITIONS: Final = 2_000


def handle(
    context: Context, _call: Call, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image = context.image
    names = {topic.name for topic in request.topics}
    cursor = request.cursor
    if _contradicts_itself(request, names):
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(
                    error_code=ErrorCode.INVALID_REQUEST, name=name
                )
                for name in sorted(names)
            ]
        )
    wanted = sorted(names or image.topics)
    if cursor is not None:
        wanted = [name for name in wanted if name >= cursor.topic_name]
    alive = context.metadata_cache.alive(image)
    return _page(image, alive, wanted, request)


def _contradicts_itself(request: DescribeTopicPartitionsRequest, names: set[str]) -> bool:
    cursor = request.cursor
    return cursor is not None and (
        cursor.partition_index < 0 or (bool(names) and cursor.topic_name not in names)
    )


def _page(
    image: ClusterImage,
    alive: frozenset[int],
    names: list[str],
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse:
    answer = DescribeTopicPartitionsResponse()
    # A limit of 0 gets one, as in Kafka: with an empty page the cursor would not advance.
    left = max(1, min(request.response_partition_limit, MAX_PARTITIONS))
    for name in names:
        if left == 0:
            answer.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            answer.topics.append(_failed(name, _why_missing(name)))
            left -= 1  # it counts like a partition
            continue
        cursor = request.cursor
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        described = _described(topic, alive, first, left)
        answer.topics.append(described)
        left -= len(described.partitions)
        end = first + len(described.partitions)
        if end < len(topic.partitions):
            answer.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return answer


def _why_missing(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _failed(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=ALL_TOPIC_OPERATIONS,
    )


def _described(
    topic: Topic, alive: frozenset[int], first: int, limit: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=list(_partitions(topic, alive, first, limit)),
        topic_authorized_operations=ALL_TOPIC_OPERATIONS,
    )


def _partitions(
    topic: Topic, alive: frozenset[int], first: int, limit: int
) -> Iterator[DescribeTopicPartitionsResponsePartition]:
    for index, state in enumerate(topic.partitions[first : first + limit], first):
        error, leader, offline = availability(state, alive)
        yield DescribeTopicPartitionsResponsePartition(
            error_code=error,
            partition_index=index,
            leader_id=leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
            # No replica outside the ISR is known to hold all acknowledged records.
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=offline,
        )
