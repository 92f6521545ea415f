"""`./samsa configs`: shows and changes the configs of topics and brokers."""

from typing import Any

import click

from cli.bootstrap import reaches_cluster
from cli.config_edits import checked_edits, edit_options, show_plan, warn_of_unknown
from cli.durability import warn_of_lone_copy
from cli.output import Column, Form, output_option, say, show_json, show_table
from cli.topics import dry_run_option
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import failure
from gateway.kafka.values import Config, ConfigEdit, ResourceKind

# A broker's name; all brokers have none.
ALL_BROKERS = ""

kind_argument = click.argument("kind", type=click.Choice([kind.value for kind in ResourceKind]))


@click.group(no_args_is_help=True, epilog="Example: ./samsa configs describe topic orders")
def configs() -> None:
    """Describe and alter the configs of topics and brokers."""


@configs.command(
    "describe",
    short_help="Show the configs set on a topic or a broker.",
    epilog="Example: ./samsa configs describe broker 1 --all",
)
@kind_argument
@click.argument("name")
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("-a", "--all", "shows_all", is_flag=True, help="Include defaults.")
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def describe(
    *,
    connection: Connection,
    kind: str,
    name: str,
    keys: tuple[str, ...],
    shows_all: bool,
    form: Form,
) -> None:
    """Show the configs set on a topic or a broker: all, or only the KEYs."""
    admin = Admin(connection)
    everything = admin.configs(ResourceKind(kind), name)
    if kind == ResourceKind.TOPIC.value:
        warn_of_lone_copy(admin.describe([name])[0], everything)
    for key in keys:
        if key not in {config.key for config in everything}:
            words = f"a {kind} has no config of this name; --all lists its configs"
            raise failure("RESOURCE_NOT_FOUND", f"config {key}", words)
    found = [
        config
        for config in everything
        if config.key in keys or (not keys and (shows_all or not config.is_default))
    ]
    if form is Form.JSON:
        show_json([config_json(config) for config in found])
    elif found:
        show_table(
            [
                *(Column(title="KEY"), Column(title="VALUE")),
                *(Column(title="SOURCE"), Column(title="READ-ONLY")),
            ],
            [
                (c.key, "(secret)" if c.is_sensitive else c.value, c.source, c.is_read_only)
                for c in found
            ],
        )
    else:
        whose = f"{kind} {name}" if name != ALL_BROKERS else "all brokers"
        say(f"Nothing is set for {whose}; --all shows the defaults.")


@configs.command(
    "alter", epilog="Example: ./samsa configs alter topic orders --set retention.ms=1d"
)
@kind_argument
@click.argument("name")
@edit_options
@dry_run_option
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def alter(
    *,
    connection: Connection,
    kind: str,
    name: str,
    edits: list[ConfigEdit],
    is_dry_run: bool,
    form: Form,
) -> None:
    """Change configs of a topic or a broker; the others stay as they are.

    The NAME '' means all brokers: ./samsa configs alter broker '' --set num.partitions=3
    """
    if not edits:
        raise click.UsageError("nothing to change: give --set, --delete, --append or --subtract")
    admin, resource = Admin(connection), ResourceKind(kind)
    plan = checked_edits(admin, resource, name, edits)
    if not is_dry_run:
        admin.alter_configs(resource, name, edits)
        if resource is ResourceKind.TOPIC:
            warn_of_lone_copy(admin.describe([name])[0], admin.configs(resource, name))
        else:
            warn_of_unknown(admin.configs(resource, name), edits)
    if form is Form.JSON:
        steps = [step.json() for step in plan]
        show_json({"kind": kind, "name": name, "configs": steps, "dry_run": is_dry_run})
    else:
        show_plan(plan, is_dry_run=is_dry_run)


def config_json(config: Config) -> dict[str, Any]:
    return {
        "key": config.key,
        "value": config.value,
        "source": config.source,
        "is_default": config.is_default,
        "is_read_only": config.is_read_only,
        "is_sensitive": config.is_sensitive,
    }
