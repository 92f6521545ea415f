"""Adapts plans of runs that send dead letters again; `connectors` makes and starts them."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from connectors import redrives
from connectors.redrive_plans import RedrivePlan
from connectors.redrives import Asked
from connectors.runtime.letters import Destination
from console import group_names, quantities
from console.plans import previews
from console.plans.kind import Author, Kind, NotApplied
from console.plans.previews import (
    Cell,
    Column,
    Consequence,
    Fact,
    Link,
    Listing,
    Notice,
    Outcome,
    Preview,
    Step,
    Table,
)
from console.queries import dead_letters as query
from console.queries.failures import attempt
from console.queries.frame import frame
from console.queries.links import link
from console.queries.reading import moment
from gateway.kafka import shown_names

OLDER: Final = (
    "They arrive after newer records of the same keys: a sink that replaces rows writes the older"
    " state over the newer one."
)
AGAIN: Final = (
    "A record that fails again becomes a dead letter again; this run does not send it a second"
    " time. The letters are not deleted."
)


def plan_of(author: Author, cluster: str, name: str, asked: Asked) -> RedrivePlan:
    """Return the plan of a run. Raises refusals.NotServed, TooBusy and KafkaFailure."""
    with query.cluster_of(cluster) as wire:
        made = redrives.plan(author.by, cluster, name, asked, wire=wire)
    return replace(made, made_at_ms=author.now_ms)


def _preview(author: Author, plan: RedrivePlan, _number: int) -> Preview:
    name = shown_names.shown(plan.name)
    at_least = "at least " if plan.uncounted else ""
    address = link("dead-letters", plan.cluster, plan.name)
    return Preview(
        frame=frame(plan.cluster, author.rights),
        section="connectors",
        title=f"Send {at_least}{_letters(plan.chosen, 'dead letter')} again",
        note=f"{plan.looked:,} read",
        made_at=moment(plan.made_at_ms / 1000),
        crumbs=(
            Link(text="Connect", address=link("connectors", plan.cluster)),
            Link(text=name, address=link("connector", plan.cluster, plan.name)),
            Link(text="Dead letters", address=address),
        ),
        notices=tuple(_notices(plan)),
        steps=(_step(plan, name),),
        rests_on=(
            f"the config of {name}",
            *(f"topic {topic}" for topic in sorted({plan.dead_topic, *plan.targets})),
            *(("the groups that read the letters again",) if _is_origin(plan) else ()),
        ),
        button="Send again",
        is_risk=_is_origin(plan),
        cancel=address,
    )


def _notices(plan: RedrivePlan) -> Iterator[Notice]:
    if not plan.is_startable:
        text = "None of the chosen letters can be sent again."
        yield Notice(mark="stale", word="Nothing to send", text=text)
    elif plan.caution:
        yield Notice(mark="warn", word="Caution", text=f"{plan.caution}.")


def _step(plan: RedrivePlan, name: str) -> Step:
    stays = tuple((_letters(count), reason.words) for reason, count in plan.unsent.items())
    return Step(
        facts=tuple(_facts(plan)),
        lists=(Listing(title="What stays", items=stays),) if stays else (),
        tables=(_readers(plan),) if _is_origin(plan) else (),
        consequences=tuple(_consequences(plan, name)),
        commands=(_command(plan),),
    )


def _facts(plan: RedrivePlan) -> Iterator[Fact]:
    yield Fact(name="From", value=plan.dead_topic)
    if plan.cause_text:
        yield Fact(name="Cause", value=plan.cause_text)
    more = (
        f"and {plan.uncounted:,} more were not counted, to show this page in time; the run sends"
        " those of them that match"
    )
    yield Fact(
        name="Letters",
        value=f"{plan.chosen:,}, {quantities.size(plan.chosen_bytes)}",
        more=more if plan.uncounted else "",
    )
    at_least = "at least " if plan.uncounted else ""
    created = "; the topic is created first, with one partition" if plan.makes_topic else ""
    for topic, count in plan.targets.items():
        yield Fact(name="To", value=topic, more=f"{at_least}{_letters(count)}{created}")


def _readers(plan: RedrivePlan) -> Table:
    """Return the groups that read the letters again, as any other record of their topics."""
    return Table(
        title="Who reads them again",
        columns=(
            Column(title="Group"),
            Column(title="Members", css="num"),
            Column(title="Lag", css="num", unit="records"),
        ),
        rows=tuple(
            (
                Cell(
                    text=shown_names.shown(group.name),
                    address=group_names.link(plan.cluster, group.name),
                ),
                Cell(text=f"{group.members:,}"),
                Cell(text=f"{group.lag:,}"),
            )
            for group in plan.groups
        ),
        empty="" if plan.hidden_groups else "No other group has read these topics so far",
    )


def _command(plan: RedrivePlan) -> str:
    words = ["./samsa connectors redrive", shlex.quote(plan.name)]
    if plan.destination is Destination.ORIGIN:
        words.append("--to origin")
    if plan.choice.picked:
        words += [f"--letter {at}/{offset}" for at, offset in sorted(plan.choice.picked)]
    else:
        words += [f"--offsets {one.partition}:{one.start}-{one.end}" for one in plan.choice.spans]
    for name in ("exception", "stage", "cause"):
        if text := getattr(plan.choice, name):
            words.append(f"--{name} {shlex.quote(text)}")
    return " ".join(words)


def _consequences(plan: RedrivePlan, name: str) -> Iterator[Consequence]:
    if _is_origin(plan):
        if plan.hidden_groups:
            count = plan.hidden_groups
            groups = f"{count:,} group{'' if count == 1 else 's'}"
            hidden = f"{groups} that you may not see read them again, in addition to those above."
            yield Consequence(sentence=hidden)
        yield Consequence(sentence="Consumers without a group read them again too.")
        yield Consequence(
            sentence="Each record is written again, unchanged, to the partition it was first read"
            f" from; {name} reads it there like any other."
        )
    else:
        yield Consequence(
            sentence=f"Only {name} reads its retry topic, in addition to its other topics; no other"
            " consumer reads these records again."
        )
    yield Consequence(sentence=OLDER)
    yield Consequence(sentence=AGAIN)


def _apply(author: Author, plan: RedrivePlan) -> Outcome:
    def start() -> Outcome:
        with query.cluster_of(plan.cluster, user=author.name) as wire:
            run = redrives.start(author.by, plan, wire=wire)
        return Outcome(
            done=f"Started run {run.id}. Letters to send again: {run.chosen}.",
            address=link("redrives", plan.cluster, plan.name),
        )

    outcome, wrong, status = attempt(start)
    if outcome is None and status == previews.CONFLICT:
        return Outcome(title="Nothing is sent", notices=(previews.make_refusal(wrong),))
    if outcome is None:
        raise NotApplied(f"Nothing is sent. {wrong}", status=status)
    return outcome


def _is_origin(plan: RedrivePlan) -> bool:
    return plan.destination is Destination.ORIGIN


def _letters(count: int, noun: str = "letter") -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


KIND: Final = Kind(
    name="redrive",
    subject="connector",
    plan=RedrivePlan,
    preview=_preview,
    deny=lambda author, plan: redrives.missing_right(author.by, plan),
    can_apply=lambda plan: plan.is_startable,
    apply=_apply,
    again=lambda _author, plan: link("dead-letters", plan.cluster, plan.name),
    confirms=lambda plan: plan.name if _is_origin(plan) else "",
)
