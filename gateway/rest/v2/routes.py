"""The rows of version 2 that views serve: lookups."""

from functools import partial
from typing import Final

from gateway.access.operations import Kind, Operation
from gateway.rest.gate import Right
from gateway.rest.route import Route
from gateway.rest.v2 import metadata, schemas

TOPIC: Final = "/topics/{topic}"
PARTITION: Final = f"{TOPIC}/partitions/{{partition_id}}"
# A list of strings has no fields, so no serializer describes it.
NAMES: Final = {"type": "array", "items": {"type": "string"}}
SEE_CLUSTER: Final = (Right(operation=Operation.VIEW, kind=Kind.CLUSTER),)
SEE_TOPIC: Final = (Right(operation=Operation.VIEW, kind=Kind.TOPIC, name="topic"),)

GET: Final = partial(Route, method="GET", tag="Version 2")
ROUTES: Final = (
    GET(path="/topics", view=metadata.TopicsView, answer=NAMES),
    GET(path=TOPIC, view=metadata.TopicView, rights=SEE_TOPIC, answer=schemas.TopicV2),
    GET(
        path=f"{TOPIC}/partitions",
        view=metadata.PartitionsView,
        rights=SEE_TOPIC,
        answer=schemas.PartitionV2(many=True),
    ),
    GET(
        path=PARTITION,
        view=metadata.PartitionView,
        rights=SEE_TOPIC,
        answer=schemas.PartitionV2,
    ),
    GET(
        path=f"{PARTITION}/offsets",
        view=metadata.OffsetsView,
        rights=SEE_TOPIC,
        answer=schemas.Offsets,
    ),
    GET(path="/brokers", view=metadata.BrokersView, rights=SEE_CLUSTER, answer=schemas.Brokers),
)
