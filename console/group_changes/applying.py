"""Applies a previewed plan, after reading everything that it depends on again.

In the milliseconds between that and the call, brokers refuse only a group that has got members:
they keep no versions of offsets. The audit entry is written before the call.
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

# After these, it is unknown whether the call was executed.
UNKNOWN_OUTCOME: Final = frozenset(
    {"REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE", "NETWORK_EXCEPTION"}
)
# The audit error of a plan whose basis has changed, as for plans of topics.
MOVED: Final = "INVALID_UPDATE_VERSION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a plan.

    `moved` lists what has changed since planning, `failure` is a refusal by the brokers as a whole,
    and `refused` has those of single partitions. `entry` is the number of the audit entry, None if
    nothing was started, and `is_noted` is False if the outcome could not be written.
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
        """Tell whether refused partitions may have changed: one of several calls timed out."""
        return any(why.name in UNKNOWN_OUTCOME for why in self.refused.values())


class Brokers(Protocol):
    """The calls to the brokers; `desk.Desk` implements them."""

    def view(self, group: str) -> GroupView: ...
    def topics(self, names: Iterable[str]) -> dict[str, Topic]: ...
    def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]: ...
    def carry_out(self, plan: GroupPlan) -> dict[Place, KafkaFailure]: ...


def apply(at: Brokers, plan: GroupPlan, *, origin: Origin, now_ms: int) -> Result:
    """Apply a plan if everything that it depends on is unchanged; audit either outcome.

    Database errors before the first call propagate: then nothing was done.
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
            f"a change of group {plan.group}, entry {later.number} of the audit, was begun after"
            " this plan was made, even if it changed no offset: look at that entry, and plan again"
        )
        return _refused(plan, change, (sentence,), now_ms)
    try:
        refused = at.carry_out(plan)
    except KafkaFailure as failed:
        return _noted(plan, change, Result(failure=failed, entry=entry), now_ms)
    return _noted(plan, change, Result(refused=refused, entry=entry), now_ms)


def _refused(plan: GroupPlan, change: GroupChange, moved: tuple[str, ...], now_ms: int) -> Result:
    """Audit that the basis of a plan has changed, and return that result."""
    services.note_refused(
        cluster_id=plan.cluster_id,
        change=change,
        error=MOVED,
        message="; ".join(moved),
        now_ms=now_ms,
    )
    return Result(moved=moved)


def _noted(plan: GroupPlan, change: GroupChange, result: Result, now_ms: int) -> Result:
    """Write the outcome of a started change; if that fails, the entry before it remains.

    The brokers have answered already, so a database error must not look like a refusal.
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
        unknown = "the result is unknown; " if result.is_unknown else ""
        return result.failure.name, f"{unknown}{result.failure.message} ({begun})"
    if not result.refused:
        return None, begun
    first = next(iter(result.refused.values()))
    words = f"{len(result.refused)} of {len(plan.steps)} partitions were refused"
    if result.is_partly_unknown:
        words += " or got no answer, and may have been changed as well"
    return first.name, f"{words}, the others were changed: {first.message} ({begun})"


def _before(plan: GroupPlan, now: GroupView) -> dict[str, str]:
    """Return the audited state of the group: of a whole group also what its user may not see."""
    if plan.kind is not GroupChangeKind.DELETE_GROUP:
        return plans.audited(plan.steps, is_after=False)
    steps = [gone(place, now) for place in sorted(now.committed)]
    return {"state": now.state.value, **plans.audited(steps, is_after=False)}
