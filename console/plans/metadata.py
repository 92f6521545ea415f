"""Adapts plans of topics and configs, which the control plane makes and applies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db import Error
from django.urls import reverse

from brokers.cluster.image import ResourceType
from brokers.cluster.plans import Plan, in_words
from brokers.cluster.plans import Step as PlannedStep
from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from brokers.controlplane import selectors, services
from brokers.protocol.errors import ErrorCode, KafkaError
from console.plan_rights import denied, hidden
from console.plans import previews
from console.plans.commands import of_step
from console.plans.kind import FORBIDDEN, Author, CannotPlan, Kind
from console.plans.previews import (
    UNAVAILABLE,
    Consequence,
    Notice,
    Outcome,
    Preview,
    Step,
    before_and_after,
)
from console.queries.frame import frame
from console.queries.plan_words import sentence_of
from console.queries.reading import moment

BOOTSTRAP_BROKERS: Final = 3
IMPOSSIBLE: Final = "This change cannot be planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPlan:
    """A written plan, and sentences on the present use of what it changes."""

    written: bytes
    use: tuple[str, ...] = ()


def plan_of(
    author: Author, cluster_id: str, actions: Sequence[Action], *, use: Sequence[str] = ()
) -> MetadataPlan:
    """Return the plan of actions, each after those before it. Raises CannotPlan."""
    if reason := hidden(author.rights, cluster_id, actions):
        raise CannotPlan("You may not see this plan", reason, status=FORBIDDEN)
    try:
        made = services.preview(cluster_id=cluster_id, actions=actions, now_ms=author.now_ms)
    except KafkaError as error:
        raise CannotPlan(IMPOSSIBLE, error.message) from error
    return MetadataPlan(written=services.write_plan(made), use=tuple(use))


def refusal_of(plan: MetadataPlan) -> tuple[ErrorCode, str] | None:
    """Return the rule that the first step violates; None if there is none."""
    step = _read(plan).steps[0]
    return (step.error, step.message) if step.error else None


def _read(plan: MetadataPlan) -> Plan:
    try:
        return services.read_plan(plan.written)
    except KafkaError as error:
        raise CannotPlan("This plan has expired", error.message) from error


def _actions_of(made: Plan) -> list[Action]:
    return [step.asked for step in made.steps]


def _preview(author: Author, plan: MetadataPlan, _number: int) -> Preview:
    made = _read(plan)
    around = frame(made.cluster_id, author.rights)
    bootstrap = _bootstrap(made.cluster_id)
    name = around.shown.name if around.shown else made.cluster_id
    return Preview(
        frame=around,
        section="plan",
        title="Plan",
        note=f"for {name} at metadata {made.version}",
        made_at=moment(made.made_at_ms / 1000),
        notices=tuple(_notices(made)),
        steps=tuple(_step(step, bootstrap) for step in made.steps),
        use=plan.use,
        rests_on=tuple(
            f"{in_words(each.subject, each.name)} at version {each.version}"
            if each.version
            else f"{in_words(each.subject, each.name)} as it was before any change"
            for each in made.expects
        ),
        is_risk=any(isinstance(step.asked, DeleteTopic) for step in made.steps),
        cancel=_before(made.cluster_id, _actions_of(made)),
    )


def _notices(made: Plan) -> list[Notice]:
    if made.is_refused:
        why = "This plan cannot be applied as it is; the step that is refused says why below."
        return [previews.make_refusal(why)]
    if made.changes_nothing:
        return [previews.no_change()]
    return []


def _bootstrap(cluster_id: str) -> str:
    brokers = selectors.brokers(cluster_id=cluster_id)[:BOOTSTRAP_BROKERS]
    return ",".join(f"{broker.host}:{broker.port}" for broker in brokers) or "localhost:9092"


def _step(step: PlannedStep, bootstrap: str) -> Step:
    return Step(
        sentence=sentence_of(step),
        refusal=f"{step.error.name}: {step.message}" if step.error else "",
        tables=tuple(
            before_and_after(
                f"{effect.kind.capitalize()}: {effect.name or 'all brokers'}",
                {
                    key: (effect.before.get(key), effect.after.get(key))
                    for key in dict.fromkeys((*effect.after, *effect.before))
                },
            )
            for effect in step.effects
        ),
        consequences=tuple(Consequence(sentence=each) for each in step.implications),
        commands=of_step(step, bootstrap=bootstrap),
    )


def _deny(author: Author, plan: MetadataPlan) -> str:
    made = _read(plan)
    return denied(author.rights, made.cluster_id, _actions_of(made))


def _can_apply(plan: MetadataPlan) -> bool:
    made = _read(plan)
    return not made.is_refused and not made.changes_nothing


def _apply(author: Author, plan: MetadataPlan) -> Outcome:
    made = _read(plan)
    try:
        outcomes = services.apply_plan(
            cluster_id=made.cluster_id,
            proposals=made.proposals,
            origin=author.origin,
            now_ms=author.now_ms,
        )
    except Error as error:
        raise CannotPlan(
            "The result of the plan is unknown: the database did not answer",
            "Send the same plan again by reloading this page: it is done once at most.",
            status=UNAVAILABLE,
        ) from error
    ignored = {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED}
    for outcome in outcomes:
        if outcome.error is ErrorCode.INVALID_UPDATE_VERSION:
            return previews.report_changes("cluster", [outcome.message])
        if outcome.error not in ignored:
            why = Notice(mark="bad", word=outcome.error.name, text=outcome.message)
            nothing = "Nothing of this plan was done."
            return Outcome(
                title="The plan was refused", notices=(why, previews.make_refusal(nothing))
            )
    return Outcome(
        done=f"The plan was applied, as metadata {outcomes[-1].version}.",
        address=_after(made.cluster_id, _actions_of(made)),
    )


def _again(author: Author, plan: MetadataPlan) -> MetadataPlan:
    """Plan the same actions on the present cluster, where automatic choices are made again."""
    made = _read(plan)
    # The notes on current users of the topic are left out: they are of the first preview.
    return plan_of(author, made.cluster_id, _actions_of(made))


def _before(cluster_id: str, actions: Sequence[Action]) -> str:
    """Return the page that shows the state before the plan."""
    match actions:
        case [CreateTopic()]:
            return f"{reverse('console:topics')}?cluster={cluster_id}"
        case [DeleteTopic(name=str(name))]:
            return f"{reverse('console:topic', args=[name])}?cluster={cluster_id}"
        case _:
            return _after(cluster_id, actions)


def _after(cluster_id: str, actions: Sequence[Action]) -> str:
    """Return the page that shows the result. Derived only from the plan, not from other input."""
    view, arguments, tab = "console:overview", [], ""
    match actions:
        case [CreateTopic(name=name)]:
            view, arguments = "console:topic", [name]
        case [CreatePartitions(name=name)]:
            view, arguments, tab = "console:topic", [name], "tab=partitions&"
        case [AlterConfigs(resource_type=ResourceType.TOPIC, name=name)]:
            view, arguments, tab = "console:topic", [name], "tab=configs&"
        case [DeleteTopic()]:
            view = "console:topics"
        case _:
            pass
    return f"{reverse(view, args=arguments)}?{tab}cluster={cluster_id}"


KIND: Final = Kind(
    name="metadata",
    subject="cluster",
    plan=MetadataPlan,
    preview=_preview,
    deny=_deny,
    can_apply=_can_apply,
    apply=_apply,
    again=_again,
)
