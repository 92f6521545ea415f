"""Records changes of access once they are committed: in the log, and in the audit log.

The audit log is in the cluster's database and access is in that of the web, so no transaction spans
both. A change first adds a row here, in its transaction; the function given to `delivered_by` moves
pending rows to the audit log, at once or later, and nothing is lost in between.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import Error, transaction

from gateway.access import audit, models
from gateway.access.audit import Actor

log: Final = logging.getLogger(__name__)
# Pending rows while the cluster's database is down: years of manual changes. The oldest are dropped
# first, and are still in the log.
MAX_WAITING: Final = 10_000
# Rows that are read at once.
AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A pending change. `event` is in the past tense."""

    number: int
    event: str
    actor: Actor
    subject: str
    details: Mapping[str, str]
    made_at_ms: int


class _Table:
    """The destination of changes; set once, before the first request."""

    deliver: Callable[[], None] | None = None


def delivered_by(deliver: Callable[[], None]) -> None:
    """Register the function that moves pending changes; it calls `waiting` and `told`."""
    _Table.deliver = staticmethod(deliver)


def tell(event: str, *, actor: Actor, subject: str, **details: str) -> None:
    """Record a change in its transaction, and report it once that commits.

    A change that is rolled back is not reported.
    """
    made = models.UntoldChange.objects.create(
        event=event,
        actor=actor.name,
        address=actor.address[: models.ADDRESS_CHARS],
        subject=subject,
        details=details,
        made_at_ms=int(1000 * time.time()),
    )
    models.UntoldChange.objects.filter(pk__lte=made.pk - MAX_WAITING).delete()

    def spread() -> None:
        audit.record(event, actor=actor, subject=subject, **details)
        deliver()

    transaction.on_commit(spread)
    # One hint for all changes of a transaction. Those of a savepoint that is rolled back are gone
    # from this list, too.
    if not any(after is hint for _, after, *_ in transaction.get_connection().run_on_commit):
        # Robust: whether it arrives is not part of the change.
        transaction.on_commit(hint, robust=True)


def hint() -> None:
    """Let streams of all workers look at rights, tokens and sessions at once."""
    if not settings.REDIS_URL:
        return
    try:
        cluster = (settings.SAMSA_HOME / "cluster-id").read_text(encoding="ascii").strip()
    except OSError:
        # The home has not started yet, so it has no streams.
        return
    # Six megabytes, which processes that only read access need not take.
    from gateway.shared import hints  # noqa: PLC0415

    hints.send(hints.ACCESS, url=settings.REDIS_URL, cluster=cluster)


def deliver() -> None:
    """Deliver pending changes; those that a database refuses now wait for the next call."""
    if _Table.deliver is None:
        return
    try:
        _Table.deliver()
    except Error as error:
        log.warning("changes.not_delivered error=%s", str(error).strip())


def waiting() -> list[Change]:
    """Return the oldest pending changes."""
    return [
        Change(
            number=row.pk,
            event=row.event,
            actor=Actor(name=row.actor, address=row.address),
            subject=row.subject,
            details=row.details,
            made_at_ms=row.made_at_ms,
        )
        for row in models.UntoldChange.objects.order_by("pk")[:AT_ONCE]
    ]


def told(numbers: Sequence[int]) -> None:
    """Delete changes that have been delivered."""
    models.UntoldChange.objects.filter(pk__in=numbers).delete()
