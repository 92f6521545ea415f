"""Changes of a group that write no record: a new value replaces the one before.

Knows no kind of group from within. An operation makes the next value, and the shard that applies
the change only exchanges it.
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
    """The group is this from now on; None: it is gone."""

    group_id: str
    group: "Group | None"
    # The cluster that a consumer group was worked out with: another one may have come meanwhile.
    image: "ClusterImage | None" = None
