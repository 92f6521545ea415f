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

from brokers.supervisor.components import store_url, valkey_socket
from brokers.supervisor.errors import StartRefused
from brokers.supervisor.home import Home
from cli.environment import ROOT
from cli.home import HOME_OPTION

# The scopes of a token, by name; `gateway.access` maps them to rights.
SCOPES: Final = {
    "read": "Grant reading topics with these names.",
    "write": "Grant writing to topics with these names.",
    "create": "Grant creating topics with these names, also by writing to a missing one.",
    "group": "Grant reading as consumer groups with these names.",
    "connector": "Grant creating and running connectors with these names.",
    "secret": "Grant using secrets with these names in connector configs.",
    "file": "Grant connectors with access to files with these names.",
}


def scope_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each scope to a command, in order."""
    for name, words in reversed(SCOPES.items()):
        option = click.option(f"--{name}", multiple=True, metavar="PATTERN", help=words)
        command = option(command)
    return command


@click.group(epilog="Example: ./samsa tokens create billing --read 'orders*' --group 'billing*'")
def tokens() -> None:
    """Create, list and revoke access tokens for programs."""


@tokens.command(epilog="Example: ./samsa tokens create billing --read 'orders*' --expires 30d")
@HOME_OPTION
@click.argument("name")
@scope_options
@click.option("--admin", is_flag=True, help="Grant all rights.")
@click.option(
    "--expires",
    metavar="DURATION",
    help="How long the token is valid, such as 30d or 12h. Default: until revoked.",
)
def create(
    *, home: Path, name: str, admin: bool, expires: str | None, **patterns: tuple[str, ...]
) -> None:
    """Create a token and print it once. PATTERN is a name, or a prefix followed by *."""
    arguments = [f"--{scope}={pattern}" for scope in SCOPES for pattern in patterns[scope]]
    arguments += ["--admin"] if admin else []
    arguments += [f"--expires={expires}"] if expires else []
    run(home, "create", *arguments, "--", name)


@tokens.command("list", epilog="Example: ./samsa tokens list")
@HOME_OPTION
def list_tokens(*, home: Path) -> None:
    """List all tokens: name, state, first characters, creator, expiry, last use, rights."""
    run(home, "list")


@tokens.command(epilog="Example: ./samsa tokens revoke billing")
@HOME_OPTION
@click.argument("name")
def revoke(*, home: Path, name: str) -> None:
    """Revoke the token NAME: its calls are refused, and its streams end within 5 s."""
    run(home, "revoke", "--", name)


def run(home: Path, *arguments: str) -> None:
    """Replace this process by Django's command of the same name in the home."""
    if not home.is_dir():
        raise click.ClickException(
            f"home {home} does not exist: name another one with --home, or create it with "
            "`./samsa up`"
        )
    try:
        Home(home).prepare()
    except StartRefused as refused:
        raise click.ClickException(str(refused)) from refused
    # Like the supervisor: only the owner may access the files of a home.
    os.umask(0o077)
    os.environ["SAMSA_HOME"] = str(home)
    if valkey_socket(Home(home)).exists():
        # So that streams of a revoked token end at once.
        os.environ.setdefault("REDIS_URL", store_url(Home(home))["REDIS_URL"])
    os.execv(sys.executable, [sys.executable, str(ROOT / "manage.py"), "tokens", *arguments])
