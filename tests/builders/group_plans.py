"""Plans of changes of groups, every value defaulted. Needs the project set up."""

from typing import Any

from brokers.controlplane.services import GroupChangeKind
from console.group_changes.plans import GroupPlan, PlannedStep
from gateway.kafka.values import Place
from tests.console import cluster_rows


def group_plan(
    steps: int = 1,
    *,
    kind: GroupChangeKind = GroupChangeKind.RESET_OFFSETS,
    topic: str = "orders",
    **fields: Any,
) -> GroupPlan:
    """Return a plan whose partitions go from 40 to 17, or to nothing where it deletes."""
    is_reset = kind is GroupChangeKind.RESET_OFFSETS
    values: dict[str, Any] = {
        "cluster_id": cluster_rows.CLUSTER_ID,
        "group": "billing",
        "state": "Empty",
        "in_words": "is Empty with no members",
        "made_at_ms": cluster_rows.NOW_MS,
        "topic_ids": {topic: "id-1"},
        "topic": "" if is_reset else topic,
        "targets": ("--all-topics",),
        "options": ("--to-earliest",),
    }
    return GroupPlan(
        kind=kind,
        steps=tuple(
            PlannedStep(
                place=Place(topic=topic, partition=index),
                before=40,
                after=17 if is_reset else None,
                start=0,
                end=100,
                read_again=23 if is_reset else 0,
            )
            for index in range(steps)
        ),
        **(values | fields),
    )
