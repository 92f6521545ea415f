"""`./samsa groups`: consumer groups, their lag, and resets of their offsets.

Uses Kafka's protocol like any client. Joins no group, so it never causes a rebalance.
"""

import fnmatch
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import click

from cli.bootstrap import reaches_cluster
from cli.group_reset import committed_places, parse_topics, reset
from cli.group_tables import (
    group_json,
    lag_json,
    member_json,
    rows_of,
    show_group,
    show_lags,
    show_members,
    show_summaries,
    summary_json,
)
from cli.output import Form, output_option, plain, say, show_json, show_names
from cli.topics import counted
from cli.verdicts import verdicts
from gateway.kafka.connection import Connection
from gateway.kafka.groups import Groups
from gateway.kafka.lag import lags
from gateway.kafka.values import GroupState, GroupType

# The interval of --watch. Each round costs the cluster a few requests.
WATCH_SECONDS: Final = 2.0

STATE_WORDS: Final = {state.value.lower(): state for state in GroupState}
TYPE_WORDS: Final = {kind.value: kind for kind in (GroupType.CLASSIC, GroupType.CONSUMER)}
# States by which the client library cannot filter.
UNNAMED: Final = {GroupState.UNKNOWN, GroupState.ASSIGNING, GroupState.RECONCILING}
STATES_TO_ASK: Final = [state.value for state in GroupState if state not in UNNAMED]

yes_option = click.option("-y", "--yes", is_flag=True, help="Delete without asking.")


@click.group(no_args_is_help=True, epilog="Example: ./samsa groups lag billing")
def groups() -> None:
    """List, describe, reset and delete consumer groups, and show their lag."""


groups.add_command(reset)


@groups.command(
    "list",
    short_help="List groups, all or those that match a PATTERN.",
    epilog="Example: ./samsa groups list 'billing-*' --state stable",
)
@click.argument("pattern", required=False)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES_TO_ASK, case_sensitive=False),
    help="Only groups in this state; may be repeated.",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(list(TYPE_WORDS), case_sensitive=False),
    help="Only groups of this type; may be repeated.",
)
@output_option(Form.TABLE, Form.JSON, Form.NAME)
@reaches_cluster
def list_groups(
    *,
    connection: Connection,
    pattern: str | None,
    states: tuple[str, ...],
    types: tuple[str, ...],
    form: Form,
) -> None:
    """List groups, all or those that match a PATTERN such as 'billing-*'."""
    found = [
        group
        for group in Groups(connection).summaries(
            states=[STATE_WORDS[word.lower()] for word in states],
            types=[TYPE_WORDS[word.lower()] for word in types],
        )
        if pattern is None or fnmatch.fnmatchcase(group.name, pattern)
    ]
    match form:
        case Form.JSON:
            known = verdicts(connection)
            show_json([summary_json(group, known.get(group.name)) for group in found])
        case Form.NAME:
            show_names(group.name for group in found)
        case Form.TABLE if not found:
            say("No group matches." if pattern or states or types else "No groups.")
        case Form.TABLE:
            show_summaries(found, verdicts(connection))


@groups.command(
    "describe",
    short_help="Show groups with their partitions, owners and lag.",
    epilog="Example: ./samsa groups describe billing",
)
@click.argument("names", nargs=-1, metavar="GROUP...")
@click.option("-a", "--all", "is_all", is_flag=True, help="Describe all groups.")
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def describe(*, connection: Connection, names: tuple[str, ...], is_all: bool, form: Form) -> None:
    """Show groups with their partitions, owners and lag."""
    if bool(names) == is_all:
        raise click.UsageError("name the groups, or give --all")
    asked = Groups(connection)
    wanted = [group.name for group in asked.summaries()] if is_all else list(names)
    found = asked.describe(wanted)
    behind = lags(connection, wanted) if wanted else []
    known = verdicts(connection)
    described = [(group, rows_of(group, behind), known.get(group.name)) for group in found]
    if form is Form.JSON:
        show_json([group_json(*one) for one in described])
        return
    if not described:
        say("No groups.")
    for number, one in enumerate(described):
        if number:
            say("")
        show_group(*one)


@groups.command(
    "members",
    short_help="List the members of a group.",
    epilog="Example: ./samsa groups members billing --verbose",
)
@click.argument("name", metavar="GROUP")
@click.option("-v", "--verbose", is_flag=True, help="Include the partitions of each member.")
@output_option(Form.TABLE, Form.JSON, Form.NAME)
@reaches_cluster
def members(*, connection: Connection, name: str, verbose: bool, form: Form) -> None:
    """List the members of a group, with their hosts and number of partitions."""
    [group] = Groups(connection).describe([name])
    match form:
        case Form.JSON:
            show_json([member_json(group, member) for member in group.members])
        case Form.NAME:
            show_names(member.id for member in group.members)
        case Form.TABLE if not group.members:
            say(f"Group {plain(name)} has no members; it is {group.state.value.lower()}.")
        case Form.TABLE:
            show_members(group, with_assignment=verbose)


@groups.command(
    "lag",
    short_help="Show the lag of groups, in records and in time.",
    epilog="Example: ./samsa groups lag billing --watch",
)
@click.argument("names", nargs=-1, metavar="[GROUP]...")
@click.option("-w", "--watch", "is_watch", is_flag=True, help="Repeat until Ctrl-C.")
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def lag(*, connection: Connection, names: tuple[str, ...], is_watch: bool, form: Form) -> None:
    """Show the lag of GROUPs, or of all groups: in records, and the age of the next record."""
    if names:
        # A missing group would look like one without a lag.
        Groups(connection).describe(names)

    def look() -> None:
        found = lags(connection, names)
        if form is Form.JSON:
            show_json([lag_json(one.group, one.place, one) for one in found])
        elif found:
            show_lags(found)
        else:
            say("Nothing is committed.")

    if is_watch:
        watch(look)
    else:
        look()


def watch(look: Callable[[], None], *, wait: Callable[[float], None] = time.sleep) -> None:
    """Repeat until Ctrl-C, which is not a failure."""
    is_terminal = sys.stdout.isatty()
    with suppress(KeyboardInterrupt):
        while True:
            if is_terminal:
                click.clear()
            look()
            sys.stdout.flush()
            wait(WATCH_SECONDS)


@groups.command(
    "delete",
    short_help="Delete groups with their committed offsets.",
    epilog="Example: ./samsa groups delete billing",
)
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@yes_option
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def delete(*, connection: Connection, names: tuple[str, ...], yes: bool, form: Form) -> None:
    """Delete groups without members, with their committed offsets. Asks for confirmation."""
    asked = Groups(connection)
    found = asked.describe(names)
    if not yes:
        confirm([group.name for group in found], f"Delete {counted(len(found), 'group')}?")
    asked.delete([group.name for group in found])
    if form is Form.JSON:
        show_json([{"group": group.name, "deleted": True} for group in found])
        return
    for group in found:
        say(f"Deleted group {plain(group.name)}.")


@groups.command(
    "delete-offsets",
    short_help="Delete the committed offsets of a group for topics.",
    epilog="Example: ./samsa groups delete-offsets billing --topic orders:0,1",
)
@click.argument("name", metavar="GROUP")
@click.option(
    *("-t", "--topic", "topics"),
    multiple=True,
    required=True,
    callback=parse_topics,
    metavar="TOPIC[:0,1]",
    help="A topic, or some of its partitions; may be repeated.",
)
@yes_option
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def delete_offsets(
    *,
    connection: Connection,
    name: str,
    topics: dict[str, tuple[int, ...]],
    yes: bool,
    form: Form,
) -> None:
    """Delete committed offsets of a group for topics that no member reads. Asks first."""
    asked = Groups(connection)
    asked.describe([name])
    # The topic itself may be gone: only committed offsets count.
    committed = asked.offsets([name])[name]
    places = committed_places(name, committed, topics)
    if not yes:
        confirm(
            [f"{place}, offset {committed[place]}" for place in places],
            f"Delete {counted(len(places), 'offset')} of group {plain(name)}?",
        )
    asked.delete_offsets(name, places)
    if form is Form.JSON:
        show_json(
            [
                {
                    "group": name,
                    "topic": place.topic,
                    "partition": place.partition,
                    "before": committed[place],
                    "deleted": True,
                }
                for place in places
            ]
        )
        return
    for place in places:
        say(f"Deleted the offset of {place}; it was {committed[place]}.")


def confirm(what: list[str], question: str) -> None:
    """Ask for confirmation on a terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError("not a terminal: add --yes to delete without confirmation")
    for line in what:
        say(plain(line), to_stderr=True)
    click.confirm(question, abort=True, err=True)
