"""Serves clusters and their brokers."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.operations import Kind, Operation
from gateway.kafka.pool import Clients
from gateway.kafka.values import Broker
from gateway.rest.codes import ApiError, Code
from gateway.rest.v3.views import V3View, number_of


class ClustersView(V3View):
    def get(self, _request: Request) -> Response:
        """List the one cluster that this gateway serves, if the caller may see any part of it."""
        if not self.caller.rights.allows_somewhere(Operation.VIEW, cluster=self.cluster_id):
            return Response(self.bodies.clusters([]))
        with self.clients() as clients:
            return Response(self.bodies.clusters([clients.admin.cluster()]))


class ClusterView(V3View):
    def get(self, _request: Request) -> Response:
        """Show the cluster."""
        if not self.caller.rights.allows_somewhere(Operation.VIEW, cluster=self.cluster_id):
            self.require(Operation.VIEW, Kind.CLUSTER)
        with self.clients() as clients:
            return Response(self.bodies.of_cluster(clients.admin.cluster()))


class BrokersView(V3View):
    def get(self, _request: Request) -> Response:
        """List the brokers."""
        with self.clients() as clients:
            found = clients.admin.cluster().brokers
        items = [self.bodies.of_broker(one) for one in found]
        return Response(self.bodies.listed("KafkaBroker", items, "brokers"))


class BrokerView(V3View):
    def get(self, _request: Request, broker_id: str) -> Response:
        """Show a broker."""
        with self.clients() as clients:
            return Response(self.bodies.of_broker(broker_of(clients, broker_id)))


class BrokerReplicasView(V3View):
    def get(self, _request: Request, broker_id: str) -> Response:
        """List the replicas that a broker has, of topics that the caller may see."""
        with self.clients() as clients:
            broker = broker_of(clients, broker_id).id
            names = [topic.name for topic in clients.admin.topics()]
            topics = clients.admin.find(self.visible(Kind.TOPIC, names))
        items: list[dict[str, Any]] = [
            self.bodies.of_replica(name, partition, broker)
            for name, topic in topics.items()
            for partition in topic.partitions
            if broker in partition.replicas
        ]
        at = ("brokers", broker, "partition-replicas")
        return Response(self.bodies.listed("KafkaReplica", items, *at))


def broker_of(clients: Clients, number: str) -> Broker:
    """Return a broker of the cluster's metadata."""
    wanted = number_of(number, "broker")
    known = clients.admin.cluster().brokers
    for broker in known:
        if broker.id == wanted:
            return broker
    listed = ", ".join(str(broker.id) for broker in known)
    raise ApiError(Code.NOT_FOUND, f"Broker {wanted} cannot be found; there are {listed}.")
