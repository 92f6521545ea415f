"""Defines plans of group changes as values: for the preview, the seal and the application.

Must not know brokers, pages or the database. A plan contains the data that it depends on, and
`moved` compares it with the present. Brokers keep no versions of offsets, so values are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from brokers.controlplane.services import GroupChangeKind
from gateway.kafka.group_view import GroupView
from gateway.kafka.offset_plan import Step
from gateway.kafka.values import Place

# Partitions of one plan. Sealed, these take some 300 KB, which every page of the preview carries; a
# larger group is changed topic by topic.
MAX_PLACES: Final = 10_000
# Changes since planning that are named; further ones are counted.
MAX_NAMED: Final = 20
# Partitions that an audit entry lists; a larger change is listed by topic.
LISTED_PARTITIONS: Final = 100
# The file that a page offers where a command cannot name all partitions.
FILE_NAME: Final = "plan.csv"
NO_RECORD: Final = "the partition holds no record"

Bounds = Mapping[Place, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One partition before and after; None: nothing committed."""

    place: Place
    before: int | None
    after: int | None
    start: int | None = None
    end: int | None = None
    skipped: int = 0
    read_again: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that was requested, or belongs to the group, but is not changed."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """One change of one group.

    `asked` fills the form in again. `options` and `targets` are arguments of the commands: the
    method, and the topics. `topic` is the one whose offsets are deleted; `digest` stands for all
    offsets of a group that is deleted as a whole. `refusal` says why the plan cannot be applied.
    """

    kind: GroupChangeKind
    cluster_id: str
    group: str
    state: str
    in_words: str
    made_at_ms: int
    steps: tuple[PlannedStep, ...]
    topic_ids: Mapping[str, str]
    left_out: tuple[LeftOut, ...] = ()
    topic: str = ""
    digest: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def changes(self) -> int:
        return sum(step.before != step.after for step in self.steps)

    @property
    def changes_nothing(self) -> bool:
        return self.kind is not GroupChangeKind.DELETE_GROUP and not self.changes

    @property
    def can_be_applied(self) -> bool:
        return not self.refusal and not self.changes_nothing


def planned(step: Step) -> PlannedStep:
    note = step.note or (NO_RECORD if step.start == step.end else "")
    return PlannedStep(
        place=step.place,
        before=step.before,
        after=step.after,
        start=step.start,
        end=step.end,
        skipped=step.skipped,
        read_again=step.read_again,
        note=note,
    )


def gone(place: Place, view: GroupView) -> PlannedStep:
    """Return the step that deletes the committed offset of a place."""
    return PlannedStep(place=place, before=view.committed[place], after=None)


def digest_of(committed: Mapping[Place, int]) -> str:
    """Return a digest of a group's offsets, for comparison by users who may not see them."""
    text = "\n".join(f"{p.topic} {p.partition} {offset}" for p, offset in sorted(committed.items()))
    return sha256(text.encode()).hexdigest()


def is_done_already(plan: GroupPlan, now: GroupView) -> bool:
    """Tell whether the planned state is reached: applied before, or by another user.

    If a later change happened to set the same values as an older plan, this answer does no harm.
    """
    if plan.kind is GroupChangeKind.DELETE_GROUP:
        return not now.is_there
    return all(now.committed.get(step.place) == step.after for step in plan.steps)


def moved(
    plan: GroupPlan, now: GroupView, topic_ids: Mapping[str, str], bounds: Bounds
) -> tuple[str, ...]:
    """Return what has changed since planning, a sentence each."""
    found = list(_moved(plan, now, topic_ids, bounds))
    more = len(found) - MAX_NAMED
    return (*found[:MAX_NAMED], *([f"{more} more partitions have moved"] if more > 0 else []))


def _moved(
    plan: GroupPlan, now: GroupView, topic_ids: Mapping[str, str], bounds: Bounds
) -> Iterator[str]:
    if plan.kind is not GroupChangeKind.DELETE_OFFSETS and plan.state != now.state.value:
        yield f"group {plan.group} {now.in_words()}; it {_was(plan)}"
    for topic, was in sorted(plan.topic_ids.items()):
        if topic_ids.get(topic, "") != was:
            yield _of_topic(topic, was, topic_ids.get(topic, ""))
    yield from _moved_offsets(plan, now)
    yield from _moved_bounds(plan, bounds)


def _was(plan: GroupPlan) -> str:
    return plan.in_words.replace("is ", "was ", 1).replace("does not exist", "did not exist")


def _of_topic(topic: str, was: str, is_now: str) -> str:
    if not is_now:
        return f"topic {topic} was deleted"
    if not was:
        return f"topic {topic} was created"
    return f"topic {topic} was deleted and created again"


def _moved_offsets(plan: GroupPlan, now: GroupView) -> Iterator[str]:
    known = {step.place for step in plan.steps}
    count = 0
    for step in plan.steps:
        is_now = now.committed.get(step.place)
        if is_now != step.before:
            count += 1
            yield f"{step.place}: committed is {_said(is_now)}; it was {_said(step.before)}"
    if plan.kind is GroupChangeKind.DELETE_OFFSETS:
        for place, offset in sorted(now.committed.items()):
            if place.topic == plan.topic and place not in known:
                yield f"{place}: committed is {offset}; it was nothing"
    if plan.digest and not count and digest_of(now.committed) != plan.digest:
        yield f"group {plan.group} has committed offsets that the plan does not show"


def _moved_bounds(plan: GroupPlan, bounds: Bounds) -> Iterator[str]:
    """Yield partitions without the planned offset: a group set there would start elsewhere."""
    if plan.kind is not GroupChangeKind.RESET_OFFSETS:
        return
    for step in plan.steps:
        if step.after is None or step.place.topic not in plan.topic_ids:
            continue
        held = bounds.get(step.place)
        if held is None:
            yield f"{step.place}: its start and end are unknown, since no leader answers"
        elif not held[0] <= step.after <= held[1]:
            yield (
                f"{step.place}: offset {step.after} is outside of its current offsets, {held[0]} "
                f"to {held[1]}"
            )


def _said(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)


def audited(
    steps: Sequence[PlannedStep], *, is_after: bool, places: frozenset[Place] | None = None
) -> dict[str, str]:
    """Return one side of a plan in the audit's format, for some places or all."""
    told = [
        (step.place, offset)
        for step in steps
        if places is None or step.place in places
        if (offset := step.after if is_after else step.before) is not None
    ]
    if len(steps) <= LISTED_PARTITIONS:
        return {f"{place.topic} {place.partition}": str(offset) for place, offset in told}
    by_topic: dict[str, list[str]] = {}
    for place, offset in told:
        by_topic.setdefault(place.topic, []).append(f"{place.partition}: {offset}")
    return {topic: ", ".join(lines) for topic, lines in by_topic.items()}
