"""`./samsa bench`: runs benchmarks in a process of their own."""

import os
import sys

import click

from cli.environment import ROOT, Environment
from cli.installer import InstallError


@click.command(
    # Pass on all arguments, even --help: only bench knows the suites.
    context_settings={"ignore_unknown_options": True, "help_option_names": []}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Run the benchmarks: [SUITE] [--json FILE]."""
    try:
        Environment().ensure("test")
    except InstallError as error:
        raise click.ClickException(str(error)) from error
    # A contender imports hypothesis, which would create its folder in the user's current one.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(ROOT / ".hypothesis"))
    # Replace this process: nothing else should run during a measurement, and a relative FILE
    # still refers to the user's folder.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "bench", *arguments])
