"""The command line shows what works, and only that."""

from click.testing import CliRunner

from cli.commands import main


def test_help_names_every_verb() -> None:
    shown = CliRunner().invoke(main, ["--help"])

    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.output.partition("Commands:\n")[2].splitlines()] == [
        "bench",
        "test",
    ]


def test_the_version_is_told() -> None:
    assert "version" in CliRunner().invoke(main, ["--version"]).output


def test_an_unknown_verb_is_refused() -> None:
    assert CliRunner().invoke(main, ["topics"]).exit_code == 2
