"""DescribeProducers: returns the producers that the leader of a partition remembers."""

from brokers.cluster.topic_names import check_topic_name
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from brokers.replication.partition import Partition
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served
from brokers.slices import Slices

SERVED = Served(key=61)


async def handle(
    context: Context, _call: Call, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    slices = Slices(context.clock)
    topics = []
    for topic in request.topics:
        answers = []
        for index in topic.partition_indexes:
            answers.append(_describe(context, topic.name, index))
            await slices.breathe()
        topics.append(TopicResponse(name=topic.name, partitions=answers))
    return DescribeProducersResponse(topics=topics)


def _describe(context: Context, topic: str, index: int) -> PartitionResponse:
    if not context.is_serving:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return PartitionResponse(
            partition_index=index, error_code=code, error_message="this broker leads nothing yet"
        )
    try:
        check_topic_name(topic)
        partition = context.replicas.leader(topic, index)
    except KafkaError as error:
        return PartitionResponse(
            partition_index=index, error_code=error.code, error_message=error.message
        )
    return PartitionResponse(partition_index=index, active_producers=_producers(partition))


def _producers(partition: Partition) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_seen_ms,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.txn_first_offset,
        )
        for producer in partition.log.producers.active()
    ]
