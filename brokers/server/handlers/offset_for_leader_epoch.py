"""OffsetForLeaderEpoch: returns the end of a leader epoch in the log of a partition.

A reader that holds records of an epoch finds out whether they are still part of the log.
"""

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served
from brokers.slices import Slices

SERVED = Served(key=23)


async def handle(
    context: Context, _call: Call, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    slices = Slices(context.clock)
    topics = []
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            answers.append(_end(context, topic.topic, wanted))
            await slices.breathe()
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)


def _end(context: Context, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=wanted.partition)
    if not context.is_serving:
        answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return answer
    try:
        partition = context.replicas.leader(topic, wanted.partition)
        partition.check_epoch(wanted.current_leader_epoch)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    answer.leader_epoch, answer.end_offset = partition.epoch_end(wanted.leader_epoch)
    return answer
