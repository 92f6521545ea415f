"""DeleteRecords: deletes the records of partitions below an offset.

The new log starts are on the disk before the response, with one write for all partitions of a
request; whole segments below them are deleted later. If that write fails the response is an error,
though readers may find the records gone already: the client retries.
"""

from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served
from brokers.slices import Slices
from brokers.storage.errors import StorageError

SERVED = Served(key=21)


async def handle(
    context: Context, _call: Call, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    slices = Slices(context.clock)
    topics = []
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            answers.append(_delete(context, topic.name, wanted))
            await slices.breathe()
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
    moved = [
        answer
        for topic in topics
        for answer in topic.partitions
        if answer.error_code == ErrorCode.NONE
    ]
    if moved:
        code = _save(context)
        for answer in moved if code is not ErrorCode.NONE else ():
            answer.error_code = code
            answer.low_watermark = -1
    return DeleteRecordsResponse(topics=topics)


def _delete(
    context: Context, topic: str, wanted: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    answer = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1)
    try:
        answer.low_watermark = _low_watermark(context, topic, wanted)
    except KafkaError as error:
        answer.error_code = error.code
    return answer


def _low_watermark(context: Context, topic: str, wanted: DeleteRecordsPartition) -> int:
    if topic in INTERNAL_TOPICS:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is internal, its records are not deleted"
        )
    if not context.is_serving:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker leads nothing yet")
    partition = context.replicas.leader(topic, wanted.partition_index)
    if not partition.settings.log.is_deleted:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"cleanup.policy of {topic} does not delete, so its records cannot be deleted",
        )
    return partition.delete_before(wanted.offset)


def _save(context: Context) -> ErrorCode:
    try:
        context.replicas.save_log_starts()
    except (KafkaError, StorageError) as error:
        context.replicas.report("log_starts.not_saved", error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
