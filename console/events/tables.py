"""Derives event values for open pages from the collector's tables. Pure.

`live` reports to users with a view of any part of the cluster that its tables changed, and whether
they are current; `health` reports to those who see all of it what needs attention, in numbers.
"""

import json
from typing import Any, Final

from console.monitoring.selectors import Snapshot

FRESH: Final = "fresh"
STALE: Final = "stale"
AWAY: Final = "away"


class Ticks:
    """Derives the values of a cluster's topics from successive snapshots."""

    def __init__(self) -> None:
        # When each stale cluster's tables were last updated, in seconds since 1970.
        self._told_s: dict[str, int] = {}

    def live(self, snapshot: Snapshot, cluster_id: str, *, now_s: float) -> str:
        """Return the value of `live:CLUSTER`; a changed value makes pages refresh."""
        state = state_of(snapshot, cluster_id)
        value: dict[str, Any] = {"state": state}
        if state != AWAY:
            value["step"] = snapshot.step
        if state == STALE:
            # Computed once: an age would be another value each second.
            value["told_s"] = self._told_s.setdefault(
                cluster_id, int(now_s - (snapshot.age_s or 0))
            )
        else:
            self._told_s.pop(cluster_id, None)
        return json.dumps(value)


def health(snapshot: Snapshot, cluster_id: str) -> str:
    """Return the value of `health:CLUSTER`."""
    if state_of(snapshot, cluster_id) == AWAY:
        return json.dumps({})
    return json.dumps(
        {
            "offline_partitions": snapshot.offline_partitions,
            "silent_brokers": len(snapshot.silent_brokers()),
        }
    )


def state_of(snapshot: Snapshot, cluster_id: str) -> str:
    if not snapshot.is_there or snapshot.cluster_id != cluster_id:
        return AWAY
    return STALE if snapshot.is_stale else FRESH
