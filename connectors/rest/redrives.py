"""Dead letters over REST, an extension of Kafka Connect's API: list, plan, start, stop, resume.

Its paths are below `samsa/`, to stay clear of paths in later releases of Kafka Connect.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from rest_framework.request import Request
from rest_framework.response import Response

from connectors import dead_letters, redrives, selectors
from connectors.dead_letters import Cluster
from connectors.redrive_plans import RedrivePlan
from connectors.refusals import Unfit
from connectors.rest import redrive_shapes as shapes
from connectors.rest.connectors import number_of
from connectors.rest.views import ConnectView
from gateway.access import seals
from gateway.kafka.connection import Deadline

# The time limit of a call, for all requests to brokers together.
ASK_S: Final = 10.0
# The kind of plan that a seal names.
KIND: Final = "redrive"


class RedriveView(ConnectView):
    """Requires the right to see the connector; the doors check the other rights."""

    @contextmanager
    def wire(self) -> Iterator[Cluster]:
        # There are few clients, so few concurrent calls may read letters.
        with self.clients():
            shared = self.worker.connection
            # Brokers note for whom a topic is created.
            client_id = f"{shared.client_id} for {self.caller.name}"
            timed = replace(shared, until=Deadline(ASK_S), client_id=client_id)
            yield dead_letters.cluster_at(timed)


class DeadLettersView(RedriveView):
    def get(self, request: Request, name: str) -> Response:
        """Return the newest letters of a connector, with cause and content."""
        query = request.query_params
        with self.wire() as wire:
            found = dead_letters.look(
                self.by,
                self.cluster_id,
                name,
                wire=wire,
                before=shapes.before_of(query),
                **shapes.filter_of(query),
            )
        return Response(shapes.look(found))


class CausesView(RedriveView):
    def get(self, _request: Request, name: str) -> Response:
        """Count the dead letters of a connector by cause."""
        with self.wire() as wire:
            found = dead_letters.causes(self.by, self.cluster_id, name, wire=wire)
        return Response(shapes.causes(found))


class PlanView(RedriveView):
    def post(self, _request: Request, name: str) -> Response:
        """Return a sealed plan, without changes."""
        asked = shapes.asked_of(self.sent())
        with self.wire() as wire:
            plan = redrives.plan(self.by, self.cluster_id, name, asked, wire=wire)
        try:
            sealed = seals.seal(KIND, plan, holder=self.caller.key)
        except seals.BadSeal as error:
            raise Unfit(str(error)) from error
        denied = redrives.missing_right(self.by, plan)
        return Response({**shapes.plan(plan), "denied": denied, "seal": sealed})


class RunsView(RedriveView):
    def get(self, _request: Request, name: str) -> Response:
        """Return the newest runs of a connector."""
        return Response([shapes.run(one) for one in redrives.runs(self.cluster_id, name)])

    def post(self, _request: Request, name: str) -> Response:
        """Start a planned run."""
        sealed = shapes.seal_of(self.sent())
        try:
            _, plan = seals.open_seal(sealed, holder=self.caller.key, types={KIND: RedrivePlan})
        except seals.BadSeal as error:
            raise Unfit(str(error)) from error
        shapes.require_same(plan, self.cluster_id, name)
        with self.wire() as wire:
            started = redrives.start(self.by, plan, wire=wire)
        return Response(shapes.run(started), status=202)


class RunView(RedriveView):
    def get(self, _request: Request, name: str, run: str) -> Response:
        selectors.connector(self.cluster_id, name)
        return Response(shapes.run(redrives.run(self.cluster_id, name, number_of(run))))


class StopRunView(RedriveView):
    def put(self, _request: Request, name: str, run: str) -> Response:
        """Stop a run; the batch in flight still arrives."""
        stopped = redrives.stop(self.by, self.cluster_id, name, number_of(run))
        return Response(shapes.run(stopped))


class ResumeRunView(RedriveView):
    def put(self, _request: Request, name: str, run: str) -> Response:
        """Resume a run that was stopped or has failed."""
        resumed = redrives.resume(self.by, self.cluster_id, name, number_of(run))
        return Response(shapes.run(resumed), status=202)
