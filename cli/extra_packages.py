"""`./samsa extras`: install packages that only some connectors need.

Each extra has a requirements file of its own, locked by hash like the product's; installed extras
stay until `.venv` is created again.
"""

import os
from collections.abc import Sequence

import click

from cli.environment import EXTRAS, Environment
from cli.installer import InstallError
from cli.spark_classes import store_classes
from spark_integration.jobs.java import machine_java


@click.group(epilog="Example: ./samsa extras install parquet")
def extras() -> None:
    """List and install optional packages that some connectors need."""


@extras.command("list", epilog="Example: ./samsa extras list")
def list_extras() -> None:
    """List the extras, their state and their purpose."""
    environment = Environment()
    width = max(map(len, EXTRAS))
    for name, packages in EXTRAS.items():
        state = "installed" if environment.has(name) else "missing"
        click.echo(f"{name:{width}}  {state:9}  {packages.purpose}")


@extras.command(epilog="Example: ./samsa extras install spark")
@click.option(
    "--without-classes",
    is_flag=True,
    help="Skip `./samsa spark store-classes`, which takes half a minute.",
)
@click.argument("names", nargs=-1, required=True)
def install(names: tuple[str, ...], *, without_classes: bool) -> None:
    """Install extras by name. Running workers use them at once."""
    unknown = [name for name in names if name not in EXTRAS]
    if unknown:
        raise click.ClickException(
            f"unknown extra: {', '.join(unknown)}; choose from {', '.join(EXTRAS)}"
        )
    environment = Environment()
    for name in with_needs(names):
        try:
            environment.ensure(name)
        except InstallError as error:
            raise click.ClickException(f"{name}: {error}") from error
        click.echo(f"{name} is installed; running workers use it at once")
    if "spark" in names and not without_classes and (failure := store_classes()):
        click.echo(failure, err=True)


def with_needs(names: Sequence[str]) -> list[str]:
    """Add extras that these require and the machine does not provide."""
    needs_java = "spark" in names and "java" not in names and machine_java(os.environ) is None
    return [*names, *(["java"] if needs_java else [])]
