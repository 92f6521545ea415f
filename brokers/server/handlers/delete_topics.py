"""DeleteTopics: deletes topics with all their records, by name or by id.

A topic is named once, by its name or by its id; a client that names one twice may mean two, so it
is not deleted. Deleting by id never affects a topic that was recreated under the same name.
"""

from collections.abc import Sequence
from typing import Final

from brokers.cluster.image import ClusterImage
from brokers.cluster.proposals import Action, DeleteTopic, Outcome, TopicResult
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from brokers.protocol.schema import ZERO_UUID
from brokers.server.admin_outcomes import error_fields, outcomes_of, refusal, repeated, shown
from brokers.server.call import Call
from brokers.server.config_entries import DELETE_TOPICS, is_enabled
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=20, waits=True)

_DISABLED_SINCE: Final = 3  # the first version whose clients know TOPIC_DELETION_DISABLED
_STATES_SINCE: Final = 6  # the first version that names topics by id too


async def handle(
    context: Context, call: Call, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    image = context.image
    topics = request.topics
    if call.version < _STATES_SINCE:
        topics = [DeleteTopicState(name=name) for name in request.topic_names]
    parts: list[Action | Outcome] = [_switched_off(call.version)] * len(topics)
    if is_enabled(context, DELETE_TOPICS):
        parts = _parts(image, topics)
    outcomes = await outcomes_of(context, call, parts, timeout_ms=request.timeout_ms)
    # Identical entries are answered once, as in Kafka.
    results = {
        (topic.name, topic.topic_id): _result(image, topic, outcome)
        for topic, outcome in zip(topics, outcomes, strict=True)
    }
    return DeleteTopicsResponse(responses=list(results.values()))


def _switched_off(version: int) -> Outcome:
    known = version >= _DISABLED_SINCE
    return refusal(
        ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST,
        f"{DELETE_TOPICS} is false on this broker: topics cannot be deleted",
    )


def _parts(image: ClusterImage, topics: Sequence[DeleteTopicState]) -> list[Action | Outcome]:
    # A name and its id are the same topic, so ids are counted.
    twice = repeated(_key(image, topic) for topic in topics)
    return [_part(topic, is_repeated=_key(image, topic) in twice) for topic in topics]


def _key(image: ClusterImage, topic: DeleteTopicState) -> str | bytes:
    if topic.name is None:
        return topic.topic_id
    known = image.topics.get(topic.name)
    return topic.name if known is None else known.id


def _part(topic: DeleteTopicState, *, is_repeated: bool) -> Action | Outcome:
    has_id = topic.topic_id != ZERO_UUID
    if topic.name is None and not has_id:
        return refusal(ErrorCode.INVALID_REQUEST, "a topic needs a name or an id")
    if topic.name is not None and has_id:
        return refusal(
            ErrorCode.INVALID_REQUEST,
            f"topic {shown(topic.name)} comes with an id as well: give one of them",
        )
    if is_repeated:
        given = shown(topic.name) if topic.name is not None else f"with id {topic.topic_id.hex()}"
        return refusal(ErrorCode.INVALID_REQUEST, f"topic {given} is listed twice")
    return DeleteTopic(name=topic.name, topic_id=topic.topic_id if has_id else None)


def _result(image: ClusterImage, topic: DeleteTopicState, outcome: Outcome) -> DeletableTopicResult:
    """Take name and id from before the deletion."""
    error, message = error_fields(outcome)
    name, topic_id = topic.name, topic.topic_id
    if error is ErrorCode.NONE and isinstance(outcome.result, TopicResult):
        name, topic_id = outcome.result.name, outcome.result.topic_id
    elif name is None:
        name = image.names.get(topic_id)
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error, error_message=message
    )
