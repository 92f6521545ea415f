"""`./samsa topics`: lists, creates, describes, alters and deletes topics.

Uses Kafka's protocol like any client, so it works on every compatible cluster.
"""

import fnmatch
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from brokers.supervisor.home import Home
from cli.bootstrap import reaches_cluster
from cli.config_edits import checked_edits, config_pair, edit_options, show_plan
from cli.durability import KEY, REPLICATED, is_lone_copy, say_warning, warn_of_lone_copy
from cli.output import Column, Form, output_option, plain, say, show_json, show_names, show_table
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.kept_topics import loss_of, metrics_topic_of
from gateway.kafka.values import (
    BEGINNING,
    CLUSTER_DEFAULT,
    END,
    Config,
    ConfigEdit,
    NewTopic,
    ResourceKind,
    Topic,
    TopicSummary,
)

SET_ON_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"

dry_run_option = click.option(
    "--dry-run",
    "is_dry_run",
    is_flag=True,
    help="Validate and show the change, but do not make it.",
)


@click.group(no_args_is_help=True, epilog="Example: ./samsa topics create orders --partitions 12")
def topics() -> None:
    """List, create, describe, alter and delete topics."""


@topics.command(
    "list",
    short_help="List topics, all or those that match a PATTERN.",
    epilog="Example: ./samsa topics list 'orders.*'",
)
@click.argument("pattern", required=False)
@click.option("--exclude-internal", is_flag=True, help="Omit topics that begin with __.")
@output_option(Form.TABLE, Form.JSON, Form.NAME)
@reaches_cluster
def list_topics(
    *, connection: Connection, pattern: str | None, exclude_internal: bool, form: Form
) -> None:
    """List topics, all or those that match a PATTERN such as 'orders.*'."""
    found = [
        topic
        for topic in Admin(connection).topics()
        if (pattern is None or fnmatch.fnmatchcase(topic.name, pattern))
        and not (exclude_internal and topic.is_internal)
    ]
    match form:
        case Form.JSON:
            show_json([summary_json(topic) for topic in found])
        case Form.NAME:
            show_names(topic.name for topic in found)
        case Form.TABLE if not found:
            say("No topics." if pattern is None else f"No topic matches {pattern}.")
        case Form.TABLE:
            show_table(
                [
                    Column(title="NAME"),
                    Column(title="PARTITIONS", is_number=True),
                    Column(title="REPLICATION", is_number=True),
                ],
                [(topic.name, topic.partitions, topic.replication_factor) for topic in found],
            )


@topics.command("create", epilog="Example: ./samsa topics create orders -p 12 -c retention.ms=7d")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    *("-p", "--partitions"),
    type=click.IntRange(min=1),
    default=None,
    help="Number of partitions. Default: the cluster's.",
)
@click.option(
    *("-r", "--replication-factor"),
    type=click.IntRange(min=1),
    default=None,
    help="Number of replicas of each partition. Default: the cluster's.",
)
@click.option(
    *("-c", "--config", "configs"),
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a config of the topic, such as retention.ms=2d.",
)
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic exists already.")
@dry_run_option
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def create(
    *,
    connection: Connection,
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    is_dry_run: bool,
    form: Form,
) -> None:
    """Create topics."""
    settings = dict(config_pair(text) for text in configs)
    admin = Admin(connection)
    done = []
    for name in names:
        topic = NewTopic(
            name=name,
            partitions=partitions or CLUSTER_DEFAULT,
            replication_factor=replication_factor or CLUSTER_DEFAULT,
            configs=settings,
        )
        is_new = True
        try:
            admin.create([topic], is_dry_run=is_dry_run)
        except KafkaFailure as failed:
            if not (if_not_exists and failed.name == "TOPIC_ALREADY_EXISTS"):
                raise
            is_new = False
        done.append({"name": name, "created": is_new and not is_dry_run, "dry_run": is_dry_run})
        if form is Form.TABLE:
            verb = "Would create" if is_dry_run else "Created"
            say(f"{verb} topic {name}." if is_new else f"Topic {name} exists already.")
        if is_new and settings.get(KEY) == REPLICATED:
            replicas = replication_factor or 0
            if not is_dry_run:
                replicas = admin.describe([name])[0].replication_factor
            if is_lone_copy(settings[KEY], replicas):
                say_warning(name)
    if form is Form.JSON:
        show_json(done)


@topics.command(
    "describe",
    short_help="Show topics with their partitions and offsets.",
    epilog="Example: ./samsa topics describe orders",
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def describe(*, connection: Connection, names: tuple[str, ...], form: Form) -> None:
    """Show topics with their partitions, offsets and the configs set on them."""
    admin = Admin(connection)
    found = []
    for topic in admin.describe(names):
        configs = [c for c in admin.configs(ResourceKind.TOPIC, topic.name) if is_set_on_topic(c)]
        found.append((topic, configs, offsets_of(admin, topic)))
        warn_of_lone_copy(topic, configs)
    if form is Form.JSON:
        show_json([topic_json(*described) for described in found])
        return
    for number, described in enumerate(found):
        if number:
            say("")
        show_topic(*described)


@topics.command("alter", epilog="Example: ./samsa topics alter orders --set retention.ms=1d")
@click.argument("name")
@click.option(
    *("-p", "--partitions"),
    type=click.IntRange(min=1),
    help="New total number of partitions; it can only grow.",
)
@edit_options
@dry_run_option
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def alter(
    *,
    connection: Connection,
    name: str,
    partitions: int | None,
    edits: list[ConfigEdit],
    is_dry_run: bool,
    form: Form,
) -> None:
    """Add partitions to a topic, or change its configs."""
    if partitions is None and not edits:
        raise click.UsageError(
            "nothing to change: give --partitions, --set, --delete, --append or --subtract"
        )
    admin = Admin(connection)
    [before] = admin.describe([name])
    # Validate everything before any change.
    if partitions is not None:
        admin.add_partitions(name, partitions, is_dry_run=True)
    plan = checked_edits(admin, ResourceKind.TOPIC, name, edits) if edits else []
    if not is_dry_run:
        if partitions is not None:
            admin.add_partitions(name, partitions)
        if edits:
            admin.alter_configs(ResourceKind.TOPIC, name, edits)
            warn_of_lone_copy(before, admin.configs(ResourceKind.TOPIC, name))
    total = partitions or len(before.partitions)
    if form is Form.JSON:
        show_json(
            {
                "name": name,
                "partitions": {"before": len(before.partitions), "after": total},
                "configs": [step.json() for step in plan],
                "dry_run": is_dry_run,
            }
        )
        return
    if partitions is not None:
        verb = "would have" if is_dry_run else "has"
        was = len(before.partitions)
        say(f"Topic {name} {verb} {counted(total, 'partition')}; it had {was}.")
    if plan:
        show_plan(plan, is_dry_run=is_dry_run)


@topics.command("delete", epilog="Example: ./samsa topics delete orders --dry-run")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking.")
@click.option(
    "--force", is_flag=True, help="Also delete topics with state of the cluster, such as __…"
)
@click.option("--if-exists", is_flag=True, help="Succeed if a topic does not exist.")
@dry_run_option
@output_option(Form.TABLE, Form.JSON)
@reaches_cluster
def delete(
    *,
    connection: Connection,
    names: tuple[str, ...],
    yes: bool,
    force: bool,
    if_exists: bool,
    is_dry_run: bool,
    form: Form,
) -> None:
    """Delete topics and their records. Asks for confirmation."""
    admin = Admin(connection)
    there = []
    for name in names:
        try:
            there += admin.describe([name])
        except KafkaFailure as failed:
            if not (if_exists and failed.kind is Kind.NOT_FOUND):
                raise
    if not force:
        refuse_loss(there, home=click.get_current_context().params["home"])
    if there and not (yes or is_dry_run):
        confirm_deletion(there)
    if there and not is_dry_run:
        admin.delete([topic.name for topic in there])
    gone = {topic.name for topic in there}
    if form is Form.JSON:
        show_json(
            [
                {"name": name, "deleted": name in gone and not is_dry_run, "dry_run": is_dry_run}
                for name in names
            ]
        )
        return
    verb = "Would delete" if is_dry_run else "Deleted"
    for topic in there:
        say(f"{verb} topic {topic.name} with its {counted(len(topic.partitions), 'partition')}.")
    for name in names:
        if name not in gone:
            say(f"Topic {name} does not exist.")


def refuse_loss(there: list[Topic], *, home: Path) -> None:
    """Refuse to delete topics that keep state of the cluster."""
    metrics_topic = metrics_topic_of(Home(home).settings_file)
    for topic in there:
        loss = loss_of(topic.name, metrics_topic=metrics_topic)
        if loss:
            raise click.UsageError(
                f"nothing is deleted: deleting topic {topic.name} loses {loss}. To delete it"
                " nevertheless, add --force"
            )


def confirm_deletion(there: list[Topic]) -> None:
    """Ask for confirmation on a terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError("not a terminal: add --yes to delete without confirmation")
    for topic in there:
        say(f"{topic.name}: {counted(len(topic.partitions), 'partition')}", to_stderr=True)
    question = f"Delete {counted(len(there), 'topic')} and all their records?"
    click.confirm(question, abort=True, err=True)


def offsets_of(admin: Admin, topic: Topic) -> dict[int, tuple[int, int]]:
    """Return first offset and end of each partition with a leader."""
    led = [partition.index for partition in topic.partitions if partition.leader is not None]
    # A leader may be gone by now; show the other offsets without it.
    with suppress(KafkaFailure):
        first = admin.offsets(topic.name, led, BEGINNING)
        end = admin.offsets(topic.name, led, END)
        return {index: (first[index], end[index]) for index in led}
    return {}


def is_set_on_topic(config: Config) -> bool:
    return config.source == SET_ON_TOPIC


def show_topic(topic: Topic, configs: list[Config], offsets: dict[int, tuple[int, int]]) -> None:
    say(topic.name, bold=True)
    facts = [
        ("id", topic.id),
        ("partitions", len(topic.partitions)),
        ("replication", topic.replication_factor),
        ("records", sum(end - first for first, end in offsets.values())),
        *(("config", f"{config.key}={config.value}") for config in configs),
    ]
    for label, value in facts:
        say(f"  {label:<12} {plain(value)}")
    show_table(
        [
            Column(title="PARTITION", is_number=True),
            Column(title="LEADER", is_number=True),
            Column(title="REPLICAS"),
            Column(title="IN SYNC"),
            Column(title="FIRST OFFSET", is_number=True),
            Column(title="END OFFSET", is_number=True),
        ],
        [
            (p.index, p.leader, p.replicas, p.isr, *offsets.get(p.index, (None, None)))
            for p in topic.partitions
        ],
    )


def summary_json(topic: TopicSummary) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "is_internal": topic.is_internal,
    }


def topic_json(
    topic: Topic, configs: list[Config], offsets: dict[int, tuple[int, int]]
) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": topic.id,
        "is_internal": topic.is_internal,
        "replication_factor": topic.replication_factor,
        "configs": {config.key: config.value for config in configs},
        "partitions": [
            {
                "partition": p.index,
                "leader": p.leader,
                "replicas": list(p.replicas),
                "isr": list(p.isr),
                "first_offset": offsets[p.index][0] if p.index in offsets else None,
                "end_offset": offsets[p.index][1] if p.index in offsets else None,
            }
            for p in topic.partitions
        ],
    }


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
