"""An assignor of kafka-python that gives one partition to two members, as none may."""

from typing import Any

from kafka.coordinator.assignors.abstract import ConsumerProtocolAssignment
from kafka.coordinator.assignors.range import RangePartitionAssignor

TWICE = 0


class TwiceAssignor(RangePartitionAssignor):  # type: ignore[misc]  # (the package has no types)
    """Assigns by range, and then partition 0 of each topic to everybody who lacks it."""

    name = "twice"

    @classmethod
    def assign(cls, cluster: Any, members: Any) -> dict[str, Any]:
        right = RangePartitionAssignor.assign(cluster, members)
        return {
            member: ConsumerProtocolAssignment(
                cls.version,
                [
                    (topic, sorted({TWICE, *partitions}))
                    for topic, partitions in assignment.assigned_partitions
                ],
                b"",
            )
            for member, assignment in right.items()
        }
