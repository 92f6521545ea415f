"""Presents a plan: steps in words, values before and after, consequences and commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from brokers.cluster.plan_commands import kafka_command, samsa_command
from brokers.cluster.plans import Step, in_words
from brokers.cluster.proposals import Action
from brokers.controlplane import selectors, services
from console.queries.changes import Value
from console.queries.frame import Frame, frame
from console.queries.plan_words import sentence_of
from console.queries.reading import Reading, State, moment
from gateway.access.grants import Rights

BOOTSTRAP_BROKERS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    title: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    sentence: str
    objects: tuple[Object, ...]
    implications: tuple[str, ...]
    refusal: str
    samsa: str | None
    kafka: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """`sealed` is empty if the plan cannot be applied, or would change nothing."""

    frame: Frame
    steps: tuple[StepView, ...]
    rests_on: tuple[str, ...]
    version: int
    made_at: datetime
    sealed: str
    is_refused: bool
    changes_nothing: bool


def plan_view(
    cluster_id: str, actions: Sequence[Action], rights: Rights, *, holder: str, now_ms: int
) -> Reading[PlanView]:
    """Preview the actions, without a cached answer. Raises KafkaError if no plan is possible."""
    plan = services.preview(cluster_id=cluster_id, actions=actions, now_ms=now_ms)
    can_be_applied = not plan.is_refused and not plan.changes_nothing
    bootstrap = _bootstrap(cluster_id)
    made_at = moment(plan.made_at_ms / 1000)
    view = PlanView(
        frame=frame(cluster_id, rights),
        steps=tuple(_step(step, bootstrap) for step in plan.steps),
        rests_on=tuple(
            f"{in_words(each.subject, each.name)} at version {each.version}"
            if each.version
            else f"{in_words(each.subject, each.name)} as it was before any change"
            for each in plan.expects
        ),
        version=plan.version,
        made_at=made_at,
        sealed=services.seal(plan, holder=holder) if can_be_applied else "",
        is_refused=plan.is_refused,
        changes_nothing=plan.changes_nothing,
    )
    return Reading(state=State.LOADED, data=view, read_at=made_at)


def _bootstrap(cluster_id: str) -> str:
    brokers = selectors.brokers(cluster_id=cluster_id)[:BOOTSTRAP_BROKERS]
    return ",".join(f"{broker.host}:{broker.port}" for broker in brokers) or "localhost:9092"


def _step(step: Step, bootstrap: str) -> StepView:
    return StepView(
        sentence=sentence_of(step),
        objects=tuple(
            Object(
                title=f"{effect.kind}: {effect.name or 'all brokers'}",
                values=tuple(
                    Value(key=key, before=effect.before.get(key), after=effect.after.get(key))
                    for key in dict.fromkeys((*effect.after, *effect.before))
                ),
            )
            for effect in step.effects
        ),
        implications=step.implications,
        refusal=f"{step.error.name}: {step.message}" if step.error else "",
        samsa=samsa_command(step),
        kafka=kafka_command(step, bootstrap=bootstrap),
    )
