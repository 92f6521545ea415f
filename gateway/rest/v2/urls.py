"""Lists the URLs of version 2 views, below its prefix."""

from typing import Final

from django.urls import URLPattern

from gateway.rest.v2 import metadata
from gateway.rest.views import at

TOPIC: Final = "topics/{topic}"
PARTITION: Final = f"{TOPIC}/partitions/{{partition_id}}"

urlpatterns: list[URLPattern] = [
    at("topics", metadata.TopicsView),
    at(TOPIC, metadata.TopicView),
    at(f"{TOPIC}/partitions", metadata.PartitionsView),
    at(PARTITION, metadata.PartitionView),
    at(f"{PARTITION}/offsets", metadata.OffsetsView),
    at("brokers", metadata.BrokersView),
]
