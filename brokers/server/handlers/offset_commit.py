"""OffsetCommit: stores a group's committed offsets, and answers once they are safe.

Each partition succeeds or fails alone: a missing partition, or a too long metadata text, is
refused, and the others are committed. An error of the member applies to all of them.
"""

from typing import Final

from brokers.coordination.groups.offset_operations import Committing, commit
from brokers.coordination.groups.offsets import Place
from brokers.coordination.groups.values import NO_EXPIRY, Committed
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from brokers.protocol.schema import Message
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import long_id_error, part_error, submitted
from brokers.server.served_api import Served

SERVED: Final = Served(key=8)

_IDS_SINCE: Final = 10  # the first version with ids of topics in place of their names


def handle(context: Context, call: Call, request: OffsetCommitRequest) -> Message | None:
    image, now_ms, has_ids = context.image, context.clock.now_ms(), call.version >= _IDS_SINCE
    longest = context.groups.settings.offset_metadata_max_units
    retention_ms = request.retention_time_ms
    expire_ms = now_ms + retention_ms if retention_ms >= 0 else NO_EXPIRY
    kept: list[OffsetCommitResponsePartition] = []
    committed: dict[Place, Committed] = {}
    topic_ids: dict[str, bytes] = {}
    topics: list[OffsetCommitResponseTopic] = []
    for asked in request.topics:
        topic = image.topic_by_id(asked.topic_id) if has_ids else image.topics.get(asked.name)
        parts: list[OffsetCommitResponsePartition] = []
        for part in asked.partitions:
            answer = OffsetCommitResponsePartition(partition_index=part.partition_index)
            parts.append(answer)
            metadata = part.committed_metadata or ""
            if topic is None:
                answer.error_code = (
                    ErrorCode.UNKNOWN_TOPIC_ID if has_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            elif not 0 <= part.partition_index < len(topic.partitions):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif len(metadata) * 2 > longest and _units(metadata) > longest:
                answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                kept.append(answer)
                topic_ids[topic.name] = topic.id
                committed[topic.name, part.partition_index] = Committed(
                    part.committed_offset,
                    part.committed_leader_epoch,
                    metadata,
                    now_ms,
                    expire_ms,
                    topic.id,
                )
        topics.append(
            OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=parts)
        )
    response = OffsetCommitResponse(topics=topics)

    def refused(error: KafkaError) -> OffsetCommitResponse:
        for answer in kept:
            answer.error_code = error.code
        return response

    wrong = long_id_error(request.group_id)
    wrong = wrong or part_error(request.member_id, request.group_instance_id)
    if wrong is not None:
        return refused(wrong)
    if not committed:
        return response
    committing = Committing(
        group_id=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        version=call.version,
        committed=committed,
        topic_ids=topic_ids,
        answer=response,
    )
    return submitted(context, call, request.group_id, commit(committing), refused)


def _units(text: str) -> int:
    """Return a text's length as Java counts it: a character has two units at most."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
