"""The base of all views of Kafka Connect's REST."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.request import Request

from connectors import selectors
from connectors.changes import By
from connectors.rest.errors import OF_ADDRESS, body, handler
from connectors.sdk.records import TopicPartition
from gateway.access.requirements import public
from gateway.kafka.pool import Clients
from gateway.kafka.values import Place
from gateway.rest.bodies import json_of
from gateway.rest.calls import JSON
from gateway.rest.views import ApiView

# `gateway.connect_port` sets it for calls through the port of Kafka Connect's REST.
AT_ROOT: Final = "samsa.connect"


class ConnectView(ApiView):
    """A view. Its row requires the right to see a connector; services check the other rights."""

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Any]:
        return handler

    @property
    def by(self) -> By:
        return By(caller=self.caller, address=self.request.META.get("REMOTE_ADDR") or "")

    def status_of(self, name: str) -> selectors.Status:
        """Return the status of a connector, with what the caller may see of records."""
        return selectors.status(self.cluster_id, name, reader=self.caller.rights)

    def sent(self) -> Mapping[str, Any]:
        """Return the JSON object in the body of the call."""
        return json_of(self.request._request, media_types=(JSON,))  # noqa: SLF001 - documented

    def flag(self, name: str) -> bool:
        return self.request.query_params.get(name, "").lower() == "true"

    @contextmanager
    def groups(self) -> Iterator["Groups"]:
        with self.clients() as clients:
            yield Groups(clients)


class Groups:
    """Offsets of consumer groups in the cluster."""

    def __init__(self, clients: Clients) -> None:
        self._groups = clients.groups

    def committed(self, group: str) -> Mapping[TopicPartition, int]:
        found = self._groups.offsets([group]).get(group, {})
        return {
            TopicPartition(topic=place.topic, partition=place.partition): offset
            for place, offset in found.items()
        }

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self._groups.commit(group, {_place(where): offset for where, offset in offsets.items()})

    def delete(self, group: str, places: Sequence[TopicPartition]) -> None:
        self._groups.delete_offsets(group, [_place(where) for where in places])


def prefix_of(request: Request) -> str:
    """Return the prefix of addresses, which depends on the port of the call."""
    scope: Mapping[str, Any] = getattr(request._request, "scope", {})  # noqa: SLF001 - documented
    return "" if scope.get(AT_ROOT) else "/connect"


@csrf_exempt
@public
def unknown(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - given by Django
    return JsonResponse(body(404, OF_ADDRESS[404]), status=404)


def _place(where: TopicPartition) -> Place:
    return Place(topic=where.topic, partition=where.partition)
