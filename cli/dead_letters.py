"""`./samsa connectors dead-letters`, `redrive`: show the records that a sink could not write, and
send them again.

A run sends exactly what its plan showed. Only Samsa serves these; Kafka Connect has none.
"""

import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from cli.connect_client import NOT_FOUND, Connect, Refused, reaches_connect
from cli.output import Column, Form, output_option, plain, say, show_json, show_table
from cli.topics import counted

OURS: Final = ("samsa", "connectors")
# How often a waiting command polls its run.
LOOK_S: Final = 0.5
RANGE: Final = re.compile(r"(\d{1,9}):(\d{0,18})-(\d{0,18})")
PLACE: Final = re.compile(r"(\d{1,9})/(\d{1,18})")
# Length of a message in a line of a table.
SHOWN_CHARS: Final = 60
RUNNING: Final = "RUNNING"
# Kafka Connect's answer for an unknown path.
NO_ADDRESS: Final = "HTTP 404 Not Found"
FAILED: Final = "FAILED"
name_argument = click.argument("name", metavar="CONNECTOR")
filters = (
    click.option(
        "--exception",
        default="",
        metavar="CLASS",
        help="Only dead letters with this exception class.",
    ),
    click.option(
        "--stage", default="", help="Only dead letters of this stage, such as VALUE_CONVERTER."
    ),
    click.option("--cause", default="", metavar="ID", help="Only dead letters of this cause."),
)


@click.command(
    "dead-letters",
    short_help="List records that a sink could not write, with the cause.",
    epilog="Example: ./samsa connectors dead-letters lake --causes",
)
@name_argument
@filters[0]
@filters[1]
@filters[2]
@click.option(
    "--causes", "by_cause", is_flag=True, help="List the causes, with their number of dead letters."
)
@click.option(
    "--before",
    default="",
    metavar="PLACES",
    help="Show older dead letters: the positions that the previous page printed.",
)
@output_option(Form.TABLE, Form.JSON)
@reaches_connect
def dead_letters(
    *,
    connect: Connect,
    name: str,
    exception: str,
    stage: str,
    cause: str,
    by_cause: bool,
    before: str,
    form: Form,
) -> None:
    """List the newest dead letters of a sink, newest first, or their causes."""
    query = {"exception": exception, "stage": stage, "cause": cause, "before": before}
    if by_cause:
        if any(query.values()):
            raise click.UsageError("--causes counts all dead letters: omit the other options")
        _show_causes(_ask(connect, "GET", *OURS, name, "dead-letters", "causes"), form)
        return
    found = _ask(connect, "GET", *OURS, name, "dead-letters", **query)
    if form is Form.JSON:
        show_json(found)
        return
    if not found["letters"]:
        say(_nothing(found))
    else:
        titles = ("LETTER", "FROM", "STAGE", "ERROR", "MESSAGE")
        show_table(
            [Column(title=title) for title in titles], [_row(one) for one in found["letters"]]
        )
    if found["older"]:
        say(f"For older dead letters, add --before {found['older']}", to_stderr=True)


@click.command(
    "redrive",
    short_help="Send dead letters of a sink again.",
    epilog="Example: ./samsa connectors redrive lake --cause 3f9a01c2d4e5 --dry-run",
)
@name_argument
@click.option(
    "--to",
    "destination",
    type=click.Choice(["retry", "origin"]),
    default="retry",
    show_default=True,
    help="retry: a topic that only this connector reads. origin: the topic the record came from.",
)
@click.option(
    "--offsets",
    "ranges",
    multiple=True,
    metavar="PARTITION:FROM-UNTIL",
    help="Only these offsets of the dead letter topic: 0:17-40 is partition 0, offsets 17 to 39. "
    "May be repeated.",
)
@click.option(
    "--letter", "places", multiple=True, metavar="PARTITION/OFFSET", help="May be repeated."
)
@filters[0]
@filters[1]
@filters[2]
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the end of the run.")
@click.option("-y", "--yes", is_flag=True, help="Send without asking.")
@output_option(Form.TABLE, Form.JSON)
@reaches_connect
def redrive(  # noqa: PLR0913 - one for each option
    *,
    connect: Connect,
    name: str,
    destination: str,
    ranges: Sequence[str],
    places: Sequence[str],
    exception: str,
    stage: str,
    cause: str,
    dry_run: bool,
    no_wait: bool,
    yes: bool,
    form: Form,
) -> None:
    """Send dead letters of a sink again in one run. Shows the plan and asks for confirmation."""
    asked = {
        "destination": destination,
        "offsets": [_range(text) for text in ranges],
        "letters": [_place(text) for text in places],
        "exception": exception,
        "stage": stage,
        "cause": cause,
    }
    plan = _ask(connect, "POST", *OURS, name, "redrives", "plan", body=asked)
    if dry_run or not (plan["letters"] or plan["uncounted"]):
        _show_plan(plan, form)
        return
    if not yes:
        _agree(plan)
    body = {"seal": plan["seal"]}
    run = _ask(connect, "POST", *OURS, name, "redrives", body=body)
    _finish(connect, run, is_waiting=not no_wait, form=form)


@click.command(
    "redrives",
    short_help="List the redrive runs of a connector; stop or resume one.",
    epilog="Example: ./samsa connectors redrives lake",
)
@name_argument
@click.option("--stop", type=click.IntRange(min=1), metavar="RUN", help="Stop this run.")
@click.option("--resume", type=click.IntRange(min=1), metavar="RUN", help="Resume this run.")
@output_option(Form.TABLE, Form.JSON)
@reaches_connect
def redrives(
    *, connect: Connect, name: str, stop: int | None, resume: int | None, form: Form
) -> None:
    """List the redrive runs of a connector, newest first, or stop or resume one."""
    if stop is not None and resume is not None:
        raise click.UsageError("--stop and --resume exclude each other: give one of them")
    if stop is not None or resume is not None:
        verb = "stop" if stop is not None else "resume"
        run = _ask(connect, "PUT", *OURS, name, "redrives", str(stop or resume), verb)
        _finish(connect, run, is_waiting=False, form=form)
        return
    found = _ask(connect, "GET", *OURS, name, "redrives")
    if form is Form.JSON:
        show_json(found)
    elif not found:
        say("No runs.")
    else:
        show_table(
            [Column(title=title) for title in ("RUN", "TO", "STATE", "SENT", "BEGAN", "REASON")],
            [_run_row(one) for one in found],
        )


def _agree(plan: Mapping[str, Any]) -> None:
    """Ask for confirmation; ask for the name too if other groups read the records again."""
    if not sys.stdin.isatty():
        raise click.UsageError("redrive asks for confirmation, and there is no terminal: add --yes")
    for line in _plan_lines(plan):
        say(plain(line), to_stderr=True)
    if plan["destination"] == "retry":
        least = "at least " if plan["uncounted"] else ""
        click.confirm(
            f"Send {least}{counted(plan['letters'], 'letter')} again?", abort=True, err=True
        )
        return
    typed = click.prompt(
        "Other consumers may read these records again. Type the connector's name to confirm",
        err=True,
    )
    if typed != plan["connector"]:
        raise click.Abort


def _ask(connect: Connect, method: str, *parts: str, body: object = None, **query: str) -> Any:  # noqa: ANN401 - as JSON has it
    """Call a path below `samsa/`, which Kafka Connect itself does not serve."""
    try:
        return connect.ask(method, *parts, body=body, **query)
    except Refused as refused:
        if refused.status != NOT_FOUND or NO_ADDRESS not in refused.message:
            raise
        raise Refused(
            f"{connect.url} does not serve dead letters: only Samsa's Connect API lists them and "
            "sends them again. Name its address with --connect"
        ) from None


def _finish(connect: Connect, run: Mapping[str, Any], *, is_waiting: bool, form: Form) -> None:
    """Wait until a run ends, and print its result."""
    shown = -1
    while is_waiting and run["state"] == RUNNING:
        if form is Form.TABLE and run["sent"] != shown:
            shown = run["sent"]
            say(f"run {run['run']}: {_sent(run)} sent", to_stderr=True)
        time.sleep(LOOK_S)
        run = _ask(connect, "GET", *OURS, run["connector"], "redrives", str(run["run"]))
    if form is Form.JSON:
        show_json(run)
    else:
        say(
            f"run {run['run']} of connector {plain(run['connector'])}: {run['state']},"
            f" {_sent(run)} sent"
        )
        for one in run["unsent"]:
            say(f"  not sent: {counted(one['letters'], 'letter')}, {plain(one['reason'])}")
    if run["state"] == FAILED and is_waiting:
        raise Refused(str(run["reason"]))


def _show_plan(plan: Mapping[str, Any], form: Form) -> None:
    if form is Form.JSON:
        show_json({key: value for key, value in plan.items() if key != "seal"})
        return
    for line in _plan_lines(plan):
        say(plain(line))


def _plan_lines(plan: Mapping[str, Any]) -> list[str]:
    """Describe a plan, one sentence for each effect."""
    least = "at least " if plan["uncounted"] else ""
    lines = [
        f"{least}{counted(plan['letters'], 'letter')} of topic {plan['from']} would be sent again"
    ]
    if plan["cause"]:
        lines.append(f"of the cause: {plan['cause']}")
    for topic, count in sorted(plan["targets"].items()):
        made = ", which is created first" if plan["creates_topic"] else ""
        lines.append(f"to topic {topic}{made}: {count}")
    lines += [f"not sent: {one['letters']}, {one['reason']}" for one in plan["unsent"]]
    if plan["uncounted"]:
        lines.append(
            f"{plan['uncounted']} further dead letters were not counted, to answer in time: the "
            "run checks each of them too"
        )
    if plan["caution"]:
        lines.append(f"note: {plan['caution']}")
    for group in plan["groups"]:
        lines.append(
            f"group {group['group']} reads them again ({counted(group['members'], 'member')},"
            f" {counted(group['lag'], 'record')} behind)"
        )
    if plan["hidden_groups"]:
        lines.append(
            f"{counted(plan['hidden_groups'], 'group')} that you may not read will read "
            "them again too"
        )
    if plan["denied"]:
        lines.append(f"{plan['denied']}, so you cannot start it")
    return lines


def _range(text: str) -> dict[str, int]:
    found = RANGE.fullmatch(text)
    if found is None:
        raise click.UsageError(
            f"{text!r} is not a range: give PARTITION:FROM-UNTIL, such as 0:17-40"
        )
    partition, start, until = found.groups()
    asked = {"partition": int(partition), "from": int(start or 0)}
    return asked | ({"until": int(until)} if until else {})


def _place(text: str) -> dict[str, int]:
    found = PLACE.fullmatch(text)
    if found is None:
        raise click.UsageError(
            f"{text!r} is not a dead letter: give PARTITION/OFFSET, such as 0/17"
        )
    return {"partition": int(found[1]), "offset": int(found[2])}


def _row(one: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    place = f"{one['topic']} {one['topic_partition']}/{one['topic_offset']}" if one["topic"] else ""
    error = one["exception"].rpartition(".")[2]
    message = plain(one["message"].partition("\n")[0])[:SHOWN_CHARS]
    return (
        f"{one['partition']}/{one['offset']}",
        plain(place),
        plain(one["stage"]),
        plain(error),
        message,
    )


def _run_row(one: Mapping[str, Any]) -> tuple[str, str, str, str, str, str]:
    sent = _sent(one)
    reason = plain(one["reason"])[:SHOWN_CHARS]
    return str(one["run"]), one["destination"], one["state"], sent, one["began"][:19], reason


def _sent(run: Mapping[str, Any]) -> str:
    return f"{run['sent']} of {run['letters']}" if run["counted_all"] else str(run["sent"])


def _show_causes(found: Mapping[str, Any], form: Form) -> None:
    if form is Form.JSON:
        show_json(found)
        return
    if not found["causes"]:
        say(_nothing({**found, "looked": found["counted"]}))
        return
    show_table(
        [
            *(Column(title="CAUSE"), Column(title="LETTERS", is_number=True)),
            *(Column(title=title) for title in ("STAGE", "ERROR", "WHAT IT SAYS")),
        ],
        [
            (
                *(one["cause"], one["letters"], plain(one["stage"])),
                *(plain(one["exception"].rpartition(".")[2]), plain(one["text"])),
            )
            for one in found["causes"]
        ],
    )
    for one in found["causes"]:
        if one["advice"]:
            say(f"{one['cause']}: {plain(one['advice'])}")
    if not found["counted_all"]:
        say(
            f"Counted {found['counted']} of {found['total']} letters, as many as time allowed.",
            to_stderr=True,
        )


def _nothing(found: Mapping[str, Any]) -> str:
    if not found["exists"]:
        return f"Topic {plain(found['topic'])} does not exist: no record has failed so far."
    looked = counted(found["looked"], "letter")
    return f"No letter matches among the newest {looked} of topic {plain(found['topic'])}."
