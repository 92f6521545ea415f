"""Builds the collector's detail of one broker: its APIs, its clients and its groups.

Pure. All counts are since the broker's start; the counts of a minute ago are added, so that a page
can show the difference.
"""

from typing import Any, Final

from console.monitoring.observed import Observed

# Groups of a coordinator that are named; the others are counted.
MAX_NAMED_GROUPS: Final = 200


def broker_detail(observed: Observed, broker_id: int) -> dict[str, Any] | None:
    """Return the detail of a broker; None if there is no such broker."""
    view = observed.brokers.get(broker_id)
    if view is None:
        return None
    groups = [group.name for group in observed.groups.values() if group.owner == broker_id]
    earlier = None
    if view.marks:
        mark = view.marks[0]
        earlier = {
            "ms": mark.ms,
            "apis": list(mark.apis.values()),
            "clients": list(mark.clients.values()),
        }
    return {
        "bucket_bounds_ms": view.bucket_bounds_ms,
        "apis": list(view.apis.values()),
        "clients": list(view.clients.values()),
        "earlier": earlier,
        "groups": sorted(groups)[:MAX_NAMED_GROUPS],
        "group_count": len(groups),
    }
