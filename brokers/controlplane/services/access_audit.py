"""Audits changes of users, tokens and connectors, which are made in other databases before.

A caller may report a change again, after a crash between the two databases; it is written once.
What users without any right may repeat as they like is counted on one entry an hour, since the
entries of a cluster are limited, and new ones displace the oldest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db.models import F

from brokers.cluster.origins import Origin, Via
from brokers.controlplane import models
from brokers.controlplane.database import transactional
from brokers.controlplane.services import audit
from brokers.controlplane.services.audit import Draft


class AccessChangeKind(StrEnum):
    CREATE_USER = "create user"
    DELETE_USER = "delete user"
    ENABLE_USER = "enable user"
    DISABLE_USER = "disable user"
    GIVE_RIGHT = "give right"
    TAKE_RIGHT = "take right"
    RESET_PASSWORD = "reset password"  # noqa: S105 - a word
    CHANGE_PASSWORD = "change password"  # noqa: S105 - a word
    END_SESSIONS = "end sessions"
    CREATE_TOKEN = "create token"  # noqa: S105 - a word
    REVOKE_TOKEN = "revoke token"  # noqa: S105 - a word


class ConnectorChangeKind(StrEnum):
    CREATE_CONNECTOR = "create connector"
    ALTER_CONNECTOR = "alter connector"
    DELETE_CONNECTOR = "delete connector"
    PAUSE_CONNECTOR = "pause connector"
    RESUME_CONNECTOR = "resume connector"
    STOP_CONNECTOR = "stop connector"
    RESTART_CONNECTOR = "restart connector"
    RESTART_TASK = "restart task"
    ALTER_OFFSETS = "alter connector offsets"
    RESET_OFFSETS = "reset connector offsets"
    RESET_TOPICS = "reset connector topics"
    START_REDRIVE = "send dead letters again"
    STOP_REDRIVE = "stop sending dead letters again"
    RESUME_REDRIVE = "resume sending dead letters again"


# Changes that users make to their own accounts, without any right.
OF_EVERYBODY: Final = frozenset({AccessChangeKind.CHANGE_PASSWORD, AccessChangeKind.END_SESSIONS})
COUNTED_WITHIN_MS: Final = 3_600_000


class ExtraChangeKind(StrEnum):
    INSTALL_EXTRA = "install extra"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessChange:
    """One change of a user, a token, a connector or an extra, with who made it and when."""

    kind: AccessChangeKind | ConnectorChangeKind | ExtraChangeKind
    subject: str
    name: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    origin: Origin
    via: Via
    made_at_ms: int


@transactional
def note_access_change(*, cluster_id: str, change: AccessChange) -> bool:
    """Write a change, or count it as a repetition; return False if it exists already."""
    draft = Draft(
        origin=change.origin,
        via=change.via,
        kind=change.kind,
        subject=change.subject,
        name=change.name,
        before=change.before,
        after=change.after,
    )
    # Locked, so that of two callers that report the same change the second sees the first.
    cluster = models.Cluster.objects.select_for_update().get(cluster_id=cluster_id)
    same = cluster.audit.filter(
        name=audit.name_of(draft), kind=change.kind.value, made_at_ms=change.made_at_ms
    )
    told = (dict(change.before), dict(change.after))
    if any((row.before, row.after) == told for row in same):
        return False
    former = _former(cluster, change) if change.kind in OF_EVERYBODY else None
    if former is None:
        audit.append(cluster, [draft], version=cluster.version, now_ms=change.made_at_ms)
        return True
    # Changes come in their order, so a time that is counted already is a change told again.
    later = cluster.audit.filter(pk=former.pk, last_at_ms__lt=change.made_at_ms)
    return bool(later.update(times=F("times") + 1, last_at_ms=change.made_at_ms))


def _former(cluster: models.Cluster, change: AccessChange) -> models.AuditEntry | None:
    """Return the entry of the last hour that a repetition of it is counted on."""
    same: models.AuditEntry | None = (
        cluster.audit.filter(
            name=change.name,
            kind=change.kind.value,
            actor=change.origin.actor,
            address=change.origin.address,
            made_at_ms__gt=change.made_at_ms - COUNTED_WITHIN_MS,
        )
        .order_by("-number")
        .first()
    )
    return same
