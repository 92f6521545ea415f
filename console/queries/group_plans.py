"""Pages a plan of a group's change: 500 partitions at a time, with totals over all."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from brokers.controlplane.services import GroupChangeKind
from console import group_names
from console.group_changes.commands import kafka_command, samsa_command
from console.group_changes.desk import bootstrap_of
from console.group_changes.plans import GroupPlan, LeftOut, PlannedStep
from console.queries.frame import Frame
from console.queries.reading import Reading, State, moment
from gateway.kafka import shown_names

PAGE_ROWS: Final = 500
TITLES: Final = {
    GroupChangeKind.RESET_OFFSETS: "Reset offsets of",
    GroupChangeKind.DELETE_OFFSETS: "Delete offsets of",
    GroupChangeKind.DELETE_GROUP: "Delete group",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    topic: str
    partition: int
    before: int | None
    after: int | None
    difference: str
    start: int | None
    end: int | None
    note: str

    @property
    def is_change(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlanPage:
    """A plan or its result. Every button of the page returns `sealed`."""

    frame: Frame
    plan: GroupPlan
    title: str
    name: str  # of the group, for display
    address: str  # of its page
    made_at: datetime
    rows: tuple[Row, ...]
    number: int  # of the page, from 1
    pages: int
    changes: int
    skipped: int
    read_again: int
    topics: int
    sentence: str
    follows: tuple[str, ...]
    samsa: str | None
    kafka: str | None
    sealed: str
    left_out: tuple[LeftOut, ...]

    @property
    def state(self) -> str:
        return self.plan.in_words.removeprefix("is ")

    @property
    def partitions(self) -> int:
        return len(self.plan.steps)

    @property
    def first(self) -> int:
        return (self.number - 1) * PAGE_ROWS + 1

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1

    @property
    def is_reset(self) -> bool:
        return self.plan.kind is GroupChangeKind.RESET_OFFSETS

    @property
    def is_deletion(self) -> bool:
        """Tell whether the plan deletes the group, which requires its typed name."""
        return self.plan.kind is GroupChangeKind.DELETE_GROUP


def group_plan_page(
    frame: Frame,
    plan: GroupPlan,
    *,
    sealed: str,
    number: int = 1,
) -> Reading[GroupPlanPage]:
    """Return one page of a plan; a number beyond the last page returns the last one."""
    pages = max(1, -(-len(plan.steps) // PAGE_ROWS))
    number = min(max(number, 1), pages)
    steps = plan.steps[(number - 1) * PAGE_ROWS : number * PAGE_ROWS]
    made_at = moment(plan.made_at_ms / 1000)
    data = GroupPlanPage(
        frame=frame,
        plan=plan,
        title=TITLES[plan.kind],
        name=shown_names.shown(plan.group),
        address=group_names.link(plan.cluster_id, plan.group),
        made_at=made_at,
        rows=tuple(map(_row, steps)),
        number=number,
        pages=pages,
        changes=plan.changes,
        skipped=sum(step.skipped for step in plan.steps),
        read_again=sum(step.read_again for step in plan.steps),
        topics=len({step.place.topic for step in plan.steps}),
        sentence=_sentence(plan),
        follows=tuple(_follows(plan)),
        samsa=samsa_command(plan),
        kafka=kafka_command(plan, bootstrap=bootstrap_of(plan.cluster_id)),
        sealed=sealed,
        left_out=plan.left_out,
    )
    return Reading(state=State.LOADED, data=data, read_at=made_at)


def _row(step: PlannedStep) -> Row:
    return Row(
        topic=step.place.topic,
        partition=step.place.partition,
        before=step.before,
        after=step.after,
        difference=_difference(step),
        start=step.start,
        end=step.end,
        note=step.note,
    )


def _difference(step: PlannedStep) -> str:
    if step.before == step.after:
        return "no change"
    if step.skipped:
        return f"{step.skipped:,} skipped"
    if step.read_again:
        return f"{step.read_again:,} read again"
    if step.after is None:
        return "deleted"
    return "first commit" if step.before is None else "none to read or skip"


def _sentence(plan: GroupPlan) -> str:
    """Return what the plan does, in the words of groups and offsets."""
    name = shown_names.shown(plan.group)
    changed = [step for step in plan.steps if step.before != step.after]
    topics = list(dict.fromkeys(step.place.topic for step in changed))
    where = f"topic {topics[0]}" if len(topics) == 1 else f"{len(topics):,} topics"
    of = f"{len(changed):,} partition{'' if len(changed) == 1 else 's'} of {where}"
    match plan.kind:
        case GroupChangeKind.DELETE_GROUP:
            return f"Delete group {name}, with all offsets that it has committed."
        case GroupChangeKind.DELETE_OFFSETS:
            return f"Delete the offsets that group {name} has committed for {of}."
        case GroupChangeKind.RESET_OFFSETS:
            skipped = sum(step.skipped for step in plan.steps)
            again = sum(step.read_again for step in plan.steps)
            effects = [
                *([f"skip {skipped:,} offsets"] if skipped else []),
                *([f"read {again:,} offsets again"] if again else []),
            ]
            effect = f": {' and '.join(effects)}" if effects else ""
            return f"Move group {name} to the offsets below, in {of}{effect}."


def _follows(plan: GroupPlan) -> list[str]:
    match plan.kind:
        case GroupChangeKind.RESET_OFFSETS:
            return [
                (
                    "The group's consumers continue at these offsets when they start again; "
                    "nothing is read or deleted by this change."
                ),
                (
                    "Skipped and read again count offsets: transaction markers and records that"
                    " compaction has removed count as well, so fewer records may be meant."
                ),
            ]
        case GroupChangeKind.DELETE_OFFSETS:
            return [
                (
                    f"A consumer of the group that reads topic {plan.topic} later begins where its"
                    " auto.offset.reset says: at the end, unless it was set."
                ),
                "The audit keeps the offsets of before; a reset brings them back.",
            ]
        case GroupChangeKind.DELETE_GROUP:
            return [
                (
                    "The group is deleted with its committed offsets. Consumers that use its "
                    "name later create a new one, and begin where their auto.offset.reset says: "
                    "at the end, unless it was set."
                ),
                "It cannot be undone. The audit keeps the offsets of before.",
            ]
