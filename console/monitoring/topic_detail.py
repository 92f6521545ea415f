"""Builds the collector's detail of one topic: its partitions, and the groups that read it. Pure."""

from typing import Any

from console.monitoring.group_detail import MAX_DETAIL
from console.monitoring.observed import Observed
from console.monitoring.rings import PartitionRing


def topic_detail(
    observed: Observed, ring: PartitionRing, name: str, *, first: int, rows: int
) -> dict[str, Any] | None:
    """Return `rows` of a topic's partitions, from the number `first` on, and its groups.

    None if there is no such topic.
    """
    topic = observed.topics.get(name)
    if topic is None:
        return None
    shown = sorted(index for index in topic.slots if index >= first)[: min(rows, MAX_DETAIL)]
    found = [
        (
            *(index, observed.owners[slot], observed.starts[slot], observed.ends[slot]),
            *(observed.sizes[slot], ring.rates(slot)),
        )
        for index in shown
        for slot in (topic.slots[index],)
    ]
    readers = [group.name for group in observed.groups.values() if name in group.pairs]
    return {
        "partitions": found,
        "groups": sorted(readers)[:MAX_DETAIL],
        "is_cut": max(len(topic.slots), len(readers)) > MAX_DETAIL,
    }
