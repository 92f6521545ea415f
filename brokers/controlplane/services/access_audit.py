"""Audits changes of users, tokens and connectors, which are made in other databases before.

A caller may report a change again, after a crash between the two databases; it is written once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

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
    """Write a change, unless it exists already; return whether it was written."""
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
    audit.append(cluster, [draft], version=cluster.version, now_ms=change.made_at_ms)
    return True
