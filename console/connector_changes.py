"""Moves changes of connectors from their database to the cluster's audit log."""

import logging
from collections.abc import Mapping
from typing import Final

from brokers.cluster.origins import Origin, Via
from brokers.controlplane import selectors, services
from brokers.controlplane.services import AccessChange, ConnectorChangeKind
from connectors import changes
from connectors.changes import Change, Event
from gateway.access.callers import CallerKind

log: Final = logging.getLogger(__name__)
SUBJECT: Final = "connector"
# Programs present tokens and passwords; the console's pages have a session.
VIA: Final[Mapping[str, Via]] = {
    CallerKind.TOKEN.value: Via.REST,
    CallerKind.USER.value: Via.REST,
    CallerKind.SESSION.value: Via.BROWSER,
}
KINDS: Final[Mapping[str, ConnectorChangeKind]] = {
    Event.CREATED.value: ConnectorChangeKind.CREATE_CONNECTOR,
    Event.ALTERED.value: ConnectorChangeKind.ALTER_CONNECTOR,
    Event.DELETED.value: ConnectorChangeKind.DELETE_CONNECTOR,
    Event.PAUSED.value: ConnectorChangeKind.PAUSE_CONNECTOR,
    Event.RESUMED.value: ConnectorChangeKind.RESUME_CONNECTOR,
    Event.STOPPED.value: ConnectorChangeKind.STOP_CONNECTOR,
    Event.RESTARTED.value: ConnectorChangeKind.RESTART_CONNECTOR,
    Event.TASK_RESTARTED.value: ConnectorChangeKind.RESTART_TASK,
    Event.OFFSETS_ALTERED.value: ConnectorChangeKind.ALTER_OFFSETS,
    Event.OFFSETS_RESET.value: ConnectorChangeKind.RESET_OFFSETS,
    Event.TOPICS_RESET.value: ConnectorChangeKind.RESET_TOPICS,
    Event.REDRIVE_STARTED.value: ConnectorChangeKind.START_REDRIVE,
    Event.REDRIVE_STOPPED.value: ConnectorChangeKind.STOP_REDRIVE,
    Event.REDRIVE_RESUMED.value: ConnectorChangeKind.RESUME_REDRIVE,
}


def deliver() -> None:
    """Write all pending changes to the audit log of their cluster; database errors propagate."""
    while waiting := changes.waiting():
        clusters = {cluster.cluster_id for cluster in selectors.clusters()}
        for change in waiting:
            kind = KINDS.get(change.event)
            if kind is None or change.cluster not in clusters:
                # An event of a newer release, or of a deleted cluster.
                log.warning("connector.change_unknown event=%s", change.event)
            else:
                entry = entry_of(change, kind)
                services.note_access_change(cluster_id=change.cluster, change=entry)
            # One at a time, so that an error halfway repeats few of them.
            changes.told([change.number])


def entry_of(change: Change, kind: ConnectorChangeKind) -> AccessChange:
    return AccessChange(
        kind=kind,
        subject=SUBJECT,
        name=change.subject,
        before=dict(change.before),
        after=dict(change.after),
        origin=Origin(actor=change.actor, address=change.address),
        via=_via_of(change),
        made_at_ms=change.made_at_ms,
    )


def _via_of(change: Change) -> Via:
    """Return how a caller authenticated; a command on the host has no address."""
    return VIA.get(change.caller, Via.BROWSER) if change.address else Via.HOST
