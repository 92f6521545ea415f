"""REST version 2: views of topics, partitions and brokers.

Produce and consumer calls of version 2 are bare and are not here.
"""

from typing import Any, Final

from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.operations import Kind
from gateway.kafka.pool import Clients
from gateway.kafka.values import Partition, Place, ResourceKind, Topic
from gateway.rest.codes import ApiError, Code
from gateway.rest.v3.views import number_of
from gateway.rest.views import ApiView

# Stands for the leader of a partition without one.
NO_LEADER: Final = -1


class V2Renderer(JSONRenderer):
    media_type = "application/vnd.kafka.v2+json"


class KafkaRenderer(JSONRenderer):
    media_type = "application/vnd.kafka+json"


class V2View(ApiView):
    renderer_classes = (V2Renderer, KafkaRenderer, JSONRenderer)

    def topic(self, clients: Clients, name: str) -> Topic:
        [found] = clients.admin.describe([name])
        return found

    def partition(self, clients: Clients, topic: str, number: str) -> Partition:
        wanted = number_of(number, "partition")
        for partition in self.topic(clients, topic).partitions:
            if partition.index == wanted:
                return partition
        raise ApiError(Code.NO_PARTITION, f"topic {topic} has no partition {wanted}")


class TopicsView(V2View):
    def get(self, _request: Request) -> Response:
        """List the names of the topics that the caller may see."""
        with self.clients() as clients:
            names = [topic.name for topic in clients.admin.topics()]
        return Response(self.visible(Kind.TOPIC, names))


class TopicView(V2View):
    def get(self, _request: Request, topic: str) -> Response:
        """Show a topic with its configs and partitions."""
        with self.clients() as clients:
            found = self.topic(clients, topic)
            configs = clients.admin.configs(ResourceKind.TOPIC, topic)
        return Response(
            {
                "name": found.name,
                "configs": {config.key: config.value for config in configs},
                "partitions": [partition_body(one) for one in found.partitions],
            }
        )


class PartitionsView(V2View):
    def get(self, _request: Request, topic: str) -> Response:
        """List the partitions of a topic."""
        with self.clients() as clients:
            found = self.topic(clients, topic)
        return Response([partition_body(one) for one in found.partitions])


class PartitionView(V2View):
    def get(self, _request: Request, topic: str, partition_id: str) -> Response:
        """Show a partition."""
        with self.clients() as clients:
            return Response(partition_body(self.partition(clients, topic, partition_id)))


class OffsetsView(V2View):
    def get(self, _request: Request, topic: str, partition_id: str) -> Response:
        """Show the first offset of a partition, and its end."""
        with self.clients() as clients:
            found = self.partition(clients, topic, partition_id)
            place = Place(topic=topic, partition=found.index)
            bounds = clients.admin.bounds([place])
        if place not in bounds:
            raise ApiError(Code.NO_LEADER, f"{place} has no leader at the moment: try again")
        first, end = bounds[place]
        return Response({"beginning_offset": first, "end_offset": end})


class BrokersView(V2View):
    def get(self, _request: Request) -> Response:
        """List the ids of the brokers."""
        with self.clients() as clients:
            return Response({"brokers": clients.admin.brokers()})


def partition_body(found: Partition) -> dict[str, Any]:
    return {
        "partition": found.index,
        "leader": NO_LEADER if found.leader is None else found.leader,
        "replicas": [
            {
                "broker": broker,
                "leader": broker == found.leader,
                "in_sync": broker in found.isr,
            }
            for broker in found.replicas
        ],
    }
