"""`./samsa connectors`: manages connectors from files, over Kafka Connect's REST API.

The verbs are those of kubectl: `apply` creates or changes a connector, and reports which.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import IO, Any, Final

import click

from brokers.supervisor import properties
from cli.bootstrap import split_pair
from cli.config_edits import config_pair
from cli.connect_client import NOT_FOUND, Connect, Refused, reaches_connect
from cli.connector_troubles import is_retrying, show_trouble, trouble_of
from cli.dead_letters import dead_letters, redrive, redrives
from cli.groups import confirm, yes_option
from cli.output import Column, Form, output_option, plain, say, show_json, show_names, show_table
from cli.topics import counted

# Enough for a config with queries and certificates.
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
RUNNING: Final = "RUNNING"
# Prefixes of keys that no plugin lists: for clients of its tasks, and for topics to create.
BELOW_NO_KEY: Final = re.compile(r"(producer|consumer|admin)\.override\.|topic\.creation\.")
FAILED: Final = "FAILED"
name_argument = click.argument("name", metavar="CONNECTOR")
names_argument = click.argument("names", nargs=-1, required=True, metavar="CONNECTOR...")


@click.group(no_args_is_help=True, epilog="Example: ./samsa connectors apply --file lake.json")
def connectors() -> None:
    """List, describe, apply, restart, stop and delete connectors; send dead letters again."""


@connectors.command(
    "list",
    short_help="List connectors with their state.",
    epilog="Example: ./samsa connectors list --output json",
)
@output_option(Form.TABLE, Form.JSON, Form.NAME)
@reaches_connect
def list_connectors(*, connect: Connect, form: Form) -> None:
    """List the connectors that the token may read, with their state."""
    found = connect.ask("GET", "connectors", expand="status")
    rows = sorted((name, one["status"]) for name, one in found.items() if "status" in one)
    match form:
        case Form.JSON:
            show_json([status for _, status in rows])
        case Form.NAME:
            show_names(name for name, _ in rows)
        case Form.TABLE if not rows:
            say("No connectors.")
        case Form.TABLE:
            titles = ("CONNECTOR", "KIND", "STATE", "TASKS", "TROUBLE")
            columns = [Column(title=title) for title in titles]
            show_table(columns, [_row(name, status) for name, status in rows])


@connectors.command(
    "describe",
    short_help="Show a connector with its tasks and its config.",
    epilog="Example: ./samsa connectors describe lake",
)
@name_argument
@output_option(Form.TABLE, Form.JSON)
@reaches_connect
def describe(*, connect: Connect, name: str, form: Form) -> None:
    """Show the state of a connector and its tasks, and its config with passwords masked."""
    info = connect.ask("GET", "connectors", name)
    status = connect.ask("GET", "connectors", name, "status")
    if form is Form.JSON:
        show_json({"info": info, "status": status})
        return
    say(f"{plain(name)}: {status['type']}, {status['connector']['state']}", bold=True)
    _show_trace(status["connector"])
    for task in status["tasks"]:
        say(f"task {task['id']}: {task['state']} on {plain(task['worker_id'])}")
        _show_trace(task)
        show_trouble(task)
    show_table(
        [Column(title="KEY"), Column(title="VALUE")],
        [(key, value) for key, value in sorted(info["config"].items())],
    )


@connectors.command(
    "apply",
    short_help="Create or update connectors from a file.",
    epilog="Example: ./samsa connectors apply --file lake.json --dry-run",
)
@click.option(
    *("-f", "--file", "file"),
    type=click.File("rb"),
    required=True,
    help='JSON: a config with a "name" key, {"name": …, "config": …}, or a list of them; - reads '
    "standard input. A .properties file is read as Kafka Connect's standalone worker reads it.",
)
@click.option("--dry-run", is_flag=True, help="Validate the configs and change nothing.")
@output_option(Form.TABLE, Form.JSON)
@reaches_connect
def apply(*, connect: Connect, file: IO[bytes], dry_run: bool, form: Form) -> None:
    """Create the connectors of a file, and update those that exist to its configs.

    A masked password keeps the stored value.
    """
    outcomes = []
    for name, config in read_configs(file):
        if dry_run:
            outcome = _check(connect, name, config)
        else:
            _warn_of_unknown(connect, name, config)
            outcome = _apply(connect, name, config)
        outcomes.append({"connector": name, "outcome": outcome})
        if form is Form.TABLE:
            say(f"connector {plain(name)} {outcome}")
    if form is Form.JSON:
        show_json(outcomes)


@connectors.command(
    "patch",
    short_help="Change some keys of a config.",
    epilog="Example: ./samsa connectors patch lake --set tasks.max=4",
)
@name_argument
@click.option("-s", "--set", "sets", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
@click.option("-d", "--delete", "deletes", multiple=True, metavar="KEY", help="May be repeated.")
@reaches_connect
def patch(*, connect: Connect, name: str, sets: tuple[str, ...], deletes: tuple[str, ...]) -> None:
    """Change some keys of a connector's config, keep the others, and restart its tasks."""
    # Only workers know the value of a reference.
    given = dict((split_pair if "${" in pair else config_pair)(pair, "a change") for pair in sets)
    twice = sorted(given.keys() & set(deletes))
    if twice:
        raise click.UsageError(
            f"{twice[0]} is both set and deleted: give one of --set and --delete"
        )
    changes = {**given, **dict.fromkeys(deletes)}
    if not changes:
        raise click.UsageError("nothing to change: give --set KEY=VALUE or --delete KEY")
    info = connect.ask("PATCH", "connectors", name, "config", body=changes)
    _warn_of_unknown(connect, name, info["config"])
    say(f"connector {plain(name)} patched")


@connectors.command(
    "restart",
    short_help="Restart a connector, or one of its tasks.",
    epilog="Example: ./samsa connectors restart lake --only-failed",
)
@name_argument
@click.option("--task", type=click.IntRange(min=0), help="Restart only this task.")
@click.option(
    "--only-failed", is_flag=True, help="Restart only the connector and tasks that have failed."
)
@reaches_connect
def restart(*, connect: Connect, name: str, task: int | None, only_failed: bool) -> None:
    """Restart a connector and its tasks."""
    if task is not None and only_failed:
        raise click.UsageError("--task and --only-failed exclude each other: give one of them")
    if task is not None:
        connect.ask("POST", "connectors", name, "tasks", str(task), "restart")
        say(f"task {task} of connector {plain(name)} restarted")
        return
    flag = "true" if only_failed else "false"
    connect.ask("POST", "connectors", name, "restart", includeTasks="true", onlyFailed=flag)
    say(f"connector {plain(name)} restarted")


@connectors.command(
    "pause",
    short_help="Pause connectors; tasks stay assigned.",
    epilog="Example: ./samsa connectors pause lake",
)
@names_argument
@reaches_connect
def pause(*, connect: Connect, names: tuple[str, ...]) -> None:
    """Pause connectors. Their tasks stay assigned to their workers, and process no records."""
    _order(connect, names, "pause", "paused")


@connectors.command(
    "resume",
    short_help="Resume paused or stopped connectors.",
    epilog="Example: ./samsa connectors resume lake",
)
@names_argument
@reaches_connect
def resume(*, connect: Connect, names: tuple[str, ...]) -> None:
    """Resume connectors that are paused or stopped."""
    _order(connect, names, "resume", "resumed")


@connectors.command(
    "stop",
    short_help="Stop connectors and end their tasks.",
    epilog="Example: ./samsa connectors stop lake",
)
@names_argument
@reaches_connect
def stop(*, connect: Connect, names: tuple[str, ...]) -> None:
    """Stop connectors and end their tasks, so that their offsets can be changed."""
    _order(connect, names, "stop", "stopped")


@connectors.command(
    "delete",
    short_help="Delete connectors with their logs and offsets.",
    epilog="Example: ./samsa connectors delete lake",
)
@names_argument
@yes_option
@reaches_connect
def delete(*, connect: Connect, names: tuple[str, ...], yes: bool) -> None:
    """Delete connectors with their logs, and sources with their offsets. Asks for confirmation."""
    for name in names:
        # Delete none if one of them does not exist.
        connect.ask("GET", "connectors", name)
    if not yes:
        confirm(list(names), f"Delete {counted(len(names), 'connector')}?")
    for name in names:
        connect.ask("DELETE", "connectors", name)
        say(f"connector {plain(name)} deleted")


@connectors.command(
    "offsets",
    short_help="Show, alter or reset the offsets of a connector.",
    epilog="Example: ./samsa connectors offsets lake --output json",
)
@name_argument
@click.option(
    *("-f", "--file", "file"),
    type=click.File("rb"),
    help="Alter the offsets to this JSON, in the form of -O json; - reads standard input.",
)
@click.option("--reset", "is_reset", is_flag=True, help="Reset all offsets. Asks for confirmation.")
@yes_option
@output_option(Form.TABLE, Form.JSON)
@reaches_connect
def offsets(
    *, connect: Connect, name: str, file: IO[bytes] | None, is_reset: bool, yes: bool, form: Form
) -> None:
    """Show the offsets of a connector; alter or reset them while it is stopped."""
    if file is not None and is_reset:
        raise click.UsageError("--file and --reset exclude each other: give one of them")
    if is_reset:
        if not yes:
            confirm([name], "Reset its offsets? The connector will read from the beginning again.")
        say(str(connect.ask("DELETE", "connectors", name, "offsets")["message"]))
        return
    if file is not None:
        body = read_json(file)
        say(str(connect.ask("PATCH", "connectors", name, "offsets", body=body)["message"]))
        return
    found = connect.ask("GET", "connectors", name, "offsets")
    if form is Form.JSON:
        show_json(found)
    elif not found["offsets"]:
        say("No offsets are stored yet.")
    else:
        show_table(
            [Column(title="PARTITION"), Column(title="OFFSET")],
            [(_short(one["partition"]), _short(one["offset"])) for one in found["offsets"]],
        )


@connectors.command(
    "plugins",
    short_help="List the connector classes, or the config keys of one.",
    epilog="Example: ./samsa connectors plugins",
)
@click.argument("plugin", required=False, metavar="[CLASS]")
@output_option(Form.TABLE, Form.JSON, Form.NAME)
@reaches_connect
def plugins(*, connect: Connect, plugin: str | None, form: Form) -> None:
    """List the connector classes, with their Kafka Connect aliases.

    With a class, list its config keys.
    """
    if plugin is not None:
        _show_keys(connect.ask("GET", "connector-plugins", plugin, "config"), form)
        return
    found = connect.ask("GET", "connector-plugins")
    match form:
        case Form.JSON:
            show_json(found)
        case Form.NAME:
            show_names(one["class"] for one in found)
        case Form.TABLE:
            columns = [Column(title=title) for title in ("CLASS", "KIND", "VERSION")]
            show_table(columns, [(one["class"], one["type"], one["version"]) for one in found])


connectors.add_command(dead_letters)
connectors.add_command(redrive)
connectors.add_command(redrives)


def read_configs(file: IO[bytes]) -> list[tuple[str, dict[str, Any]]]:
    """Return the connectors of a file, by name; a usage error if it is invalid."""
    is_properties = str(getattr(file, "name", "")).endswith(".properties")
    found = read_properties(file) if is_properties else read_json(file)
    listed = found if isinstance(found, list) else [found]
    return [_named(one, number) for number, one in enumerate(listed, 1)]


def read_properties(file: IO[bytes]) -> dict[str, str]:
    """Parse a config file of Kafka Connect's standalone worker."""
    said, text = _read(file)
    try:
        return properties.parse(text.decode())
    except ValueError as error:
        raise click.UsageError(f"{said}: {error}; correct the file") from None


def read_json(file: IO[bytes]) -> Any:  # noqa: ANN401 - as JSON has it
    said, text = _read(file)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise click.UsageError(
            f"{said}, line {error.lineno}, column {error.colno}: {error.msg}; correct the JSON"
        ) from None
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{said} is not JSON: {error}") from None


def _read(file: IO[bytes]) -> tuple[str, bytes]:
    """Return the name of a file, and its contents."""
    said = str(getattr(file, "name", "the file"))
    text = file.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise click.UsageError(f"{said} has more than {MAX_FILE_BYTES:,} bytes: split it")
    return said, text


def _named(one: object, number: int) -> tuple[str, dict[str, Any]]:
    if not isinstance(one, dict):
        raise click.UsageError(
            f"connector {number} of the file is not a JSON object: give a config"
        )
    config = one.get("config", one)
    name = one.get("name") or (config.get("name") if isinstance(config, dict) else None)
    if not isinstance(config, dict) or not isinstance(name, str):
        raise click.UsageError(
            f'connector {number} of the file has no name: give {{"name": "…", "config": {{…}}}}'
        )
    return name, config


def _apply(connect: Connect, name: str, config: Mapping[str, Any]) -> str:
    try:
        stored = connect.ask("GET", "connectors", name, "config")
    except Refused as refused:
        if refused.status != NOT_FOUND:
            raise
        stored = None
    # An apply without changes must not restart all tasks. A failed connector has no tasks, and its
    # author may have lost a right: if another user applies the same config, it runs with theirs.
    if stored == {**{key: _text(value) for key, value in config.items()}, "name": name}:
        status = connect.ask("GET", "connectors", name, "status")
        if status["connector"]["state"] != FAILED:
            return "unchanged"
    status, _ = connect.answer("PUT", "connectors", name, "config", body=dict(config))
    return "created" if status == 201 else "configured"


def _warn_of_unknown(connect: Connect, name: str, config: Mapping[str, Any]) -> None:
    """Warn about keys without effect, such as a misspelt one; skip prefixes that others define."""
    plugin = str(config.get("connector.class", ""))
    try:
        found = connect.ask("GET", "connector-plugins", plugin, "config") if plugin else []
    except Refused:
        # The error for the config describes it better.
        return
    known = [key["name"] for key in found]
    for key in sorted(config):
        is_below = any(key.startswith(f"{other}.") for other in known)
        if key in known or is_below or BELOW_NO_KEY.match(key):
            continue
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "correct its name, or leave it out"
        _warn(name, f"{plugin} has no config {key}, so it has no effect: {hint}")


def _warn(name: str, text: str) -> None:
    say(f"warning: connector {plain(name)}: {plain(text)}", to_stderr=True)


def _text(value: object) -> object:
    """Return a number or a boolean in the form that the REST API stores."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _check(connect: Connect, name: str, config: Mapping[str, Any]) -> str:
    plugin = str(config.get("connector.class", ""))
    if not plugin:
        raise Refused(
            f"connector {name} has no class: set connector.class; `plugins` lists the classes"
        )
    whole = {**config, "name": name}
    found = connect.ask("PUT", "connector-plugins", plugin, "config", "validate", body=whole)
    for one in found["configs"]:
        for text in one["value"].get("warnings", ()):
            _warn(name, text)
    wrong = [error for one in found["configs"] for error in one["value"]["errors"]]
    if wrong:
        raise Refused(f"connector {name} would be refused:\n" + "\n".join(wrong))
    return "would be applied"


def _order(connect: Connect, names: Iterable[str], verb: str, done: str) -> None:
    for name in names:
        connect.ask("PUT", "connectors", name, verb)
        say(f"connector {plain(name)} {done}")


def _show_keys(keys: list[Mapping[str, Any]], form: Form) -> None:
    match form:
        case Form.JSON:
            show_json(keys)
        case Form.NAME:
            show_names(key["name"] for key in keys)
        case Form.TABLE:
            columns = [Column(title=title) for title in ("KEY", "TYPE", "DEFAULT", "MEANING")]
            show_table(columns, [_key_row(key) for key in keys])


def _key_row(key: Mapping[str, Any]) -> tuple[str, str, str | None, str]:
    default = "required" if key["required"] else key["default_value"] or None
    return key["name"], key["type"].lower(), default, key["documentation"]


def _row(name: str, status: Mapping[str, Any]) -> tuple[str, str, str, str, str | None]:
    tasks = status["tasks"]
    retrying = sum(is_retrying(task) for task in tasks)
    running = sum(task["state"] == RUNNING and not is_retrying(task) for task in tasks)
    failed = sum(task["state"] == FAILED for task in tasks)
    told = f"{running} of {len(tasks)} running" + (f", {failed} failed" if failed else "")
    told += f", {retrying} retrying" if retrying else ""
    return name, status["type"], status["connector"]["state"], told, trouble_of(status) or None


def _show_trace(one: Mapping[str, Any]) -> None:
    for line in str(one.get("trace", "")).splitlines():
        say(f"  {plain(line)}")


def _short(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
