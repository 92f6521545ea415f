"""ListConfigResources: lists the resources that have configurations of their own.

Topics and brokers come from the image. Client metrics subscriptions and groups are not served yet,
so there are none to list; the loggers of a broker are listed under its id, as in Kafka, though this
broker has none that can be set.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from brokers.cluster.image import ClusterImage
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from brokers.server.call import Call
from brokers.server.config_resources import Kind
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=74)

_TYPES_SINCE: Final = 1  # below it the request is for client metrics alone


def _topics(image: ClusterImage) -> Iterable[str]:
    return image.topics


def _brokers(image: ClusterImage) -> Iterable[str]:
    return map(str, image.brokers)


def _none(_image: ClusterImage) -> Iterable[str]:
    return ()


# In the order in which Kafka lists them.
_NAMES: Final[Mapping[int, Callable[[ClusterImage], Iterable[str]]]] = {
    Kind.GROUP: _none,
    Kind.CLIENT_METRICS: _none,
    Kind.BROKER_LOGGER: _brokers,
    Kind.BROKER: _brokers,
    Kind.TOPIC: _topics,
}


def handle(
    context: Context, call: Call, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    wanted = request.resource_types or list(_NAMES)
    if call.version < _TYPES_SINCE:
        wanted = [Kind.CLIENT_METRICS]
    if not _NAMES.keys() >= set(wanted):
        # Kafka's response to a type that only a later release may know.
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = context.image
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, names in _NAMES.items()
            if kind in wanted
            for name in names(image)
        ]
    )
