"""The command line shows what works, and loads a verb when it is used."""

import subprocess
import sys

import pytest
from click import Context
from click.testing import CliRunner

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
