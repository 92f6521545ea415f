"""Moves changes of users and tokens from the web's database to the cluster's audit log."""

import logging
from dataclasses import dataclass
from typing import Final

from brokers.cluster.origins import Origin, Via
from brokers.controlplane import selectors, services
from brokers.controlplane.services import AccessChange, AccessChangeKind
from gateway.access import changes
from gateway.access.changes import Change

log: Final = logging.getLogger(__name__)
USER: Final = "user"
TOKEN: Final = "token"  # noqa: S105 - a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The audit entry of an event; its details are the values after it, or else before."""

    event: str
    kind: AccessChangeKind
    subject: str = USER
    is_loss: bool = False


EVENTS: Final = {
    row.event: row
    for row in (
        Row(event="user.created", kind=AccessChangeKind.CREATE_USER),
        Row(event="user.deleted", kind=AccessChangeKind.DELETE_USER, is_loss=True),
        Row(event="user.enabled", kind=AccessChangeKind.ENABLE_USER),
        Row(event="user.disabled", kind=AccessChangeKind.DISABLE_USER),
        Row(event="user.granted", kind=AccessChangeKind.GIVE_RIGHT),
        Row(event="user.revoked", kind=AccessChangeKind.TAKE_RIGHT, is_loss=True),
        Row(event="user.password_reset", kind=AccessChangeKind.RESET_PASSWORD),
        Row(event="user.password_changed", kind=AccessChangeKind.CHANGE_PASSWORD),
        Row(event="user.sessions_ended", kind=AccessChangeKind.END_SESSIONS, is_loss=True),
        Row(event="token.created", kind=AccessChangeKind.CREATE_TOKEN, subject=TOKEN),
        Row(event="token.revoked", kind=AccessChangeKind.REVOKE_TOKEN, subject=TOKEN),
    )
}


def deliver() -> None:
    """Write all pending changes to the audit log of every cluster; database errors propagate.

    Users and tokens belong to all clusters of a console. Before there is one, changes wait.
    """
    while waiting := changes.waiting():
        clusters = [cluster.cluster_id for cluster in selectors.clusters()]
        if not clusters:
            return
        for change in waiting:
            row = EVENTS.get(change.event)
            if row is None:
                # An event of a newer release, which has logged it.
                log.warning("access.change_unknown event=%s", change.event)
            else:
                entry = entry_of(change, row)
                for cluster_id in clusters:
                    services.note_access_change(cluster_id=cluster_id, change=entry)
            # One at a time, so that an error halfway repeats few of them.
            changes.told([change.number])


def entry_of(change: Change, row: Row) -> AccessChange:
    details = dict(change.details)
    by = change.actor
    return AccessChange(
        kind=row.kind,
        subject=row.subject,
        name=change.subject,
        before=details if row.is_loss else {},
        after={} if row.is_loss else details,
        # A browser has an address; a command on the host has none.
        origin=Origin(actor=f"User:{by.name}" if by.address else by.name, address=by.address),
        via=Via.BROWSER if by.address else Via.HOST,
        made_at_ms=change.made_at_ms,
    )
