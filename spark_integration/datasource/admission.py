"""How far one micro-batch goes. Pure: offsets in, offsets out."""

from collections.abc import Mapping
from math import ceil, floor

from spark_integration.datasource.wire.messages import TopicPartition

Offsets = dict[TopicPartition, int]


def backlog(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
    """Return how many offsets wait in each partition; one that is new waits from its beginning."""
    return {where: max(0, last - start.get(where, 0)) for where, last in end.items()}


def admitted(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int
) -> Offsets:
    """Return ends that lie nearer: each partition gets its share of `most` offsets.

    A share below one is one, so that nobody waits for ever behind a partition that is never done.
    """
    waiting = backlog(start, end)
    total = sum(waiting.values())
    if total <= most:
        return dict(end)
    nearer = {}
    for where, last in end.items():
        share = most * waiting[where] / total
        size = ceil(share) if share < 1 else floor(share)
        nearer[where] = last - waiting[where] + size
    return nearer


def limited(end: Mapping[TopicPartition, int], target: Mapping[TopicPartition, int]) -> Offsets:
    """Return ends that pass no target, of the partitions that have one."""
    return {where: min(last, target[where]) for where, last in end.items() if where in target}
