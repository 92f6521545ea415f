"""Looks up the bounds of partitions, which every read begins with."""

from collections.abc import Collection

from gateway.kafka.admin import Admin
from gateway.kafka.values import BEGINNING, END


def bounds(admin: Admin, topic: str, partitions: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return the first offset of each partition, and the one after its last."""
    first = admin.offsets(topic, partitions, BEGINNING)
    end = admin.offsets(topic, partitions, END)
    # A partition may be emptied between the two calls.
    return {index: (first[index], max(first[index], end[index])) for index in partitions}
