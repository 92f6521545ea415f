"""Reads the audit for pages and checks, as frozen values instead of rows.

Newest first, in pages; each page begins at the number where the previous one ended, so that new
entries shift nothing. A check follows the whole chain in one snapshot of the database.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet

from brokers.controlplane import models
from brokers.controlplane.audit_chain import digest_of
from brokers.controlplane.database import one_moment

# The most entries of one page, and of one portion of an export or a check.
MAX_ROWS: Final = 500
# Faults of a chain that are listed: after the first one, all later entries are in doubt.
MAX_FAULTS: Final = 10
ACCEPTED: Final = "NONE"
# Noted before something was done whose outcome has an entry of its own.
BEGUN: Final = "BEGUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One requested change. `outcome` is NONE, BEGUN, or the name of Kafka's error."""

    number: int
    made_at_ms: int
    actor: str
    via: str
    client_id: str
    address: str
    session: str
    kind: str
    subject: str
    name: str
    outcome: str
    message: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    version: int
    times: int
    last_at_ms: int
    digest: str

    @property
    def is_refused(self) -> bool:
        return self.outcome not in (ACCEPTED, BEGUN)

    @property
    def is_begun(self) -> bool:
        return self.outcome == BEGUN


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The criteria for entries; an empty text or None matches all."""

    actor: str = ""  # a part of it
    name: str = ""  # a part of it
    kind: str = ""
    subject: str = ""
    is_refused: bool | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    # Clients whose refusals are left out; a client chooses its id, so what it changed is not.
    quiet_clients: frozenset[str] = frozenset()


EVERYTHING: Final = Filter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of a check of the chain: entries from `first` to `last`, and its end."""

    first: int
    last: int
    digest: str
    faults: tuple[str, ...]


def entries(
    *,
    cluster_id: str,
    which: Filter = EVERYTHING,
    below: int | None = None,
    limit: int = MAX_ROWS,
) -> list[Entry]:
    """Return entries, newest first, with numbers below one where it is given."""
    assert 0 <= limit <= MAX_ROWS, f"{limit} entries asked for, {MAX_ROWS} is the most"
    rows = _filtered(cluster_id, which)
    if below is not None:
        rows = rows.filter(number__lt=below)
    return [_entry(row) for row in rows.order_by("-number")[:limit]]


def entry(*, cluster_id: str, number: int) -> Entry | None:
    row = models.AuditEntry.objects.filter(cluster__cluster_id=cluster_id, number=number).first()
    return None if row is None else _entry(row)


def all_entries(
    *, cluster_id: str, which: Filter = EVERYTHING, below: int | None = None
) -> Iterator[Entry]:
    """Yield entries, newest first, a portion of rows in memory at a time; bounded by retention."""
    while portion := entries(cluster_id=cluster_id, which=which, below=below):
        yield from portion
        below = portion[-1].number


def verify(*, cluster_id: str, noted: tuple[int, str] | None = None) -> Verified:
    """Follow the chain from the oldest entry that is kept to the end in the cluster's row.

    `noted` is the number and digest of an entry that was written down earlier: only this detects
    that the whole chain was rebuilt.
    """
    with one_moment():
        cluster = models.Cluster.objects.get(cluster_id=cluster_id)
        faults = _faults(cluster, noted)
        return Verified(
            first=cluster.audit_first,
            last=cluster.audit_number,
            digest=cluster.audit_digest,
            faults=tuple(fault for fault, _ in zip(faults, range(MAX_FAULTS), strict=False)),
        )


def _faults(cluster: models.Cluster, noted: tuple[int, str] | None) -> Iterator[str]:
    number, digest = cluster.audit_first - 1, ""
    is_first, found_noted = True, False
    for row in _ascending(cluster):
        number += 1
        if row.number != number:
            yield f"entries {number} to {row.number - 1} are missing"
            number = row.number
        elif not is_first and row.previous != digest:
            yield f"entry {number} does not follow entry {number - 1}"
        if digest_of(row) != row.digest:
            yield f"entry {number} was changed"
        if noted is not None and noted[0] == number:
            found_noted = True
            if noted[1] != row.digest:
                yield f"entry {number} is another one than was noted"
        is_first, digest = False, row.digest
    if (number, digest) != (cluster.audit_number, cluster.audit_digest):
        yield f"the newest entry is {number}, the cluster's row says {cluster.audit_number}"
    if noted is not None and not found_noted:
        yield f"entry {noted[0]}, which was noted, is not kept"


def _ascending(cluster: models.Cluster) -> Iterator[models.AuditEntry]:
    above = 0
    while portion := list(cluster.audit.filter(number__gt=above).order_by("number")[:MAX_ROWS]):
        yield from portion
        above = portion[-1].number


def _filtered(cluster_id: str, which: Filter) -> QuerySet[models.AuditEntry]:
    wanted = Q(cluster__cluster_id=cluster_id)
    if which.actor:
        wanted &= Q(actor__icontains=which.actor) | Q(client_id__icontains=which.actor)
    if which.name:
        wanted &= Q(name__icontains=which.name)
    if which.kind:
        wanted &= Q(kind=which.kind)
    if which.subject:
        wanted &= Q(subject=which.subject)
    if which.is_refused is not None:
        is_no_refusal = Q(outcome__in=(ACCEPTED, BEGUN))
        wanted &= ~is_no_refusal if which.is_refused else Q(outcome=ACCEPTED)
    if which.since_ms is not None:
        # Of a refusal that was repeated, the last time counts.
        wanted &= Q(last_at_ms__gte=which.since_ms)
    if which.until_ms is not None:
        wanted &= Q(made_at_ms__lt=which.until_ms)
    if which.quiet_clients:
        wanted &= Q(outcome__in=(ACCEPTED, BEGUN)) | ~Q(client_id__in=which.quiet_clients)
    return models.AuditEntry.objects.filter(wanted)


def _entry(row: models.AuditEntry) -> Entry:
    return Entry(
        number=row.number,
        made_at_ms=row.made_at_ms,
        actor=row.actor,
        via=row.via,
        client_id=row.client_id,
        address=row.address,
        session=row.session,
        kind=row.kind,
        subject=row.subject,
        name=row.name,
        outcome=row.outcome,
        message=row.message,
        before=row.before,
        after=row.after,
        version=row.version,
        times=row.times,
        last_at_ms=row.last_at_ms,
        digest=row.digest,
    )
