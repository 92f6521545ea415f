"""Writes one audit entry for each requested change, in the transaction that makes it.

Entries are numbered without gaps and form a chain of digests; the cluster's row, which every writer
of an entry has locked, stores both ends. The oldest entries are deleted in portions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from brokers.cluster.effects import Effect, asked
from brokers.cluster.origins import Origin, Via, origin_of, via_of
from brokers.cluster.proposals import MAX_CLIENT_ID_CHARS, Outcome, Proposal, Subject
from brokers.controlplane import models
from brokers.controlplane.audit_chain import digest_of

# How long entries are kept: a quarter of a year, the usual range of an investigation.
KEPT_MS: Final = 90 * 24 * 3600 * 1000
# And how many at most: a busy cluster's quarter, some 300 MB with long configurations. Refusals
# alone cannot fill it within KEPT_MS: `refusals` writes fewer than 3,000 a day.
KEPT_ENTRIES: Final = 300_000
# How often the oldest are deleted, and how many then: more than are written in between, since a
# call writes 500 at most, and few enough to take some milliseconds.
PRUNE_EVERY: Final = 100
PRUNE_AT_ONCE: Final = 1_000
ROWS_AT_ONCE: Final = 100
ACCEPTED: Final = "NONE"  # of Kafka's errors
# Written before an action outside of any transaction; an entry with its outcome follows.
BEGUN: Final = "BEGUN"
SUBJECTS: Final = {
    Subject.TOPIC: "topic",
    Subject.TOPIC_CONFIGS: "topic",
    Subject.BROKER: "broker",
    Subject.BROKER_CONFIGS: "broker",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry before it has its place in the chain."""

    origin: Origin
    via: Via
    kind: StrEnum
    subject: str
    name: str
    outcome: str = ACCEPTED
    message: str = ""
    before: Mapping[str, str]
    after: Mapping[str, str]
    times: int = 1


def accepted(proposal: Proposal, effect: Effect) -> Draft:
    return Draft(
        origin=origin_of(proposal),
        via=via_of(proposal),
        kind=effect.kind,
        subject=SUBJECTS[effect.subject],
        name=effect.name,
        before=effect.before,
        after=effect.after,
    )


def refused(proposal: Proposal, outcome: Outcome) -> Draft | None:
    """Return the entry of a refusal; None for requests that brokers make on their own."""
    about = asked(proposal.action)
    if about is None:
        return None
    kind, subject, name = about
    return Draft(
        origin=origin_of(proposal),
        via=via_of(proposal),
        kind=kind,
        subject=SUBJECTS[subject],
        name=name,
        outcome=outcome.error.name,
        message=outcome.message,
        before={},
        after={},
    )


def append(
    cluster: models.Cluster, drafts: Sequence[Draft], *, version: int, now_ms: int
) -> list[int]:
    """Append entries to the chain; return their numbers.

    Call this in a transaction that has locked the cluster's row and read it since.
    """
    rows = [_row(cluster, draft, version=version, now_ms=now_ms) for draft in drafts]
    before = number = cluster.audit_number
    for row in rows:
        number += 1
        row.number, row.previous = number, cluster.audit_digest
        row.digest = cluster.audit_digest = digest_of(row)
    cluster.audit_number = number
    models.AuditEntry.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)
    models.Cluster.objects.filter(pk=cluster.pk).update(
        audit_number=number, audit_digest=cluster.audit_digest
    )
    if before // PRUNE_EVERY != number // PRUNE_EVERY:
        _prune(cluster, now_ms)
    return [row.number for row in rows]


def _row(cluster: models.Cluster, draft: Draft, *, version: int, now_ms: int) -> models.AuditEntry:
    asking = draft.origin
    return models.AuditEntry(
        cluster=cluster,
        made_at_ms=now_ms,
        actor=_clean(asking.actor, models.TOPIC_NAME_CHARS),
        via=draft.via.value,
        client_id=_clean(asking.client_id, MAX_CLIENT_ID_CHARS),
        address=_clean(asking.address, models.ADDRESS_CHARS),
        session=_clean(asking.session, models.DIGEST_CHARS),
        kind=draft.kind.value,
        subject=draft.subject,
        name=name_of(draft),
        outcome=draft.outcome,
        message=_clean(draft.message, models.MESSAGE_CHARS),
        before=dict(draft.before),
        after=dict(draft.after),
        version=version,
        times=draft.times,
        last_at_ms=now_ms,
    )


def name_of(draft: Draft) -> str:
    """Return the name that the entry of a draft has."""
    return _clean(draft.name, models.TOPIC_NAME_CHARS)


def _clean(text: str, limit: int) -> str:
    """Return a text from outside without characters that a database cannot store."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")[:limit]


def _prune(cluster: models.Cluster, now_ms: int) -> None:
    """Delete a portion of the oldest entries if they are too old or too many."""
    first = cluster.audit_first
    portion = cluster.audit.filter(number__gte=first, number__lt=first + PRUNE_AT_ONCE)
    last = first - 1
    for number, made_at_ms in portion.order_by("number").values_list("number", "made_at_ms"):
        is_old = made_at_ms < now_ms - KEPT_MS or number <= cluster.audit_number - KEPT_ENTRIES
        if not is_old:
            break
        last = number
    if last >= first:
        cluster.audit.filter(number__lte=last).delete()
        models.Cluster.objects.filter(pk=cluster.pk).update(audit_first=last + 1)
        cluster.audit_first = last + 1
