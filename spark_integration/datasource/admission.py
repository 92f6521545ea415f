"""Limits one micro-batch. Pure: offsets in, offsets out."""

from collections.abc import Mapping
from math import ceil, floor

from spark_integration.datasource.wire.messages import TopicPartition

Offsets = dict[TopicPartition, int]


def backlog(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
    """Return the pending offsets of each partition; a new one is pending from its beginning."""
    return {where: max(0, last - start.get(where, 0)) for where, last in end.items()}


def admitted(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int
) -> Offsets:
    """Return lower ends: each partition gets its share of `most` offsets.

    A share is at least one, so that a busy partition never starves the others.
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
    """Return ends limited to the targets, for partitions with a target."""
    return {where: min(last, target[where]) for where, last in end.items() if where in target}
