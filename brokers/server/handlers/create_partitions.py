"""CreatePartitions: adds partitions to topics.

Turns wire topics into actions and outcomes into results; the store decides what is allowed.
"""

from typing import Final

from brokers.cluster.proposals import Action, CreatePartitions, Outcome
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from brokers.server.admin_outcomes import error_fields, outcomes_of, refusal, repeated, shown
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=37, waits=True)


async def handle(
    context: Context, call: Call, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    twice = repeated(topic.name for topic in request.topics)
    topics = {topic.name: topic for topic in request.topics}
    parts = [_part(topic, is_repeated=topic.name in twice) for topic in topics.values()]
    outcomes = await outcomes_of(
        context,
        call,
        parts,
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    return CreatePartitionsResponse(
        results=[_result(name, outcome) for name, outcome in zip(topics, outcomes, strict=True)]
    )


def _part(topic: CreatePartitionsTopic, *, is_repeated: bool) -> Action | Outcome:
    if is_repeated:
        return refusal(ErrorCode.INVALID_REQUEST, f"topic {shown(topic.name)} is listed twice")
    assignments = None
    if topic.assignments is not None:
        assignments = tuple(tuple(given.broker_ids) for given in topic.assignments)
    return CreatePartitions(name=topic.name, count=topic.count, assignments=assignments)


def _result(name: str, outcome: Outcome) -> CreatePartitionsTopicResult:
    error, message = error_fields(outcome)
    return CreatePartitionsTopicResult(name=name, error_code=error, error_message=message)
