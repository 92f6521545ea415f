"""DescribeConfigs: returns the configuration of topics and brokers.

Each resource succeeds or fails alone. Loggers, client metrics and groups have no keys in this
release, so theirs are empty; which resources a request may name, and which only the broker itself
can describe, is as in Kafka.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from brokers.cluster.image import ResourceType
from brokers.cluster.topic_names import check_topic_name
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from brokers.server.admin_outcomes import shown
from brokers.server.call import Call
from brokers.server.config_entries import Entry, broker_entries, cluster_entries, topic_entries
from brokers.server.config_resources import Kind, check_is_here
from brokers.server.context import Context
from brokers.server.encoded_arrays import EncodedArray
from brokers.server.served_api import Served
from brokers.slices import Slices

SERVED: Final = Served(key=32)

# Consoles request all topics at once. The response has about 2 KB for each of them.
MAX_RESOURCES: Final = 10_000
_RESULTS: Final = EncodedArray(DescribeConfigsResponse, "results")
_KINDS: Final = frozenset(Kind)
_UNKNOWN_TYPE: Final = 0


async def handle(context: Context, call: Call, request: DescribeConfigsRequest) -> None:
    refused = _refused(request)
    slices = Slices(context.clock)
    alike = _Alike(context, request)
    results: list[bytes] = []
    for resource in request.resources:
        try:
            if refused is not None:
                raise refused
            result = _result(resource, configs=alike.configs_of(resource))
        except KafkaError as error:
            result = _result(resource, error=error)
        results.append(_RESULTS.element(result, call.version))
        await slices.breathe()
    call.answer_encoded([_RESULTS.whole(DescribeConfigsResponse(), call.version, results)])


def _refused(request: DescribeConfigsRequest) -> KafkaError | None:
    """Return the error of the request as a whole, by Kafka's rules."""
    if len(request.resources) > MAX_RESOURCES:
        return KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{len(request.resources)} resources in one request, {MAX_RESOURCES} are allowed: "
            "send several requests",
        )
    for resource in request.resources:
        if resource.resource_type not in _KINDS:
            return KafkaError(
                ErrorCode.INVALID_REQUEST, f"there is no resource type {resource.resource_type}"
            )
    return None


class _Alike:
    """The results of one request. Topics with equal configs share theirs: most set nothing."""

    __slots__ = ("_context", "_request", "_topics")

    def __init__(self, context: Context, request: DescribeConfigsRequest) -> None:
        self._context = context
        self._request = request
        self._topics: dict[object, list[DescribeConfigsResourceResult]] = {}

    def configs_of(self, resource: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
        """Return all requested keys of a resource; KafkaError if it cannot be described here."""
        name, keys = resource.resource_name, resource.configuration_keys or None
        if resource.resource_type != Kind.TOPIC:
            return list(_configs(self._request, _entries(self._context, resource)))
        check_topic_name(name)
        image = self._context.image
        if name not in image.topics:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {shown(name)}"
            )
        configs = image.configs_of(ResourceType.TOPIC, name)
        key = (frozenset(configs.items()), None if keys is None else frozenset(keys))
        found = self._topics.get(key)
        if found is None:
            entries = topic_entries(self._context, configs, keys)
            found = self._topics[key] = list(_configs(self._request, entries))
        return found


def _entries(context: Context, resource: DescribeConfigsResource) -> Iterable[Entry]:
    """Return all keys of a resource other than a topic."""
    name, keys = resource.resource_name, resource.configuration_keys or None
    kind = resource.resource_type
    if kind == Kind.BROKER and not name:
        return cluster_entries(context, keys)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a resource of type {kind} needs a name")
    if kind in {Kind.BROKER, Kind.BROKER_LOGGER}:
        check_is_here(context, name)
    return broker_entries(context, keys) if kind == Kind.BROKER else ()


def _configs(
    request: DescribeConfigsRequest, entries: Iterable[Entry]
) -> Iterator[DescribeConfigsResourceResult]:
    for entry in entries:
        yield DescribeConfigsResourceResult(
            name=entry.key,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
            synonyms=[
                DescribeConfigsSynonym(name=told.key, value=told.value, source=told.source)
                for told in (entry.told if request.include_synonyms else ())
            ],
            config_type=_UNKNOWN_TYPE if entry.type is None else entry.type,
            documentation=entry.sentence if request.include_documentation else None,
        )


def _result(
    resource: DescribeConfigsResource,
    *,
    configs: list[DescribeConfigsResourceResult] | None = None,
    error: KafkaError | None = None,
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message="" if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs or [],
    )
