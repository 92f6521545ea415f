"""Plans: a preview of what changes would do, and the door by which exactly that is done.

A preview reads one moment and waits for no writer. Between it and `apply_plan` the plan is in the
hands of whoever was shown it, sealed for that holder, so that nobody can slip in other calls.
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

# As long as somebody may look at a preview before agreeing to it.
SEAL_MAX_AGE_S: Final = 3600
# A frame in base64, with the signature and room to spare; more is not even decoded.
MAX_SEALED_CHARS: Final = 2 * link.MAX_FRAME
_PURPOSE: Final = "samsa.plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPlan:
    """What a seal holds: the cluster, and the proposals without who makes them."""

    cluster_id: str
    proposals: tuple[Proposal, ...]


def preview(*, cluster_id: str, actions: Sequence[Action], now_ms: int) -> Plan:
    """Return what the actions would do now, each after those before it.

    A step that would be refused says so in the plan. KafkaError where there can be no plan at all,
    as below the metadata level from which versions are kept.
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
    """Do what a plan's proposals say, all of it or nothing; one outcome for each, in order.

    INVALID_UPDATE_VERSION where what the plan rests on has moved since; its message names what,
    and the change that moved it. The same plan again is answered as the first time.
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
    """Return what was sealed; KafkaError where it is too old, of somebody else, or no seal."""
    # What is too long is no seal; an empty text is none either.
    text = text if len(text) <= MAX_SEALED_CHARS else ""
    try:
        signed = _signer(holder).unsign(text, max_age=SEAL_MAX_AGE_S)
        cluster_id, _, frame = signed.partition(" ")
        body = base64.b64decode(frame, validate=True)[link.LENGTH.size :]
        message = link.decode_from_broker(body)
    except (signing.BadSignature, binascii.Error, link.MalformedFrame) as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"this is no plan that was shown here within the last {SEAL_MAX_AGE_S // 60} minutes:"
            " preview the change again, then apply it",
        ) from error
    assert isinstance(message, link.Propose), "a seal holds proposals"
    return OpenedPlan(cluster_id=cluster_id, proposals=message.proposals)


def _signer(holder: str) -> signing.TimestampSigner:
    return signing.TimestampSigner(salt=f"{_PURPOSE}:{holder}")
