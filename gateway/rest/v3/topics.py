"""Serves topics, their partitions, offsets, replicas and reassignments."""

from collections.abc import Mapping
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.operations import Kind, Operation
from gateway.kafka.kept_topics import loss_of, metrics_topic_of
from gateway.kafka.pool import Clients
from gateway.kafka.values import (
    CLUSTER_DEFAULT,
    NewTopic,
    Place,
    Position,
    PositionKind,
    ResourceKind,
    Topic,
)
from gateway.rest.codes import ApiError, Code
from gateway.rest.v3.views import V3View, flag, nothing, number_of

# Broker configs with the defaults of new topics.
PARTITIONS: Final = "num.partitions"
REPLICAS: Final = "default.replication.factor"
# Values of the query parameter `offset_type`.
OFFSET_TYPES: Final = {"EARLIEST": PositionKind.BEGINNING, "LATEST": PositionKind.END}


class TopicsView(V3View):
    def get(self, _request: Request) -> Response:
        """List the topics that the caller may see, by name."""
        is_with_operations = flag(self.request.query_params.get("includeAuthorizedOperations"))
        with self.clients() as clients:
            found = {topic.name: topic for topic in clients.admin.topics()}
            names = self.visible(Kind.TOPIC, list(found))
            if is_with_operations and names:
                described = clients.admin.describe(names, has_operations=True)
                items = [self.bodies.of_topic(topic) for topic in described]
            else:
                items = [
                    self.bodies.topic(
                        name,
                        is_internal=found[name].is_internal,
                        partitions=found[name].partitions,
                        replication_factor=found[name].replication_factor,
                    )
                    for name in names
                ]
        return Response(self.bodies.listed("KafkaTopic", items, "topics"))

    def post(self, _request: Request) -> Response:
        """Create a topic, or only see whether it could be (`validate_only`)."""
        asked = self.asked
        topic, is_dry_run = new_topic(asked), asked["validate_only"]
        self.require(Operation.CREATE_TOPICS, Kind.TOPIC, topic.name)
        with self.clients() as clients:
            clients.admin.create([topic], is_dry_run=is_dry_run)
            if is_dry_run:
                return Response(self._expected(topic, defaults(clients)))
            self.note("topic_created", topic.name)
            found = clients.admin.find([topic.name]).get(topic.name)
            known = found or Topic(name=topic.name, id="", is_internal=False, partitions=())
        body = self.bodies.of_topic(known)
        headers = {"Location": body["metadata"]["self"]}
        return Response(body, status=201, headers=headers)

    def _expected(self, topic: NewTopic, defaults: Mapping[str, int]) -> dict[str, Any]:
        """Return a topic as it would be created."""
        partitions, replicas = topic.partitions, topic.replication_factor
        if topic.assignments:
            partitions, replicas = len(topic.assignments), len(topic.assignments[0])
        return self.bodies.topic(
            topic.name,
            is_internal=False,
            partitions=defaults[PARTITIONS] if partitions == CLUSTER_DEFAULT else partitions,
            replication_factor=defaults[REPLICAS] if replicas == CLUSTER_DEFAULT else replicas,
        )


class TopicView(V3View):
    def get(self, _request: Request, topic_name: str) -> Response:
        """Show a topic."""
        has_operations = flag(self.request.query_params.get("include_authorized_operations"))
        with self.clients() as clients:
            found = self.topic(clients, topic_name, has_operations=has_operations)
        return Response(self.bodies.of_topic(found))

    def patch(self, _request: Request, topic_name: str) -> Response:
        """Let a topic have so many partitions in all."""
        count = self.asked["partitions_count"]
        with self.clients() as clients:
            clients.admin.add_partitions(topic_name, count)
            self.note("partitions_added", topic_name, total=str(count))
            [found] = clients.admin.describe([topic_name])
        return Response(self.bodies.of_topic(found))

    def delete(self, _request: Request, topic_name: str) -> Response:
        """Delete a topic with all of its records."""
        is_forced = flag(self.request.query_params.get("force"))
        loss = loss_of(topic_name, metrics_topic=metrics_topic_of(self.worker.place.settings_file))
        with self.clients() as clients:
            if loss and not is_forced:
                # A topic that does not exist is reported as such.
                clients.admin.describe([topic_name])
                raise ApiError(
                    Code.NEEDS_FORCE,
                    f"topic {topic_name} is not deleted: deleting it loses {loss}. To delete it"
                    " nevertheless, add ?force=true",
                )
            clients.admin.delete([topic_name])
        self.note("topic_deleted", topic_name)
        return nothing()


class PartitionsView(V3View):
    def get(self, _request: Request, topic_name: str) -> Response:
        """List the partitions of a topic."""
        with self.clients() as clients:
            found = self.topic(clients, topic_name)
        items = [self.bodies.of_partition(topic_name, one) for one in found.partitions]
        at = ("topics", topic_name, "partitions")
        return Response(self.bodies.listed("KafkaPartition", items, *at))


class PartitionView(V3View):
    def get(self, _request: Request, topic_name: str, partition_id: str) -> Response:
        """Show a partition."""
        with self.clients() as clients:
            found = self.partition(clients, topic_name, partition_id)
        return Response(self.bodies.of_partition(topic_name, found))


class OffsetsView(V3View):
    def get(self, _request: Request, topic_name: str, partition_id: str) -> Response:
        """Show the first offset of a partition and its end; of one type, the other is -1."""
        wanted = self.request.query_params.get("offset_type", "").upper()
        if wanted and wanted not in OFFSET_TYPES:
            raise ApiError(
                Code.BAD_REQUEST,
                f"offset_type is {wanted[:40]!r}: give {' or '.join(OFFSET_TYPES)}, or none",
            )
        with self.clients() as clients:
            found = self.partition(clients, topic_name, partition_id)
            if found.leader is None:
                raise ApiError(
                    Code.NO_LEADER,
                    f"topic {topic_name}, partition {found.index} has no leader at the moment: try"
                    " again",
                )
            told = {
                name: clients.admin.offsets(topic_name, [found.index], Position(kind=kind))[
                    found.index
                ]
                for name, kind in OFFSET_TYPES.items()
                if wanted in {"", name}
            }
        place = Place(topic=topic_name, partition=found.index)
        return Response(
            self.bodies.of_offsets(place, told.get("EARLIEST", -1), told.get("LATEST", -1))
        )


class ReplicasView(V3View):
    def get(self, _request: Request, topic_name: str, partition_id: str) -> Response:
        """List the replicas of a partition."""
        with self.clients() as clients:
            found = self.partition(clients, topic_name, partition_id)
        items = [self.bodies.of_replica(topic_name, found, broker) for broker in found.replicas]
        at = ("topics", topic_name, "partitions", found.index, "replicas")
        return Response(self.bodies.listed("KafkaReplica", items, *at))


class ReplicaView(V3View):
    def get(
        self,
        _request: Request,
        topic_name: str,
        partition_id: str,
        broker_id: str,
    ) -> Response:
        """Show the replica of a partition on a broker."""
        with self.clients() as clients:
            found = self.partition(clients, topic_name, partition_id)
        broker = number_of(broker_id, "broker")
        if broker not in found.replicas:
            raise ApiError(
                Code.NOT_FOUND,
                f"broker {broker} has no replica of topic {topic_name}, partition {found.index}",
            )
        return Response(self.bodies.of_replica(topic_name, found, broker))


class AllReassignmentsView(V3View):
    def get(self, _request: Request) -> Response:
        """List the reassignments under way; brokers move no replicas yet, so there is none."""
        at = ("topics", "-", "partitions", "-", "reassignment")
        return Response(self.bodies.listed("KafkaReassignment", [], *at))


class TopicReassignmentsView(V3View):
    def get(self, _request: Request, topic_name: str) -> Response:
        """List the reassignments of a topic that are under way."""
        with self.clients() as clients:
            self.topic(clients, topic_name)
        at = ("topics", topic_name, "partitions", "-", "reassignment")
        return Response(self.bodies.listed("KafkaReassignment", [], *at))


class ReassignmentView(V3View):
    def get(self, _request: Request, topic_name: str, partition_id: str) -> Response:
        """Show the reassignment of a partition; 404 where none is under way."""
        with self.clients() as clients:
            found = self.partition(clients, topic_name, partition_id)
        raise ApiError(
            Code.NOT_FOUND,
            f"no reassignment of topic {topic_name}, partition {found.index} is under way",
        )


def defaults(clients: Clients) -> dict[str, int]:
    """Return the cluster's defaults for new topics."""
    [broker, *_] = clients.admin.brokers()
    found = {
        config.key: config.value
        for config in clients.admin.configs(ResourceKind.BROKER, str(broker))
    }
    return {key: int(found.get(key) or 1) for key in (PARTITIONS, REPLICAS)}


def new_topic(asked: Mapping[str, Any]) -> NewTopic:
    """Return the topic that a body describes, with the cluster's defaults for missing fields."""
    assignments = _assignments(asked.get("replicas_assignments") or {})
    if assignments and ("partitions_count" in asked or "replication_factor" in asked):
        raise ApiError(
            Code.BAD_REQUEST,
            "replicas_assignments says how many partitions and replicas there are: leave out"
            " partitions_count and replication_factor",
        )
    return NewTopic(
        name=asked["topic_name"],
        partitions=asked.get("partitions_count", CLUSTER_DEFAULT),
        replication_factor=asked.get("replication_factor", CLUSTER_DEFAULT),
        configs={
            one["name"]: one["value"]
            for one in asked.get("configs", [])
            if one.get("value") is not None
        },
        assignments=assignments,
    )


def _assignments(given: Mapping[str, list[int]]) -> tuple[tuple[int, ...], ...]:
    found = {
        number_of(partition, "partition", code=Code.BAD_REQUEST): tuple(on)
        for partition, on in given.items()
    }
    if sorted(found) != list(range(len(found))) or len(found) != len(given):
        raise ApiError(
            Code.BAD_REQUEST,
            f"replicas_assignments names partitions {', '.join(list(given)[:20])}: name all from 0,"
            " without a gap",
        )
    return tuple(found[partition] for partition in sorted(found))
