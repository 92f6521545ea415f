"""Parses changes of configs on the command line: --set, --delete, --append, --subtract.

A size or a duration (5 GiB, 2d) becomes the number that Kafka's protocol takes.
--dry-run shows the plan of a change, and a change reports it: each key before and after. The
cluster validates it first, so a plan that is shown would be accepted.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from brokers import quantities
from brokers.quantities import BadQuantity
from cli.bootstrap import split_pair
from cli.output import Column, say, show_table
from gateway.kafka.admin import Admin
from gateway.kafka.values import Config, ConfigEdit, EditKind, ResourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A config before and after a change; `after` is None if the default returns."""

    key: str
    before: str | None
    after: str | None

    def json(self) -> dict[str, Any]:
        return {"key": self.key, "before": self.before, "after": self.after}


def edit_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that change configs to a command, as `edits`."""

    @click.option(
        "--set",
        "to_set",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a config to a value, such as 2d.",
    )
    @click.option(
        "--delete", "to_delete", multiple=True, metavar="KEY", help="Reset a config to its default."
    )
    @click.option(
        "--append",
        "to_append",
        multiple=True,
        metavar="KEY=VALUE",
        help="Add a value to a config that is a list.",
    )
    @click.option(
        "--subtract",
        "to_subtract",
        multiple=True,
        metavar="KEY=VALUE",
        help="Remove a value from a config that is a list.",
    )
    @functools.wraps(function)
    def command(
        *,
        to_set: Sequence[str],
        to_delete: Sequence[str],
        to_append: Sequence[str],
        to_subtract: Sequence[str],
        **options: object,
    ) -> None:
        pairs = {
            EditKind.SET: to_set,
            EditKind.APPEND: to_append,
            EditKind.SUBTRACT: to_subtract,
        }
        edits = [
            ConfigEdit(kind=kind, key=key, value=value)
            for kind, texts in pairs.items()
            for key, value in (
                config_pair(text) if kind is EditKind.SET else split_pair(text, "a config")
                for text in texts
            )
        ]
        edits += [ConfigEdit(kind=EditKind.DELETE, key=key) for key in to_delete]
        twice = {edit.key for edit in edits if [e.key for e in edits].count(edit.key) > 1}
        if twice:
            raise click.UsageError(
                f"{', '.join(sorted(twice))}: named twice; change each config once per command"
            )
        function(edits=edits, **options)

    return command


def config_pair(text: str, what: str = "a config") -> tuple[str, str]:
    """Split KEY=VALUE, with a size or a duration as a plain number."""
    key, value = split_pair(text, what)
    try:
        return key, quantities.plain(key, value)
    except BadQuantity as error:
        raise click.UsageError(f"{key}: {value[:100]!r} {error}") from None


def checked_edits(
    admin: Admin, kind: ResourceKind, name: str, edits: Sequence[ConfigEdit]
) -> list[Step]:
    """Have the cluster validate changes without making them; return their effects."""
    current = {config.key: config for config in admin.configs(kind, name)}
    admin.alter_configs(kind, name, edits, is_dry_run=True)
    return [
        Step(
            key=edit.key,
            before=current[edit.key].value if edit.key in current else None,
            after=after_edit(current[edit.key].value if edit.key in current else None, edit),
        )
        for edit in edits
    ]


def after_edit(before: str | None, edit: ConfigEdit) -> str | None:
    """Return the value of a config after a change, by Kafka's rules for lists."""
    if edit.kind is EditKind.SET:
        return edit.value
    if edit.kind is EditKind.DELETE:
        return None
    items = [item for item in (before or "").split(",") if item]
    named = (edit.value or "").split(",")
    if edit.kind is EditKind.APPEND:
        return ",".join([*items, *(item for item in named if item not in items)])
    return ",".join(item for item in items if item not in named)


def warn_of_unknown(configs: Iterable[Config], edits: Sequence[ConfigEdit]) -> None:
    """Write a warning beside the output of a change that set unknown configs of brokers."""
    named = {edit.key for edit in edits}
    # A broker shows them without a value, because it cannot know which are secrets.
    for config in configs:
        if config.key in named and config.is_sensitive and config.value is None:
            say(
                f"warning: brokers do not know {config.key}, so it has no effect; they keep it, as "
                "Kafka does. Check its spelling, or delete it.",
                to_stderr=True,
            )


def show_plan(plan: Sequence[Step], *, is_dry_run: bool) -> None:
    say("Would change:" if is_dry_run else "Changed:")
    show_table(
        [Column(title="KEY"), Column(title="BEFORE"), Column(title="AFTER")],
        [
            (
                step.key,
                None if step.before is None else quantities.worded(step.key, step.before),
                "(default)" if step.after is None else quantities.worded(step.key, step.after),
            )
            for step in plan
        ],
    )
