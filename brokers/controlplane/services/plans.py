"""Makes plans, which preview changes, and applies exactly what a plan showed.

A preview reads a snapshot and waits for no writer. Between it and `apply_plan` the user's browser
holds the plan, sealed for that user, so that its calls cannot be replaced.
"""

import base64
import binascii
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.core import signing

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

# How long a user may look at a preview before applying it.
SEAL_MAX_AGE_S: Final = 3600
# A frame in base64, with the signature and room to spare; more is not even decoded.
MAX_SEALED_CHARS: Final = 2 * link.MAX_FRAME
_PURPOSE: Final = "samsa.plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPlan:
    """The contents of a seal: the cluster, and the proposals without their actor."""

    cluster_id: str
    proposals: tuple[Proposal, ...]


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


def seal(plan: Plan, *, holder: str) -> str:
    """Return a plan's proposals as a text that only this holder can apply, for an hour."""
    assert plan.proposals, "a plan that is refused is not applied"
    try:
        frame = link.encode(link.Propose(request_no=0, proposals=plan.proposals))
    except link.FrameTooLarge as error:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"the plan is too large: {error}; make several plans"
        ) from error
    text = f"{plan.cluster_id} {base64.b64encode(frame).decode('ascii')}"
    return _signer(holder).sign(text)


def open_seal(text: str, *, holder: str) -> OpenedPlan:
    """Return the sealed plan; KafkaError if it is too old, of another user, or not a seal."""
    # A text that is too long, or empty, is not a seal.
    text = text if len(text) <= MAX_SEALED_CHARS else ""
    try:
        signed = _signer(holder).unsign(text, max_age=SEAL_MAX_AGE_S)
        cluster_id, _, frame = signed.partition(" ")
        body = base64.b64decode(frame, validate=True)[link.LENGTH.size :]
        message = link.decode_from_broker(body)
    except (signing.BadSignature, binascii.Error, link.MalformedFrame) as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"this is not a plan that was shown here within the last {SEAL_MAX_AGE_S // 60} "
            "minutes: preview the change again, then apply it",
        ) from error
    assert isinstance(message, link.Propose), "a seal holds proposals"
    return OpenedPlan(cluster_id=cluster_id, proposals=message.proposals)


def _signer(holder: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"{_PURPOSE}:{holder}")
