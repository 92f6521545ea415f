"""Defines changes of a group that write no record: a new value replaces the one before.

Knows no details of either kind of group. An operation makes the next value, and the shard that
applies the change only exchanges it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from brokers.cluster.image import ClusterImage
    from brokers.coordination.groups.classic import ClassicGroup
    from brokers.coordination.groups.modern import ConsumerGroup

    Group: TypeAlias = ClassicGroup | ConsumerGroup


@dataclass(frozen=True, slots=True)
class GroupBecame:
    """The new value of a group; None removes it."""

    group_id: str
    group: "Group | None"
    # The image with which a consumer group was computed; the shard may have a newer one by now.
    image: "ClusterImage | None" = None
