"""Plans of config changes."""

from collections.abc import Sequence

import click
import pytest
from click.testing import CliRunner

from cli.config_edits import after_edit, edit_options
from gateway.kafka.values import ConfigEdit, EditKind


@click.command
@edit_options
def show(*, edits: Sequence[ConfigEdit]) -> None:
    for edit in edits:
        click.echo(f"{edit.kind.value} {edit.key} {edit.value}")


def test_options_become_edits() -> None:
    ran = CliRunner().invoke(
        show, ["--set", "a=1=2", "--append", "b=x", "--subtract", "c=y", "--delete", "d"]
    )

    assert ran.stdout.splitlines() == ["set a 1=2", "append b x", "subtract c y", "delete d None"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "a"], "'a' is not a config of the form KEY=VALUE"),
        (["--set", "a=1", "--delete", "a"], "a: named twice"),
    ],
)
def test_an_edit_that_cannot_be_meant_is_a_wrong_command_line(
    arguments: list[str], words: str
) -> None:
    ran = CliRunner().invoke(show, arguments)

    assert ran.exit_code == 2
    assert words in ran.stderr


@pytest.mark.parametrize(
    ("kind", "before", "value", "after"),
    [
        (EditKind.SET, "1", "2", "2"),
        (EditKind.DELETE, "1", None, None),
        (EditKind.APPEND, "delete", "compact", "delete,compact"),
        (EditKind.APPEND, "delete,compact", "compact", "delete,compact"),
        (EditKind.APPEND, None, "compact", "compact"),
        (EditKind.SUBTRACT, "delete,compact", "delete", "compact"),
        (EditKind.SUBTRACT, "delete", "compact", "delete"),
    ],
)
def test_a_plan_knows_what_a_value_will_be(
    kind: EditKind, before: str | None, value: str | None, after: str | None
) -> None:
    assert after_edit(before, ConfigEdit(key="k", kind=kind, value=value)) == after
