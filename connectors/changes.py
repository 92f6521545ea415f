"""Passes changes of connectors on to the audit log of their cluster, after their commit.

The audit log is in the cluster's database, and connectors have another one, so no transaction has
both. A change adds a row here in its transaction; the console moves waiting rows to the log.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db import transaction

from connectors import models
from connectors.database import CONNECT
from gateway.access import audit
from gateway.access import changes as access_changes
from gateway.access.audit import Actor
from gateway.access.callers import Caller

# The most rows to keep while the cluster's database is down; older ones are only in the log file.
MAX_WAITING: Final = 10_000
# The number of rows to read at once.
AT_ONCE: Final = 100
# Enough of a value to recognize it. Longer ones, such as queries, are in full in the config.
MAX_SHOWN_CHARS: Final = 500


class Event(StrEnum):
    CREATED = "connector.created"
    ALTERED = "connector.altered"
    DELETED = "connector.deleted"
    PAUSED = "connector.paused"
    RESUMED = "connector.resumed"
    STOPPED = "connector.stopped"
    RESTARTED = "connector.restarted"
    TASK_RESTARTED = "connector.task_restarted"
    OFFSETS_ALTERED = "connector.offsets_altered"
    OFFSETS_RESET = "connector.offsets_reset"
    TOPICS_RESET = "connector.topics_reset"
    REDRIVE_STARTED = "connector.redrive_started"
    REDRIVE_STOPPED = "connector.redrive_stopped"
    REDRIVE_RESUMED = "connector.redrive_resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """The author of a change, and the address of the client."""

    caller: Caller
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that is not in the audit log yet."""

    number: int
    cluster: str
    event: str
    actor: str
    address: str
    # How the author authenticated: a CallerKind's value, empty if not recorded.
    caller: str
    subject: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    made_at_ms: int


def tell(
    event: Event,
    *,
    by: By,
    connector: models.Connector,
    before: Mapping[str, str] | None = None,
    after: Mapping[str, str] | None = None,
) -> None:
    """Record a change in its transaction, and deliver it after the commit.

    The values must be displayable: a config with its passwords masked.
    """
    made = models.UntoldChange.objects.create(
        cluster=connector.cluster,
        event=event.value,
        actor=by.caller.principal[: models.ACTOR_CHARS],
        address=by.address[: models.ADDRESS_CHARS],
        caller=by.caller.kind.value,
        subject=connector.name,
        before=_cut(before),
        after=_cut(after),
        made_at_ms=int(1000 * time.time()),
    )
    models.UntoldChange.objects.filter(pk__lte=made.pk - MAX_WAITING).delete()
    actor = Actor(name=by.caller.principal, address=by.address)

    def spread() -> None:
        audit.record(event.value, actor=actor, subject=made.subject)
        access_changes.deliver()

    transaction.on_commit(spread, using=CONNECT)


def difference(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the entries that differ, of each of two configs."""
    return (
        {key: text for key, text in before.items() if after.get(key) != text},
        {key: text for key, text in after.items() if before.get(key) != text},
    )


def waiting() -> list[Change]:
    """Return the oldest undelivered changes."""
    return [
        Change(
            number=row.pk,
            cluster=row.cluster,
            event=row.event,
            actor=row.actor,
            address=row.address,
            caller=row.caller,
            subject=row.subject,
            before=row.before,
            after=row.after,
            made_at_ms=row.made_at_ms,
        )
        for row in models.UntoldChange.objects.order_by("pk")[:AT_ONCE]
    ]


def told(numbers: Sequence[int]) -> None:
    """Delete changes that have been delivered."""
    models.UntoldChange.objects.filter(pk__in=numbers).delete()


def _cut(values: Mapping[str, str] | None) -> dict[str, str]:
    return {key: text[:MAX_SHOWN_CHARS] for key, text in (values or {}).items()}
