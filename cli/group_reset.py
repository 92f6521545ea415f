"""`./samsa groups reset`: sets the offsets of a group. Shows the plan; --execute carries it out.

The options are those of Kafka's own tool. --execute carries out exactly the shown plan.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

import click

from cli.bootstrap import reaches_cluster
from cli.output import Column, Form, output_option, plain, say, show_json, show_table
from gateway import moments
from gateway.kafka import offset_plan
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, Kind, failure
from gateway.kafka.groups import Groups
from gateway.kafka.offset_plan import (
    MAX_FILE_BYTES,
    MAX_OFFSET,
    Goal,
    GoalKind,
    Known,
    PlanError,
    Step,
    csv_of,
    parse_csv,
    parse_duration,
    plan_of,
)
from gateway.kafka.values import BEGINNING, END, GroupState, Place, Position, PositionKind

# topic: its partitions; none means all
Topics = dict[str, tuple[int, ...]]


def parse_topics(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> Topics:
    """Parse TOPIC and TOPIC:0,1; repeated topics are combined."""
    try:
        return offset_plan.parse_topics(texts)
    except PlanError as error:
        raise click.BadParameter(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The requested goal, and the offsets of each partition if they are from a file."""

    goal: Goal
    file: Mapping[Place, int] | None = None


def goal_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the goal to a command; exactly one of them is required."""
    options = (
        click.option("--to-earliest", is_flag=True, help="Reset to the log start offset."),
        click.option("--to-latest", is_flag=True, help="Reset to the end."),
        click.option(
            "--to-current",
            is_flag=True,
            help="Keep the committed offsets, for example to export them.",
        ),
        click.option(
            "--to-offset",
            type=click.IntRange(0, MAX_OFFSET),
            metavar="N",
            help="Reset to this offset.",
        ),
        click.option(
            "--to-datetime",
            metavar="TIME",
            help="Reset to the first record at or after this time, in UTC unless it names a zone:"
            " 'yesterday 12:00', -1h, 2026-01-31T12:00:00+01:00.",
        ),
        click.option(
            "--by-duration",
            metavar="ISO",
            help="Reset to the first record of a duration before now: PT30M, P7D.",
        ),
        click.option(
            "--shift-by",
            type=click.IntRange(-MAX_OFFSET, MAX_OFFSET),
            metavar="N",
            help="Move forward by N records, or back if N is negative.",
        ),
        click.option(
            "--from-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Reset to the offsets in a CSV file, such as one written by --export.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command(
    "reset",
    short_help="Reset committed offsets (dry run unless --execute).",
    epilog="Example: ./samsa groups reset billing --topic orders --to-earliest --execute",
)
@click.argument("name", metavar="GROUP")
@click.option(
    *("-t", "--topic", "topics"),
    multiple=True,
    callback=parse_topics,
    metavar="TOPIC[:0,1]",
    help="A topic, or some of its partitions; may be repeated.",
)
@click.option(
    "--all-topics", is_flag=True, help="All topics for which the group has committed offsets."
)
@goal_options
@click.option("--execute", is_flag=True, help="Do it.")
@click.option(
    "--dry-run",
    "is_dry_run",
    is_flag=True,
    help="Show the plan and change nothing. This is the default.",
)
@click.option("--export", "is_export", is_flag=True, help="Print topic,partition,offset as CSV.")
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def reset(
    *,
    connection: Connection,
    name: str,
    topics: Topics,
    all_topics: bool,
    execute: bool,
    is_dry_run: bool,
    is_export: bool,
    form: Form,
    **goals: object,
) -> None:
    """Reset the committed offsets of a group without members (dry run unless --execute)."""
    if execute and is_dry_run:
        raise click.UsageError("--execute and --dry-run exclude each other: give one of them")
    if is_export and form is Form.JSON:
        raise click.UsageError("--export prints CSV: omit --output json")
    asked = asked_of(goals, name)
    if [bool(topics), all_topics, asked.file is not None].count(True) != 1:
        raise click.UsageError("give exactly one of --topic, --all-topics and --from-file")
    client = Groups(connection)
    require_inactive(client, name)
    committed = client.offsets([name])[name]
    admin = Admin(connection)
    places = places_of(admin, name, committed, topics, asked)
    try:
        plan = plan_of(asked.goal, known_of(admin, places, committed, asked))
    except PlanError as error:
        raise failure("RESOURCE_NOT_FOUND", f"group {name}", str(error)) from error
    if execute:
        client.commit(name, {step.place: step.after for step in plan})
    show_plan(name, plan, form=form, is_dry_run=not execute, is_export=is_export)


def asked_of(
    goals: Mapping[str, object], group: str, *, now_s: Callable[[], float] = time.time
) -> Asked:
    """Return the goal of the only given option."""
    given = {
        name: value for name, value in goals.items() if value is not None and value is not False
    }
    if len(given) != 1:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in (given or goals))
        raise click.UsageError(f"give exactly one target: {listed}")
    [(name, value)] = given.items()
    try:
        match name, value:
            case "to_offset", int():
                return Asked(goal=Goal(kind=GoalKind.OFFSET, value=value))
            case "shift_by", int():
                return Asked(goal=Goal(kind=GoalKind.SHIFT, value=value))
            case "to_datetime", str():
                now = moments.at(int(now_s() * 1000))
                time_ms = moments.milliseconds(value, zone=UTC, now=now)
                return Asked(goal=Goal(kind=GoalKind.TIME, value=time_ms))
            case "by_duration", str():
                since_ms = max(0, int(now_s() * 1000) - parse_duration(value))
                return Asked(goal=Goal(kind=GoalKind.TIME, value=since_ms))
            case "from_file", Path():
                return Asked(goal=Goal(kind=GoalKind.FILE), file=parse_csv(read(value), group))
            case _:
                return Asked(goal=Goal(kind=GoalKind(name.removeprefix("to_"))))
    except PlanError as error:
        raise click.UsageError(f"--{name.replace('_', '-')}: {error}") from error
    except moments.NotAMoment as error:
        raise click.UsageError(f"--to-datetime: {error.message}: {error.next_step}") from error


def read(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise PlanError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(f"{path} is not UTF-8 text: {error.reason}") from error


def require_inactive(client: Groups, name: str) -> None:
    """Refuse a group with active members, which would ignore committed offsets."""
    try:
        [group] = client.describe([name])
    except KafkaFailure as failed:
        # Offsets may be set for a group before its first member joins.
        if failed.kind is Kind.NOT_FOUND:
            return
        raise
    if group.state is not GroupState.EMPTY:
        members = f"{len(group.members)} member{'' if len(group.members) == 1 else 's'}"
        words = f"it is {group.state.value} with {members}; only a group without any can be reset"
        raise failure("NON_EMPTY_GROUP", f"group {name}", words)


def places_of(
    admin: Admin, group: str, committed: Mapping[Place, int], topics: Topics, asked: Asked
) -> list[Place]:
    """Return the requested partitions, all of which exist."""
    if asked.file is not None:
        wanted: Iterable[Place] = asked.file
    elif topics:
        return [
            place for topic, indexes in topics.items() for place in existing(admin, topic, indexes)
        ]
    elif committed:
        wanted = committed
    else:
        raise failure("RESOURCE_NOT_FOUND", f"group {group}", "nothing is committed")
    by_topic: dict[str, list[int]] = {}
    for place in sorted(wanted):
        by_topic.setdefault(place.topic, []).append(place.partition)
    return [
        place
        for topic, indexes in by_topic.items()
        for place in existing(admin, topic, tuple(indexes))
    ]


def existing(admin: Admin, topic: str, indexes: tuple[int, ...]) -> list[Place]:
    """Return the given partitions of a topic, or all of them."""
    [found] = admin.describe([topic])
    known = [partition.index for partition in found.partitions]
    for index in indexes:
        if index not in known:
            raise failure("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic}, partition {index}")
    return [Place(topic=topic, partition=index) for index in indexes or known]


def known_of(
    admin: Admin, places: Iterable[Place], committed: Mapping[Place, int], asked: Asked
) -> list[Known]:
    """Ask for the bounds of the partitions, and for the other facts that the goal needs."""
    by_topic: dict[str, list[int]] = {}
    for place in places:
        by_topic.setdefault(place.topic, []).append(place.partition)
    known = []
    for topic, indexes in by_topic.items():
        first = admin.offsets(topic, indexes, BEGINNING)
        end = admin.offsets(topic, indexes, END)
        found: Mapping[int, int] = {}
        if asked.goal.kind is GoalKind.TIME:
            at = Position(kind=PositionKind.TIME, value=asked.goal.value)
            found = admin.offsets(topic, indexes, at)
        elif asked.file is not None:
            found = {i: asked.file[Place(topic=topic, partition=i)] for i in indexes}
        known += [
            Known(
                place=(place := Place(topic=topic, partition=index)),
                committed=committed.get(place),
                start=first[index],
                end=end[index],
                found=found.get(index),
            )
            for index in indexes
        ]
    return known


def committed_places(group: str, committed: Mapping[Place, int], topics: Topics) -> list[Place]:
    """Return the committed partitions of topics; fail if a given one is not committed."""
    places = []
    for topic, indexes in topics.items():
        there = sorted(place for place in committed if place.topic == topic)
        named = [Place(topic=topic, partition=index) for index in indexes]
        missing = [str(place) for place in named if place not in committed]
        if missing or not there:
            where = missing[0] if missing else f"topic {topic}"
            raise failure("RESOURCE_NOT_FOUND", f"group {group}, {where}", "nothing is committed")
        places += named or there
    return places


def show_plan(
    group: str, plan: list[Step], *, form: Form, is_dry_run: bool, is_export: bool
) -> None:
    if is_export:
        click.echo(csv_of((step.place, step.after) for step in plan), nl=False)
        for step in plan:
            if step.note:
                say(plain(f"{step.place}: {step.note}"), to_stderr=True)
    elif form is Form.JSON:
        steps = [step.json() for step in plan]
        show_json({"group": group, "dry_run": is_dry_run, "partitions": steps})
    else:
        say(
            f"Would reset group {plain(group)}; add --execute to do it:"
            if is_dry_run
            else f"Reset group {plain(group)}:"
        )
        show_table(
            [
                Column(title="TOPIC"),
                *(
                    Column(title=title, is_number=True)
                    for title in ("PARTITION", "BEFORE", "AFTER", "FIRST OFFSET", "END OFFSET")
                ),
                Column(title="NOTE"),
            ],
            [
                (
                    *(step.place.topic, step.place.partition, step.before, step.after),
                    *(step.start, step.end, step.note),
                )
                for step in plan
            ],
        )
