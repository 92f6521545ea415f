"""Makes plans, which preview changes, and applies exactly what a plan showed.

A preview reads a snapshot and waits for no writer. Between it and `apply_plan` the user's browser
keeps the plan, sealed for that user, so that its calls cannot be replaced.
"""

import uuid
from collections.abc import Sequence

from brokers.cluster import link
from brokers.cluster.levels import LevelTooLow
from brokers.cluster.origins import Origin, from_origin
from brokers.cluster.plans import Plan, make_plan
from brokers.cluster.proposals import Action, Outcome, Proposal
from brokers.controlplane import models
from brokers.controlplane.database import one_moment
from brokers.controlplane.services import expectations
from brokers.controlplane.services.levels import named
from brokers.controlplane.services.proposals import propose
from brokers.controlplane.services.view import RowsView
from brokers.protocol.errors import ErrorCode, KafkaError


def preview(*, cluster_id: str, actions: Sequence[Action], now_ms: int) -> Plan:
    """Return what the actions would do now, each after those before it.

    The plan shows steps that would be refused. KafkaError if there can be no plan at all, as
    below the metadata level from which versions are kept.
    """
    with one_moment():
        cluster = models.Cluster.objects.get(cluster_id=cluster_id)
        try:
            return make_plan(
                RowsView(cluster, actions, is_locking=False),
                actions,
                versions=lambda subjects: expectations.versions_of(cluster, subjects),
                level=cluster.metadata_level,
                cluster_id=cluster_id,
                version=cluster.version,
                now_ms=now_ms,
                new_id=lambda: uuid.uuid4().bytes,
            )
        except LevelTooLow as refusal:
            raise named(cluster, refusal) from refusal


def apply_plan(
    *, cluster_id: str, proposals: Sequence[Proposal], origin: Origin, now_ms: int
) -> list[Outcome]:
    """Apply a plan's proposals, all of them or none; return an outcome for each, in order.

    INVALID_UPDATE_VERSION if a resource that the plan is based on has changed since; its message
    names the resource and the change. The same plan again gets the same answer.
    """
    return propose(
        cluster_id=cluster_id,
        proposals=[from_origin(proposal, origin) for proposal in proposals],
        now_ms=now_ms,
        is_whole=True,
    )


def write_plan(plan: Plan) -> bytes:
    """Return a plan as bytes, for the keeper of a preview."""
    return link.pack(plan)


def read_plan(data: bytes) -> Plan:
    """Return a written plan; KafkaError if another release wrote it in another form."""
    try:
        return link.unpack(Plan, data)
    except link.MalformedFrame as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "the plan was made by another release: preview it again"
        ) from error
