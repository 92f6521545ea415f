"""The command line shows what works, and loads a verb when it is used."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click import Context
from click.testing import CliRunner

from bench.__main__ import main as bench
from cli.commands import VERBS, main
from tests.cluster import ROOT


def test_help_names_every_verb() -> None:
    shown = CliRunner().invoke(main, ["--help"])

    assert shown.exit_code == 0
    listed = shown.output.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed if line[2] != " "] == list(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_of_itself_what_the_table_says(verb: str) -> None:
    command = main.get_command(Context(main), verb)

    assert command is not None
    assert command.get_short_help_str(limit=200).rstrip(".") == VERBS[verb][1].rstrip(".")


def test_the_version_is_told() -> None:
    assert "version" in CliRunner().invoke(main, ["--version"]).output


def commands(
    group: click.Group = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        # Its help is that of the program that it starts.
        yield (*path, name), bench if name == "bench" else command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def test_help_of_each_command_begins_with_a_verb_and_has_an_example() -> None:
    incomplete = []
    for path, command in commands():
        shown = CliRunner().invoke(command, ["--help"], terminal_width=80)
        sentence = command.get_short_help_str(limit=200)
        examples = [line for line in shown.output.splitlines() if line.startswith("  Example: ")]
        if shown.exit_code or len(examples) != 1 or not re.match(r"[A-Z][a-z]+[ ,]", sentence):
            incomplete.append((path, sentence, examples))

    assert incomplete == []


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(*found, id="-".join(found[0])) for found in commands()]
)
def test_example_in_the_help_of_a_command_is_valid(
    path: tuple[str, ...],
    command: click.Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The file that examples apply.
    (tmp_path / "lake.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    example = (command.epilog or "").removeprefix("Example: ").partition("\n")[0]
    program, *words = shlex.split(example)
    is_group = isinstance(command, click.Group)

    parsed = parse(main, words)

    assert program == "./samsa"
    # The example of a group uses one of its commands.
    assert parsed[: len(path)] == path
    assert len(parsed) == len(path) + is_group


def parse(command: click.Command, words: list[str]) -> tuple[str, ...]:
    """Return the names of the commands that words invoke; a usage error if they are invalid."""
    if isinstance(command, click.Group):
        found = command.get_command(Context(command), words[0])
        assert found is not None, f"{words[0]} is not a command"
        return (words[0], *parse(bench if words[0] == "bench" else found, words[1:]))
    # Leaving the context closes the files that options name.
    with command.make_context(command.name, words):
        return ()


def test_an_unknown_verb_is_refused() -> None:
    assert CliRunner().invoke(main, ["fly"]).exit_code == 2


@pytest.mark.slow
def test_a_lifecycle_verb_loads_neither_client_nor_tables_nor_loop() -> None:
    # Each of them costs as much as the verb itself.
    heavy = "{'rich', 'confluent_kafka', 'asyncio', 'django', 'msgspec'}"
    program = (
        "import sys; from cli.commands import main; "
        "main(['status', '--home', 'nowhere'], standalone_mode=False)"
    )
    check = f"print(sorted({heavy} & set(sys.modules)))"

    done = subprocess.run(
        [sys.executable, "-c", f"try:\n {program}\nexcept SystemExit: pass\n{check}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[]\n"
