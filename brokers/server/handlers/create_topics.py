"""CreateTopics: creates topics independently, and returns the outcome of each.

Turns wire topics into actions and outcomes into results; the store decides what is allowed. From
version 5 on the response has the configuration of each new topic, as DescribeConfigs would return
it, also if it was only validated.
"""

from typing import Final

from brokers.cluster.proposals import Action, CreateTopic, Outcome, TopicResult
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from brokers.server.admin_outcomes import error_fields, outcomes_of, refusal, repeated, shown
from brokers.server.call import Call
from brokers.server.config_entries import BY_CLUSTER, default_partitions, topic_entries
from brokers.server.context import Context
from brokers.server.served_api import Served
from brokers.slices import Slices

SERVED: Final = Served(key=19, waits=True)

_CONFIGS_SINCE: Final = 5  # the first version that shows what was created


async def handle(
    context: Context, call: Call, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    twice = repeated(topic.name for topic in request.topics)
    topics = {topic.name: topic for topic in request.topics}
    parts = [_part(context, topic, is_repeated=topic.name in twice) for topic in topics.values()]
    outcomes = await outcomes_of(
        context,
        call,
        parts,
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    slices = Slices(context.clock)
    results = []
    for topic, outcome in zip(topics.values(), outcomes, strict=True):
        results.append(_result(context, call.version, topic, outcome))
        await slices.breathe()
    return CreateTopicsResponse(topics=results)


def _part(context: Context, topic: CreatableTopic, *, is_repeated: bool) -> Action | Outcome:
    if is_repeated:
        return refusal(ErrorCode.INVALID_REQUEST, f"topic {shown(topic.name)} is listed twice")
    try:
        assignments = _assignments(topic.assignments)
    except KafkaError as error:
        return refusal(error.code, error.message)
    partitions = topic.num_partitions
    if partitions == BY_CLUSTER and assignments is None:
        partitions = default_partitions(context)
    return CreateTopic(
        name=topic.name,
        partitions=partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments,
        configs=tuple((config.name, config.value) for config in topic.configs),
    )


def _assignments(given: list[CreatableReplicaAssignment]) -> tuple[tuple[int, ...], ...] | None:
    """Return the replicas by partition, if there are any: each partition from 0 on occurs once."""
    replicas: dict[int, tuple[int, ...]] = {}
    for assignment in given:
        index = assignment.partition_index
        if index in replicas:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {index} is assigned twice"
            )
        replicas[index] = tuple(assignment.broker_ids)
    missing = next((index for index in range(len(replicas)) if index not in replicas), None)
    if missing is not None:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(replicas)} partitions are assigned and partition {missing} is not among them:"
            " number them from 0 on",
        )
    return tuple(replicas[index] for index in range(len(replicas))) or None


def _result(
    context: Context, version: int, topic: CreatableTopic, outcome: Outcome
) -> CreatableTopicResult:
    error, message = error_fields(outcome)
    if not isinstance(outcome.result, TopicResult) or error is not ErrorCode.NONE:
        return CreatableTopicResult(name=topic.name, error_code=error, error_message=message)
    created = outcome.result
    return CreatableTopicResult(
        name=topic.name,
        topic_id=created.topic_id,
        error_message=None,
        num_partitions=created.partitions,
        replication_factor=created.replication_factor,
        configs=_configs(context, topic) if version >= _CONFIGS_SINCE else None,
    )


def _configs(context: Context, topic: CreatableTopic) -> list[CreatableTopicConfigs]:
    given = {config.name: config.value or "" for config in topic.configs}
    return [
        CreatableTopicConfigs(
            name=entry.key,
            value=entry.value,
            read_only=False,
            config_source=entry.source,
            is_sensitive=False,
        )
        for entry in topic_entries(context, given)
    ]
