"""`./samsa manage`: runs Django's own commands on the databases of a home."""

import os
import sys
from pathlib import Path

import click

from brokers.supervisor.errors import StartRefused
from brokers.supervisor.home import Home
from cli.environment import ROOT
from cli.home import HOME_OPTION


@click.command(
    # Arguments after our options are Django's, even --help.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: ./samsa manage check",
)
@HOME_OPTION
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def manage(arguments: tuple[str, ...], *, home: Path) -> None:
    """Run a management command of Django in the home."""
    try:
        Home(home).prepare()
    except StartRefused as refused:
        raise click.ClickException(str(refused)) from refused
    # Like the supervisor: only the owner may access the files of a home.
    os.umask(0o077)
    os.environ["SAMSA_HOME"] = str(home)
    os.execv(sys.executable, [sys.executable, str(ROOT / "manage.py"), *arguments])
