"""OffsetDelete: deletes committed offsets of partitions to which no member subscribes.

A partition without a committed offset is no error; a missing one is. If the group as a whole is
refused, the response has that code and no partitions.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups.offset_operations import delete_offsets
from brokers.coordination.groups.offsets import Place
from brokers.protocol.errors import KafkaError
from brokers.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from brokers.protocol.schema import Message
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import id_error, submitted
from brokers.server.served_api import Served

SERVED: Final = Served(key=47)


def handle(context: Context, call: Call, request: OffsetDeleteRequest) -> Message | None:
    wrong = id_error(request.group_id)
    if wrong is not None:
        return _refused(wrong)
    wanted: dict[str, list[int]] = {}
    for topic in request.topics:
        indexes = (part.partition_index for part in topic.partitions)
        wanted.setdefault(topic.name, []).extend(indexes)
    unknown = frozenset(_unknown(context.image, wanted))
    operation = delete_offsets(request.group_id, wanted, unknown)
    return submitted(context, call, request.group_id, operation, _refused)


def _unknown(image: ClusterImage, wanted: Mapping[str, Sequence[int]]) -> Iterator[Place]:
    """Yield the partitions that the cluster does not have."""
    for name, indexes in wanted.items():
        topic = image.topics.get(name)
        count = 0 if topic is None else len(topic.partitions)
        yield from ((name, index) for index in indexes if not 0 <= index < count)


def _refused(error: KafkaError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)
