"""What stands around every page: which cluster is shown, and how much of it there is."""

from dataclasses import dataclass

from brokers.controlplane import selectors
from brokers.controlplane.selectors import ClusterSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The cluster that a page is about, and those that it could be about."""

    shown: ClusterSummary | None
    others: tuple[ClusterSummary, ...]
    # What is shown of brokers is then as old as its end, and nothing can be changed.
    is_agent_gone: bool = False


def frame(cluster_id: str | None) -> Frame:
    """Return the cluster asked for, or the first one where none of that id exists."""
    clusters = selectors.clusters()
    shown = next((c for c in clusters if c.cluster_id == cluster_id), None)
    if shown is None and clusters:
        shown = clusters[0]
    return Frame(
        shown=shown,
        others=tuple(c for c in clusters if c is not shown),
        is_agent_gone=selectors.is_agent_gone(),
    )
