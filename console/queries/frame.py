"""Builds the frame around every page: the cluster shown, and its counts."""

from dataclasses import dataclass

from brokers.controlplane import selectors
from brokers.controlplane.selectors import ClusterSummary
from console.queries import live
from console.queries.connector_states import not_of_connectors, owners_of, troubles
from console.queries.live import Live
from gateway.access.grants import Rights, may_view_all
from gateway.access.operations import Kind, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The cluster that a page is about, and the other ones that the user can select."""

    shown: ClusterSummary | None
    others: tuple[ClusterSummary, ...]
    # Clusters exist, and the user may see none of them.
    is_hidden: bool = False
    # The user may see every topic of the shown cluster, and so their number.
    has_all_topics: bool = True
    # The user may see the cluster with all that is in it, and so numbers over all of it.
    sees_all: bool = False
    # Groups that need attention, without those of connectors; 0 for users who may not see all.
    groups_in_need: int = 0
    # Connectors that need attention, among those that the user may see; also by their groups.
    connectors_in_need: int = 0
    # Data about brokers is then as old as the agent's end, and nothing can be changed.
    is_agent_gone: bool = False
    # Why nothing can be changed although the agent runs; empty if it can.
    trouble: str = ""
    # What the brokers report of the shown cluster, and its age; None if none is shown.
    live: Live | None = None


def frame(cluster_id: str | None, rights: Rights) -> Frame:
    """Return the frame for the requested cluster, or for the first one that the user may see."""
    every = selectors.clusters()
    clusters = [
        cluster
        for cluster in every
        if rights.allows_somewhere(Operation.VIEW, cluster=cluster.cluster_id)
    ]
    shown = next((c for c in clusters if c.cluster_id == cluster_id), None)
    if shown is None and clusters:
        shown = clusters[0]
    shown_id = "" if shown is None else shown.cluster_id
    tables = None if shown is None else live.of(shown_id)
    sees_all = shown is not None and may_view_all(rights, shown.cluster_id)
    return Frame(
        shown=shown,
        has_all_topics=shown is not None and _has_all_topics(rights, shown.cluster_id),
        sees_all=sees_all,
        groups_in_need=_groups_in_need(tables) if tables is not None and sees_all else 0,
        connectors_in_need=0 if tables is None else _connectors_in_need(rights, tables, shown_id),
        is_hidden=bool(every) and not clusters,
        others=tuple(c for c in clusters if c is not shown),
        is_agent_gone=selectors.is_agent_gone(),
        trouble=selectors.agent_trouble(),
        live=tables,
    )


def _groups_in_need(tables: Live) -> int:
    hurt = (row.name for row in tables.snapshot.groups_in_trouble())
    return len(not_of_connectors(tables.snapshot.cluster_id, hurt))


def _connectors_in_need(rights: Rights, tables: Live, cluster: str) -> int:
    names = rights.names(Operation.VIEW, cluster=cluster, kind=Kind.CONNECTOR)
    groups = rights.names(Operation.VIEW, cluster=cluster, kind=Kind.GROUP)
    hurt = (row.name for row in tables.snapshot.groups_in_trouble() if row.name in groups)
    late = sum(not owner.explains_lag for owner in owners_of(cluster, hurt, rights).values())
    return late + sum(trouble.name in names for trouble in troubles(cluster, rights))


def _has_all_topics(rights: Rights, cluster_id: str) -> bool:
    return rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.TOPIC).is_all
