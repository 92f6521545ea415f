"""A plan that was shown, applied: what it rests on is read again before anything is done.

Between that and the call lie milliseconds, in which brokers refuse only a group that has got
members: they know no versions of offsets. The audit hears of a change before the brokers do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from django.db import Error

from brokers.cluster.origins import Origin
from brokers.controlplane import services
from brokers.controlplane.services import GroupChange, GroupChangeKind
from console.group_changes import plans
from console.group_changes.plans import GroupPlan, gone
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.group_view import GroupView
from gateway.kafka.values import Place, Topic

# After these nobody knows whether the call was carried out.
UNKNOWN_OUTCOME: Final = frozenset(
    {"REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE", "NETWORK_EXCEPTION"}
)
# What the audit calls a plan that rests on what is no more, as for plans of topics.
MOVED: Final = "INVALID_UPDATE_VERSION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a plan.

    `moved` says what was no more as planned, `failure` what the brokers refused as a whole, and
    `refused` what they refused of single partitions. `entry` is the audit's number, None where
    nothing was begun, and `is_noted` False where the outcome could not be written.
    """

    is_unchanged: bool = False
    moved: tuple[str, ...] = ()
    failure: KafkaFailure | None = None
    refused: Mapping[Place, KafkaFailure] = field(default_factory=dict)
    entry: int | None = None
    is_noted: bool = True

    @property
    def is_unknown(self) -> bool:
        return self.failure is not None and self.failure.name in UNKNOWN_OUTCOME

    @property
    def is_partly_unknown(self) -> bool:
        """Tell whether some of those that count as refused may be changed: one call of several."""
        return any(why.name in UNKNOWN_OUTCOME for why in self.refused.values())


class Brokers(Protocol):
    """What has to be asked and told of the brokers; `desk.Desk` is one."""

    def view(self, group: str) -> GroupView: ...
    def topics(self, names: Iterable[str]) -> dict[str, Topic]: ...
    def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]: ...
    def carry_out(self, plan: GroupPlan) -> dict[Place, KafkaFailure]: ...


def apply(at: Brokers, plan: GroupPlan, *, origin: Origin, now_ms: int) -> Result:
    """Do what a plan says, if all that it rests on is as it was; the audit keeps either.

    Errors of the database before anything was begun go up: then nothing is done.
    """
    now = at.view(plan.group)
    change = GroupChange(
        kind=plan.kind,
        group=plan.group,
        before=_before(plan, now),
        after=plans.audited(plan.steps, is_after=True),
        origin=origin,
    )
    if plans.is_done_already(plan, now):
        return Result(is_unchanged=True)
    ids = {name: topic.id for name, topic in at.topics(plan.topic_ids).items()}
    is_reset = plan.kind is GroupChangeKind.RESET_OFFSETS
    held = at.bounds([step.place for step in plan.steps if step.place.topic in ids] * is_reset)
    if moved := plans.moved(plan, now, ids, held):
        return _refused(plan, change, moved, now_ms)
    try:
        entry = services.note_begun(
            cluster_id=plan.cluster_id,
            change=change,
            planned_at_ms=plan.made_at_ms,
            now_ms=now_ms,
        )
    except services.BegunSince as later:
        sentence = (
            f"entry {later.number} of the audit is a change of group {plan.group} that was begun"
            " after this plan was made, also where all is as before it: look at it, and plan again"
        )
        return _refused(plan, change, (sentence,), now_ms)
    try:
        refused = at.carry_out(plan)
    except KafkaFailure as failed:
        return _noted(plan, change, Result(failure=failed, entry=entry), now_ms)
    return _noted(plan, change, Result(refused=refused, entry=entry), now_ms)


def _refused(plan: GroupPlan, change: GroupChange, moved: tuple[str, ...], now_ms: int) -> Result:
    """Note that a plan rests on what is no more, and return that."""
    services.note_refused(
        cluster_id=plan.cluster_id,
        change=change,
        error=MOVED,
        message="; ".join(moved),
        now_ms=now_ms,
    )
    return Result(moved=moved)


def _noted(plan: GroupPlan, change: GroupChange, result: Result, now_ms: int) -> Result:
    """Write what became of a change that was begun; where that fails, the entry before it says so.

    The brokers have answered already, so an error of the database must not look like a refusal.
    """
    error, message = _outcome(plan, result)
    done = frozenset(step.place for step in plan.steps) - result.refused.keys()
    if result.failure is not None:
        done = frozenset()
    try:
        services.note_outcome(
            cluster_id=plan.cluster_id,
            change=replace(
                change,
                before=change.before
                if not error
                else plans.audited(plan.steps, is_after=False, places=done),
                after=plans.audited(plan.steps, is_after=True, places=done),
            ),
            error=error,
            message=message,
            now_ms=now_ms,
        )
    except Error:
        return replace(result, is_noted=False)
    return result


def _outcome(plan: GroupPlan, result: Result) -> tuple[str | None, str]:
    begun = f"begun as entry {result.entry}"
    if result.failure is not None:
        unknown = "nobody knows whether it was done; " if result.is_unknown else ""
        return result.failure.name, f"{unknown}{result.failure.message} ({begun})"
    if not result.refused:
        return None, begun
    first = next(iter(result.refused.values()))
    words = f"{len(result.refused)} of {len(plan.steps)} partitions were refused"
    if result.is_partly_unknown:
        words += " or not answered for, which may have been changed as well"
    return first.name, f"{words}, the others were changed: {first.message} ({begun})"


def _before(plan: GroupPlan, now: GroupView) -> dict[str, str]:
    """Return what the audit keeps of the group: of a whole group also what its user may not see."""
    if plan.kind is not GroupChangeKind.DELETE_GROUP:
        return plans.audited(plan.steps, is_after=False)
    steps = [gone(place, now) for place in sorted(now.committed)]
    return {"state": now.state.value, **plans.audited(steps, is_after=False)}
