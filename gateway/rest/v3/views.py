"""What all views of version 3 have in common."""

from typing import ClassVar

from rest_framework import status
from rest_framework.response import Response

from gateway.access.operations import Kind, Operation
from gateway.kafka.pool import Clients
from gateway.kafka.values import Partition, Topic
from gateway.rest.codes import ApiError, Code
from gateway.rest.v3.present import Bodies
from gateway.rest.views import ApiView

# The longest number of a partition or a broker.
MAX_DIGITS = 10


class V3View(ApiView):
    # A topic that is not there is "this server does not host this topic-partition".
    no_topic: ClassVar[Code] = Code.NOT_THERE

    @property
    def bodies(self) -> Bodies:
        """Return what makes bodies; links have the prefix by which the caller came."""
        prefix = self.request.path.partition("/clusters")[0]
        return Bodies(base=self.request.build_absolute_uri(prefix), cluster=self.cluster_id)

    def topic(self, clients: Clients, name: str, *, has_operations: bool = False) -> Topic:
        """Return a topic that the caller may see."""
        self.require(Operation.VIEW, Kind.TOPIC, name)
        [found] = clients.admin.describe([name], has_operations=has_operations)
        return found

    def partition(self, clients: Clients, topic: str, number: str) -> Partition:
        wanted = number_of(number, "partition")
        for partition in self.topic(clients, topic).partitions:
            if partition.index == wanted:
                return partition
        raise ApiError(Code.NO_PARTITION, f"topic {topic} has no partition {wanted}")


def number_of(text: str, what: str) -> int:
    """Return a number that is part of an address."""
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        raise ApiError(Code.BAD_REQUEST, f"{text[:40]!r} is no number of a {what}")
    return int(text)


def nothing() -> Response:
    return Response(status=status.HTTP_204_NO_CONTENT)


def flag(text: str | None) -> bool:
    return (text or "").lower() == "true"
