"""Serves consumer groups: their consumers, assignments and lag."""

from collections.abc import Sequence

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.operations import Kind
from gateway.kafka.pool import Clients
from gateway.kafka.values import Group, Member, Place
from gateway.rest.codes import ApiError, Code
from gateway.rest.v3.present import LagRow, lag_rows
from gateway.rest.v3.views import V3View, number_of


class GroupView(V3View):
    """What views of one group have in common."""

    def group(self, clients: Clients, name: str) -> Group:
        [found] = clients.groups.describe([name])
        return found

    def consumer(self, name: str, consumer: str) -> Member:
        with self.clients() as clients:
            found = self.group(clients, name)
        for member in found.members:
            if member.id == consumer:
                return member
        raise ApiError(
            Code.NOT_FOUND, f"Consumer {consumer} cannot be found in consumer group {name}."
        )

    def visible_places(self, places: Sequence[Place]) -> list[Place]:
        """Return the given partitions of topics that the caller may see."""
        topics = set(self.visible(Kind.TOPIC, sorted({place.topic for place in places})))
        return [place for place in places if place.topic in topics]

    def lags(self, name: str) -> list[LagRow]:
        """Return the lag of a group in each visible partition with a committed offset."""
        with self.clients() as clients:
            group = self.group(clients, name)
            stored = clients.groups.offsets([name]).get(name, {})
            committed = {place: stored[place] for place in self.visible_places(list(stored))}
            ends = clients.admin.bounds(committed)
        return lag_rows(committed, ends, group.members)


class ConsumerGroupsView(V3View):
    def get(self, _request: Request) -> Response:
        """List the consumer groups that the caller may see, by name."""
        with self.clients() as clients:
            # A group with an empty name has no URL.
            listed = {one.name: one for one in clients.groups.summaries() if one.name}
            names = self.visible(Kind.GROUP, list(listed))
            brokers = clients.admin.cluster().brokers
            found = clients.groups.overview([listed[name] for name in names], brokers)
        items = [
            self.bodies.of_group(group, is_simple=listed[group.name].is_simple) for group in found
        ]
        return Response(self.bodies.listed("KafkaConsumerGroup", items, "consumer-groups"))


class ConsumerGroupView(GroupView):
    def get(self, _request: Request, consumer_group_id: str) -> Response:
        """Show a consumer group."""
        with self.clients() as clients:
            found = self.group(clients, consumer_group_id)
            found = clients.groups.refine(found, clients.admin.cluster().brokers)
            # Only a list tells which groups never had members.
            is_simple = not found.members and any(
                one.name == found.name and one.is_simple for one in clients.groups.summaries()
            )
        return Response(self.bodies.of_group(found, is_simple=is_simple))


class ConsumersView(GroupView):
    def get(self, _request: Request, consumer_group_id: str) -> Response:
        """List the consumers of a group."""
        with self.clients() as clients:
            found = self.group(clients, consumer_group_id)
        items = [self.bodies.of_consumer(found.name, member) for member in found.members]
        at = ("consumer-groups", consumer_group_id, "consumers")
        return Response(self.bodies.listed("KafkaConsumer", items, *at))


class ConsumerView(GroupView):
    def get(self, _request: Request, consumer_group_id: str, consumer_id: str) -> Response:
        """Show a consumer."""
        found = self.consumer(consumer_group_id, consumer_id)
        return Response(self.bodies.of_consumer(consumer_group_id, found))


class AssignmentsView(GroupView):
    def get(self, _request: Request, consumer_group_id: str, consumer_id: str) -> Response:
        """List the partitions that a consumer reads, of topics that the caller may see."""
        found = self.consumer(consumer_group_id, consumer_id)
        items = [
            self.bodies.of_assignment(consumer_group_id, found, place)
            for place in self.visible_places(found.assignment)
        ]
        at = ("consumer-groups", consumer_group_id, "consumers", consumer_id, "assignments")
        return Response(self.bodies.listed("KafkaConsumerAssignment", items, *at))


class AssignmentView(GroupView):
    def get(
        self,
        _request: Request,
        consumer_group_id: str,
        consumer_id: str,
        topic_name: str,
        partition_id: str,
    ) -> Response:
        """Show one partition that a consumer reads."""
        place = Place(topic=topic_name, partition=number_of(partition_id, "partition"))
        found = self.consumer(consumer_group_id, consumer_id)
        if place not in found.assignment:
            raise ApiError(Code.NOT_FOUND, f"consumer {consumer_id} is not assigned to {place}")
        return Response(self.bodies.of_assignment(consumer_group_id, found, place))


class LagSummaryView(GroupView):
    def get(self, _request: Request, consumer_group_id: str) -> Response:
        """Show how far a group is behind in all topics that the caller may see, and where most."""
        rows = self.lags(consumer_group_id)
        if not rows:
            raise ApiError(
                Code.NOT_FOUND,
                f"consumer group {consumer_group_id} has committed nothing yet for topics that you"
                " may view, so it has no lag there",
            )
        return Response(self.bodies.of_lag_summary(consumer_group_id, rows))


class LagsView(GroupView):
    def get(self, _request: Request, consumer_group_id: str) -> Response:
        """List how far a group is behind, for each visible partition with a committed offset."""
        rows = self.lags(consumer_group_id)
        items = [self.bodies.of_lag(consumer_group_id, row) for row in rows]
        at = ("consumer-groups", consumer_group_id, "lags")
        return Response(self.bodies.listed("KafkaConsumerLag", items, *at))


class LagView(GroupView):
    def get(
        self,
        _request: Request,
        consumer_group_id: str,
        topic_name: str,
        partition_id: str,
    ) -> Response:
        """Show how far a group is behind in one partition."""
        place = Place(topic=topic_name, partition=number_of(partition_id, "partition"))
        for row in self.lags(consumer_group_id):
            if row.place == place:
                return Response(self.bodies.of_lag(consumer_group_id, row))
        raise ApiError(
            Code.NOT_FOUND, f"consumer group {consumer_group_id} has committed nothing for {place}"
        )
