"""`./samsa tokens`: manages the tokens of programs, on the host of a home.

Users with a shell here may already do everything, so their tokens have no owner whose rights would
limit them. The tables are Django's, so Django's own command does the work.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from brokers.supervisor.errors import StartRefused
from brokers.supervisor.home import Home
from cli.environment import ROOT
from cli.home import HOME_OPTION

# The scopes of a token, by name; `gateway.access` maps them to rights.
SCOPES: Final = {
    "read": "Read topics of these names.",
    "write": "Write into topics of these names.",
    "group": "Read as groups of these names.",
    "connector": "Create and run connectors of these names.",
    "secret": "Use secrets of these names in configs of connectors.",
    "file": "Have connectors read and write files of these names.",
}


def scope_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each scope to a command, in order."""
    for name, words in reversed(SCOPES.items()):
        option = click.option(f"--{name}", multiple=True, metavar="PATTERN", help=words)
        command = option(command)
    return command


@click.group()
def tokens() -> None:
    """Create, list and revoke tokens of programs."""


@tokens.command()
@HOME_OPTION
@click.argument("name")
@scope_options
@click.option("--admin", is_flag=True, help="Do everything.")
@click.option("--expires", metavar="DURATION", help="How long it lives, as 30d or 12h.")
def create(
    *, home: Path, name: str, admin: bool, expires: str | None, **patterns: tuple[str, ...]
) -> None:
    """Create a token and print it, this once; PATTERN is a name, or a prefix with * behind it."""
    arguments = [f"--{scope}={pattern}" for scope in SCOPES for pattern in patterns[scope]]
    arguments += ["--admin"] if admin else []
    arguments += [f"--expires={expires}"] if expires else []
    run(home, "create", *arguments, "--", name)


@tokens.command("list")
@HOME_OPTION
def list_tokens(*, home: Path) -> None:
    """List all tokens: name, state, beginning, who made it, end, last use, rights."""
    run(home, "list")


@tokens.command()
@HOME_OPTION
@click.argument("name")
def revoke(*, home: Path, name: str) -> None:
    """End the token of NAME: its calls are refused, and its streams end within 5 s."""
    run(home, "revoke", "--", name)


def run(home: Path, *arguments: str) -> None:
    """Replace this process by Django's command of the same name in the home."""
    if not home.is_dir():
        raise click.ClickException(
            f"there is no home {home}: name one with --home, or make it with `./samsa up`"
        )
    try:
        Home(home).prepare()
    except StartRefused as refused:
        raise click.ClickException(str(refused)) from refused
    # Like the supervisor: only the owner may access the files of a home.
    os.umask(0o077)
    os.environ["SAMSA_HOME"] = str(home)
    os.execv(sys.executable, [sys.executable, str(ROOT / "manage.py"), "tokens", *arguments])
