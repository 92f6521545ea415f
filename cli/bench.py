"""`./samsa bench`: runs benchmarks in a process of their own."""

import os
import sys

import click

from cli.environment import ROOT, Environment
from cli.installer import InstallError


@click.command(
    # Everything is passed on, --help too: the suites are known to bench alone.
    context_settings={"ignore_unknown_options": True, "help_option_names": []}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Run the benchmarks: [SUITE] [--json FILE]."""
    try:
        Environment().ensure("test")
    except InstallError as error:
        raise click.ClickException(str(error)) from error
    # One of the contenders loads hypothesis, which would leave its folder where the user stands.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(ROOT / ".hypothesis"))
    # In place of this process: nothing else runs beside what is measured, and a relative FILE
    # still means the user's folder.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "bench", *arguments])
