"""What a tick of the collector's tables says to open pages. Pure.

`live` tells whoever sees a part of the cluster that its tables moved, and whether they can be
believed; `health` tells those who see all of it what needs attention, in numbers.
"""

import json
from typing import Any, Final

from console.monitoring.selectors import Snapshot

FRESH: Final = "fresh"
STALE: Final = "stale"
AWAY: Final = "away"


class Ticks:
    """Says of snapshot after snapshot what the topics of a cluster tell."""

    def __init__(self) -> None:
        # When each cluster's tables were told last, in seconds since 1970, while they are stale.
        self._told_s: dict[str, int] = {}

    def live(self, snapshot: Snapshot, cluster_id: str, *, now_s: float) -> str:
        """Return the value of `live:CLUSTER`; another one than before makes pages look again."""
        state = state_of(snapshot, cluster_id)
        value: dict[str, Any] = {"state": state}
        if state != AWAY:
            value["step"] = snapshot.step
        if state == STALE:
            # Said once: an age would be another value each second.
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
            "groups_in_need": snapshot.groups_in_need,
            "offline_partitions": snapshot.offline_partitions,
            "silent_brokers": len(snapshot.silent_brokers()),
        }
    )


def state_of(snapshot: Snapshot, cluster_id: str) -> str:
    if not snapshot.is_there or snapshot.cluster_id != cluster_id:
        return AWAY
    return STALE if snapshot.is_stale else FRESH
