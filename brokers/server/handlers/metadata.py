"""Metadata: returns the brokers, and the leaders of partitions.

Uses the image and a cache of encoded topics. A missing topic may be created by the request. The
request that created it gets UNKNOWN_TOPIC_OR_PARTITION, as from Kafka: clients retry, and find it.
The response waits a little for the creation, so that the retry finds the topic and a refused
creation returns its reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from brokers.cluster.image import ClusterImage, Topic
from brokers.cluster.proposals import MAX_PROPOSALS, CreateTopic, Outcome
from brokers.cluster.topic_names import INTERNAL_TOPICS, check_topic_name
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from brokers.protocol.schema import ZERO_UUID
from brokers.server.call import Call
from brokers.server.config_entries import AUTO_CREATE_TOPICS, default_partitions, is_enabled
from brokers.server.context import Context
from brokers.server.handlers.describe_cluster import ALL_CLUSTER_OPERATIONS
from brokers.server.metadata_cache import (
    ALL_TOPIC_OPERATIONS,
    NOT_ASKED,
    encode_answer,
    encode_topic,
)
from brokers.server.served_api import Served
from brokers.slices import Slices

SERVED: Final = Served(key=3)

# How long a response waits for topics that it made the cluster create. Clients give a request 30 s,
# and retry 100 ms after UNKNOWN_TOPIC_OR_PARTITION.
CREATION_WAIT_MS: Final = 3_000
# Topics that one request may create: as many as one transaction takes. The client gets the rest by
# retrying.
MAX_CREATED: Final = MAX_PROPOSALS
# Work done in the turn of the request: requested topics, and partitions to be encoded first. Either
# takes about a millisecond at most.
TOPICS_AT_ONCE: Final = 200
PARTITIONS_AT_ONCE: Final = 300

_ANY_NUMBER: Final = 2**31
# The error for the request that created a topic, even if the topic is in the image already.
_CREATED: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_NULL_IS_ALL_SINCE: Final = 1  # before that, no topics meant all topics
_IDS_SINCE: Final = 12  # version 10 has the field, and no use for it yet


def handle(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse | None:
    """Answer from the present state, or start a task if that would take too long.

    If too many tasks run, answer at once; clients retry for topics that might be created.
    """
    if _wants_all(call, request):
        _tell_all(context, call, request)
        return None
    wanted = request.topics or []
    if call.version < _IDS_SINCE and any(
        topic.name is None or topic.topic_id != ZERO_UUID for topic in wanted
    ):
        return _refuse_ids(wanted)
    missing = [name for asked in wanted[:TOPICS_AT_ONCE] if (name := _to_create(context, asked))]
    creates = bool(missing) and _may_create(context, request)
    is_long = creates or len(wanted) > TOPICS_AT_ONCE or _is_cold(context, call, request)
    if is_long and context.long_work.has_room:
        context.long_work.start(call, partial(_tell_later, context, call, request))
        return None
    # Missing topics are created when the client retries.
    errors = dict.fromkeys(missing if creates else (), ErrorCode.LEADER_NOT_AVAILABLE)
    image = context.image
    _answer(context, call, request, image, list(_topics(context, call, request, image, errors)))
    return None


def _wants_all(call: Call, request: MetadataRequest) -> bool:
    return request.topics is None or (not request.topics and call.version < _NULL_IS_ALL_SINCE)


def _tell_all(context: Context, call: Call, request: MetadataRequest) -> None:
    image = context.image
    at_most = PARTITIONS_AT_ONCE if context.long_work.has_room else _ANY_NUMBER
    topics = context.metadata_cache.all_topics(
        image, call.version, operations=_operations(request), at_most=at_most
    )
    if topics is None:
        context.long_work.start(call, partial(_tell_later, context, call, request))
    else:
        _answer(context, call, request, image, topics)


def _is_cold(context: Context, call: Call, request: MetadataRequest) -> bool:
    """Tell whether too many partitions have to be encoded first for one turn."""
    image = context.image
    asked_for = (_find(image, asked) for asked in request.topics or ())
    cold = context.metadata_cache.missing(
        image,
        (topic for topic in asked_for if topic is not None),
        call.version,
        operations=_operations(request),
    )
    return sum(len(topic.partitions) for topic in cold) > PARTITIONS_AT_ONCE


async def _tell_later(context: Context, call: Call, request: MetadataRequest) -> None:
    """Answer once topics are created, or refused, and encoded a little at a time."""
    slices = Slices(context.clock)
    errors: dict[str, ErrorCode] = {}
    if _may_create(context, request) and not _wants_all(call, request):
        errors = await _create(context, call, request, slices)
    image = context.image
    topics: list[bytes] = []
    for topic in _topics(context, call, request, image, errors):
        topics.append(topic)
        await slices.breathe()
    _answer(context, call, request, image, topics)


# -- responses -----------------------------------------------------------------------------------


def _topics(
    context: Context,
    call: Call,
    request: MetadataRequest,
    image: ClusterImage,
    errors: Mapping[str, ErrorCode],
) -> Iterator[bytes]:
    """Yield every requested topic, once and encoded; `errors` explains the missing ones."""
    cache, version, operations = context.metadata_cache, call.version, _operations(request)
    if _wants_all(call, request):
        for topic in image.topics.values():
            yield cache.topic(image, topic, version, operations=operations)
        return
    seen: set[str | bytes | None] = set()
    for asked in request.topics or ():
        found = _find(image, asked)
        by_name = asked.topic_id == ZERO_UUID
        key = found.name if found is not None else asked.name if by_name else asked.topic_id
        if key in seen:
            continue
        seen.add(key)
        if found is not None and not (by_name and errors.get(found.name) is _CREATED):
            yield cache.topic(image, found, version, operations=operations)
        else:
            missing = _missing(context, asked, errors)
            missing.topic_authorized_operations = operations
            yield encode_topic(missing, version)


def _find(image: ClusterImage, asked: MetadataRequestTopic) -> Topic | None:
    if asked.topic_id != ZERO_UUID:
        return image.topic_by_id(asked.topic_id)
    return None if asked.name is None else image.topics.get(asked.name)


def _missing(
    context: Context, asked: MetadataRequestTopic, errors: Mapping[str, ErrorCode]
) -> MetadataResponseTopic:
    if asked.topic_id != ZERO_UUID or asked.name is None:
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id
        )
    name = asked.name
    error = errors.get(name) or _why_missing(context, name)
    return MetadataResponseTopic(error_code=error, name=name, is_internal=name in INTERNAL_TOPICS)


def _why_missing(context: Context, name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except KafkaError as error:
        return error.code
    # A broker that has not registered yet has no topics, which proves nothing about this one.
    return (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if context.is_serving
        else ErrorCode.LEADER_NOT_AVAILABLE
    )


def _refuse_ids(wanted: Sequence[MetadataRequestTopic]) -> MetadataResponse:
    """Refuse topics by id, or without a name, in a version whose response has no ids."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=topic.name or "",
                topic_id=topic.topic_id,
            )
            for topic in wanted
        ]
    )


# -- creation ------------------------------------------------------------------------------------


def _may_create(context: Context, request: MetadataRequest) -> bool:
    return (
        request.allow_auto_topic_creation
        and context.is_serving
        and is_enabled(context, AUTO_CREATE_TOPICS)
    )


def _to_create(context: Context, asked: MetadataRequestTopic) -> str | None:
    """Return the name of a topic to create; None if it exists, or can never be created."""
    name = asked.name
    if name is None or asked.topic_id != ZERO_UUID or name in context.image.topics:
        return None
    if name in INTERNAL_TOPICS:
        return None
    try:
        check_topic_name(name)
    except KafkaError:
        return None
    return name


async def _create(
    context: Context, call: Call, request: MetadataRequest, slices: Slices
) -> dict[str, ErrorCode]:
    """Return the error of each missing topic after its creation; _CREATED if it succeeded."""
    errors: dict[str, ErrorCode] = {}
    for asked in request.topics or ():
        name = _to_create(context, asked)
        if name is not None:
            errors[name] = ErrorCode.LEADER_NOT_AVAILABLE
        await slices.breathe()
    names = list(errors)[:MAX_CREATED]
    if names:
        partitions = default_partitions(context)
        outcomes = await context.propose(
            call,
            [CreateTopic(name=name, partitions=partitions) for name in names],
            timeout_ms=CREATION_WAIT_MS,
        )
        errors |= {name: _why_not(outcome) for name, outcome in zip(names, outcomes, strict=True)}
    return errors


# Creations without a decision; their errors mean nothing to a client that requests metadata.
_ASK_AGAIN: Final = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,  # another request was faster
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.NOT_CONTROLLER,
    }
)


def _why_not(outcome: Outcome) -> ErrorCode:
    if outcome.error is ErrorCode.NONE:
        return _CREATED
    return ErrorCode.LEADER_NOT_AVAILABLE if outcome.error in _ASK_AGAIN else outcome.error


# -- the answer ----------------------------------------------------------------------------------


def _operations(request: MetadataRequest) -> int:
    return ALL_TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED


def _answer(
    context: Context,
    call: Call,
    request: MetadataRequest,
    image: ClusterImage,
    topics: Sequence[bytes],
) -> None:
    brokers = [
        MetadataResponseBroker(
            node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack
        )
        for broker in image.brokers.values()
        if not broker.is_fenced
    ]
    if not brokers:
        # Librdkafka accepts "no controller" as a response, and retries after minutes; a
        # disconnected client retries at once.
        call.disconnect("all brokers of the cluster are fenced")
        return
    asked = request.include_cluster_authorized_operations
    frame = MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id or context.cluster_id,
        controller_id=image.controller_id,
        cluster_authorized_operations=ALL_CLUSTER_OPERATIONS if asked else NOT_ASKED,
    )
    call.answer_encoded([encode_answer(frame, call.version, topics)])
