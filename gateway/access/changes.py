"""Changes of access, told once they hold: a line of the log, and an entry among all changes.

The table of all changes lies in the cluster's database, and access in that of the web, so no
transaction holds both. A change leaves a row of its own here, in its transaction; whoever knows
that table (`delivered_by`) takes over what is left, at once or later, and nothing is lost between.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import Error, transaction

from gateway.access import audit, models
from gateway.access.audit import Actor

log: Final = logging.getLogger(__name__)
# What waits while the cluster's database is away: years of changes made by hand. The oldest go
# first, and are in the log.
MAX_WAITING: Final = 10_000
# Rows that are read at once.
AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that waits to be told. `event` is in the past tense."""

    number: int
    event: str
    actor: Actor
    subject: str
    details: Mapping[str, str]
    made_at_ms: int


class _Table:
    """Where changes go; set once, before the first request."""

    deliver: Callable[[], None] | None = None


def delivered_by(deliver: Callable[[], None]) -> None:
    """Let a function take over what waits; it asks `waiting` and says `told`."""
    _Table.deliver = staticmethod(deliver)


def tell(event: str, *, actor: Actor, subject: str, **details: str) -> None:
    """Record a change within its transaction, and tell it once that holds.

    One that is taken back has not happened.
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


def deliver() -> None:
    """Have what waits taken over; what a database does not take now waits for the next time."""
    if _Table.deliver is None:
        return
    try:
        _Table.deliver()
    except Error as error:
        log.warning("changes.not_delivered error=%s", str(error).strip())


def waiting() -> list[Change]:
    """Return the oldest changes that wait."""
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
    """Forget changes that have been taken over."""
    models.UntoldChange.objects.filter(pk__in=numbers).delete()
