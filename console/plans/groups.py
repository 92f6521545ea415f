"""Adapts plans of changes of groups: 500 partitions on a page, with totals over all."""

import shlex
from itertools import islice
from typing import Final

from django.db import Error

from brokers.controlplane.services import GroupChangeKind
from console import group_names
from console.group_changes import applying
from console.group_changes.applying import Result
from console.group_changes.desk import bootstrap_of, desk
from console.group_changes.plans import GroupPlan, PlannedStep
from console.plans import previews
from console.plans.commands import joined
from console.plans.kind import Author, CannotPlan, Kind, NotApplied
from console.plans.previews import (
    UNAVAILABLE,
    Cell,
    Column,
    Consequence,
    Fact,
    Link,
    Listing,
    Notice,
    Outcome,
    Pages,
    Preview,
    Step,
    Table,
)
from console.queries import live
from console.queries.failures import sentence_of, status_of
from console.queries.frame import frame
from console.queries.links import link
from console.queries.reading import moment
from gateway.access.operations import Kind as ResourceKind
from gateway.access.operations import Operation
from gateway.access.turns import TooBusy
from gateway.kafka import shown_names
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.offset_plan import csv_of

PAGE_ROWS: Final = 500
# A call that fails midway refuses thousands, all for the same reason.
NAMED_REFUSALS: Final = 100
# Users would not paste a longer command; a file names the partitions instead.
MAX_COMMAND_CHARS: Final = 20_000
# Brokers are asked for the offsets of each partition.
FASTER: Final = "fewer topics take less time"
TITLES: Final = {
    GroupChangeKind.RESET_OFFSETS: "Reset offsets of",
    GroupChangeKind.DELETE_OFFSETS: "Delete offsets of",
    GroupChangeKind.DELETE_GROUP: "Delete group",
}
RIGHTS: Final = {
    GroupChangeKind.RESET_OFFSETS: Operation.RESET_GROUPS,
    GroupChangeKind.DELETE_OFFSETS: Operation.RESET_GROUPS,
    GroupChangeKind.DELETE_GROUP: Operation.DELETE_GROUPS,
}
FORMS: Final = {
    GroupChangeKind.RESET_OFFSETS: "reset-offsets",
    GroupChangeKind.DELETE_OFFSETS: "delete-offsets",
    GroupChangeKind.DELETE_GROUP: "delete-group",
}
DONE: Final = {
    GroupChangeKind.RESET_OFFSETS: "Offsets of group {group} were reset in {count}.",
    GroupChangeKind.DELETE_OFFSETS: "Offsets of group {group} were deleted in {count}.",
    GroupChangeKind.DELETE_GROUP: "Group {group} was deleted.",
}
UNSEEN: Final = (
    "The collector has not seen the change yet: the lag below may still be the one before it. This"
    " page shows the new one as soon as it comes."
)
TOO_LONG: Final = "The command would be too long: use the CSV file with --from-file."
COLUMNS: Final = (
    Column(title="Topic", css="long"),
    Column(title="Partition", css="num"),
    Column(title="Committed", css="num mono"),
    Column(title="After", css="num mono"),
    Column(title="Difference", unit="offsets"),
)
# Only a reset depends on what a partition holds.
OF_RESET: Final = (
    Column(title="First offset", css="num mono"),
    Column(title="End", css="num mono"),
    Column(title="Why not as asked", css="long"),
)


def form_address(plan: GroupPlan) -> str:
    """Return the address of the form, filled in with what was asked for."""
    more = {**plan.asked, **({"topic": plan.topic} if plan.topic else {})}
    return group_names.link(plan.cluster_id, plan.group, FORMS[plan.kind], more=more)


def commands_of(plan: GroupPlan, *, bootstrap: str) -> tuple[str, ...]:
    """Return the commands for the change of a group; none if they would be too long."""
    match plan.kind:
        case GroupChangeKind.RESET_OFFSETS:
            verb, options = "reset", [*plan.targets, *plan.options, "--execute"]
            kafkas = ["--reset-offsets", *options]
        case GroupChangeKind.DELETE_OFFSETS:
            verb, options = "delete-offsets", ["--topic", plan.topic]
            kafkas = ["--delete-offsets", *options]
        case GroupChangeKind.DELETE_GROUP:
            verb, options = "delete", []
            kafkas = ["--delete"]
    script = f"kafka-consumer-groups.sh --bootstrap-server {shlex.quote(bootstrap)} --group"
    commands = (
        joined(f"./samsa groups {verb}", plan.group, options),
        joined(script, plan.group, kafkas),
    )
    return commands if max(map(len, commands)) <= MAX_COMMAND_CHARS else ()


def _preview(author: Author, plan: GroupPlan, number: int) -> Preview:
    """Return one page of a plan; a number beyond the last page returns the last one."""
    name = shown_names.shown(plan.group)
    is_reset = plan.kind is GroupChangeKind.RESET_OFFSETS
    change = Link(text="Change it", address=form_address(plan)) if is_reset else None
    pages = _pages(plan, number)
    return Preview(
        frame=frame(plan.cluster_id, author.rights),
        section="groups",
        title=f"{TITLES[plan.kind]} {name}",
        note="read from the brokers",
        made_at=moment(plan.made_at_ms / 1000),
        crumbs=(
            Link(text="Groups", address=link("groups", plan.cluster_id)),
            Link(text=name, address=group_names.link(plan.cluster_id, plan.group)),
        ),
        notices=tuple(_notices(plan)),
        steps=(_step(plan, pages),),
        pages=pages,
        has_file=is_reset,
        is_risk=not is_reset,
        change=change,
        cancel=group_names.link(plan.cluster_id, plan.group),
    )


def _notices(plan: GroupPlan) -> list[Notice]:
    if plan.refusal:
        return [previews.make_refusal(plan.refusal)]
    return [previews.no_change()] if plan.changes_nothing else []


def _pages(plan: GroupPlan, number: int) -> Pages:
    count = max(1, -(-len(plan.steps) // PAGE_ROWS))
    number = min(max(number, 1), count)
    return Pages(
        number=number,
        count=count,
        first=(number - 1) * PAGE_ROWS + 1,
        last=min(number * PAGE_ROWS, len(plan.steps)),
        rows=len(plan.steps),
    )


def _step(plan: GroupPlan, pages: Pages) -> Step:
    is_reset = plan.kind is GroupChangeKind.RESET_OFFSETS
    is_deletion = plan.kind is GroupChangeKind.DELETE_GROUP
    left_out = Listing(
        title="Not shown here" if is_deletion else "Not touched by this plan",
        items=tuple((each.what, each.reason) for each in plan.left_out),
    )
    table = Table(
        title="Before and after",
        columns=(*COLUMNS, *(OF_RESET if is_reset else ())),
        rows=tuple(_row(step, is_reset) for step in plan.steps[pages.first - 1 : pages.last]),
        empty="The group has committed nothing that you may view",
    )
    commands = commands_of(plan, bootstrap=bootstrap_of(plan.cluster_id))
    return Step(
        sentence="" if plan.changes_nothing else _sentence(plan),
        facts=tuple(_facts(plan)),
        lists=(left_out,) if plan.left_out else (),
        tables=(table,),
        consequences=tuple(Consequence(sentence=each) for each in _follows(plan)),
        commands=commands,
        of_commands="" if commands else TOO_LONG,
    )


def _facts(plan: GroupPlan) -> list[Fact]:
    topics = len({step.place.topic for step in plan.steps})
    of = f"{plan.changes:,} of {len(plan.steps):,}, {topics:,} topic{'' if topics == 1 else 's'}"
    facts = [Fact(name="Group", value=plan.in_words.removeprefix("is "))]
    if plan.topic:
        facts.append(Fact(name="Topic", value=plan.topic))
    facts.append(Fact(name="Partitions changed", value=of))
    if plan.kind is GroupChangeKind.RESET_OFFSETS:
        skipped = sum(step.skipped for step in plan.steps)
        again = sum(step.read_again for step in plan.steps)
        facts.append(Fact(name="Offsets skipped", value=f"{skipped:,}"))
        facts.append(Fact(name="Offsets read again", value=f"{again:,}"))
    return facts


def _row(step: PlannedStep, is_reset: bool) -> tuple[Cell, ...]:
    is_change = step.before != step.after
    cells = (
        Cell(text=step.place.topic),
        Cell(text=str(step.place.partition)),
        _offset(step.before),
        _offset(step.after, is_strong=is_change),
        Cell(text=_difference(step), is_faint=not is_change),
    )
    if not is_reset:
        return cells
    return (*cells, Cell(text=str(step.start)), Cell(text=str(step.end)), Cell(text=step.note))


def _offset(offset: int | None, *, is_strong: bool = False) -> Cell:
    if offset is None:
        return Cell(text="none", is_faint=True)
    return Cell(text=str(offset), is_strong=is_strong)


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
                    " compaction has removed count as well, so there may be fewer records."
                ),
            ]
        case GroupChangeKind.DELETE_OFFSETS:
            return [
                (
                    f"A consumer of the group that reads topic {plan.topic} later begins where its"
                    " auto.offset.reset says: at the end, unless it was set."
                ),
                "The audit keeps the previous offsets; a reset to them undoes this change.",
            ]
        case GroupChangeKind.DELETE_GROUP:
            return [
                (
                    "The group is deleted with its committed offsets. Consumers that use its "
                    "name later create a new one, and begin where their auto.offset.reset says: "
                    "at the end, unless it was set."
                ),
                "It cannot be undone. The audit keeps the previous offsets.",
            ]


def _deny(author: Author, plan: GroupPlan) -> str:
    cluster = plan.cluster_id
    if reason := author.lacks(RIGHTS[plan.kind], cluster, ResourceKind.GROUP, plan.group):
        return reason
    for topic in dict.fromkeys(step.place.topic for step in plan.steps):
        if reason := author.lacks(Operation.VIEW, cluster, ResourceKind.TOPIC, topic):
            return reason
    return ""


def _apply(author: Author, plan: GroupPlan) -> Outcome:
    try:
        with desk(plan.cluster_id) as at:
            result = applying.apply(at, plan, origin=author.origin, now_ms=author.now_ms)
    except (TooBusy, KafkaFailure) as error:
        words = f"Nothing was done. {sentence_of(error, faster=FASTER)}"
        raise NotApplied(words, status=status_of(error)) from error
    except Error as error:
        raise CannotPlan(
            "Nothing was done: the database did not answer",
            "A change is recorded in the audit first, and that failed. See whether the"
            " database runs, then preview the change again.",
            status=UNAVAILABLE,
        ) from error
    if result.moved:
        return previews.report_changes("group", (f"{each}." for each in result.moved))
    if result.failure or result.refused or not result.is_noted:
        return _outcome(plan, result)
    return Outcome(done=_describe(plan, result), address=_after(plan))


def _describe(plan: GroupPlan, result: Result) -> str:
    name = shown_names.shown(plan.group)
    if result.is_unchanged:
        return f"Group {name} is already as the plan would make it, so nothing was done."
    count = f"{plan.changes} partition{'' if plan.changes == 1 else 's'}"
    done = DONE[plan.kind].format(group=name, count=count)
    # Otherwise the next page would show the former lag as the current one.
    return done if _is_seen(plan) else f"{done} {UNSEEN}"


def _is_seen(plan: GroupPlan) -> bool:
    if plan.kind is GroupChangeKind.DELETE_GROUP:
        return live.wait_for_deletion(plan.cluster_id, plan.group)
    step = next(each for each in plan.steps if each.before != each.after)
    return live.wait_for_offset(plan.cluster_id, plan.group, step.place, step.after)


def _after(plan: GroupPlan) -> str:
    """Return the link to the group's page, or to the list if the group was deleted."""
    if plan.kind is GroupChangeKind.DELETE_GROUP:
        return link("groups", plan.cluster_id)
    return group_names.link(plan.cluster_id, plan.group)


def _outcome(plan: GroupPlan, result: Result) -> Outcome:
    """Return the outcome of a change that was begun, and not completed or not audited."""
    unwritten = [] if result.is_noted else [_unwritten(result)]
    if result.failure is not None:
        title = "The brokers refused the plan"
        rest = f"Nothing was changed. {_upper(result.failure.next_step)}."
        if result.is_unknown:
            title = "The result of the plan is unknown"
            rest = "Preview again: the committed offsets then show whether it was applied."
        text = f"{result.failure.message}. {rest}"
        notice = Notice(mark="bad", word=result.failure.name, text=text)
        status = UNAVAILABLE if result.is_unknown else previews.CONFLICT
        return Outcome(title=title, notices=(notice, *unwritten), status=status)
    if result.refused:
        return _partly(plan, result, unwritten)
    return Outcome(title="The plan was applied", notices=tuple(unwritten), status=200)


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _partly(plan: GroupPlan, result: Result, unwritten: list[Notice]) -> Outcome:
    count, changed = len(result.refused), plan.changes - len(result.refused)
    text = f"{count:,} of {len(plan.steps):,} partitions were refused"
    if result.is_partly_unknown:
        text += ", or got no answer, so their result is unknown: a preview shows it"
    text += f"; {changed:,} {'was' if changed == 1 else 'were'} changed."
    unnamed = count - NAMED_REFUSALS
    listing = Listing(
        title="Refused or without an answer" if result.is_partly_unknown else "Refused",
        items=tuple(
            (str(place), f"{why.name}: {why.message}")
            for place, why in islice(result.refused.items(), NAMED_REFUSALS)
        ),
        more=f"and {unnamed:,} more partitions" if unnamed > 0 else "",
    )
    return Outcome(
        title="Part of the plan was done" if changed else "The brokers refused the plan",
        notices=(previews.make_refusal(text), *unwritten),
        lists=(listing,),
    )


def _unwritten(result: Result) -> Notice:
    return Notice(
        mark="warn",
        word="Not written down",
        text="The database did not take the outcome. The list of changes shows the start, as entry"
        f" {result.entry}, but not the outcome.",
    )


def _file(plan: GroupPlan) -> str:
    """Return the offsets of a plan in the CSV format of Kafka's tool."""
    return csv_of([(step.place, step.after) for step in plan.steps if step.after is not None])


KIND: Final = Kind(
    name="group",
    subject="group",
    plan=GroupPlan,
    preview=_preview,
    deny=_deny,
    can_apply=lambda plan: plan.can_be_applied,
    apply=_apply,
    again=lambda _author, plan: form_address(plan),
    confirms=lambda plan: plan.group if plan.kind is GroupChangeKind.DELETE_GROUP else "",
    file=_file,
)
