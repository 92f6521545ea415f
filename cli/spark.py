"""`./samsa spark`: what a Spark of one's own needs for `format("samsa")`."""

import os
import tempfile
from pathlib import Path

import click

from cli.version import VERSION
from spark_integration.jobs.package import build_package


@click.group
def spark() -> None:
    """Make what a Spark of one's own needs."""


@spark.command
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("dist"),
    show_default=True,
    help="The folder to write to; it is made where it is missing.",
)
def package(out: Path) -> None:
    """Build pyspark_samsa, a wheel to install and a zip for addPyFile; needs no network."""
    built = build_package(VERSION)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, data in ((built.wheel_name, built.wheel), (built.zip_name, built.zip)):
            write_whole(out / name, data)
            click.echo(out / name)
    except OSError as error:
        raise click.ClickException(
            f"cannot write to {out}: {error.strerror or error}; name another folder with --out"
        ) from error


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that nobody ever sees half of."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(number, "wb") as file:  # noqa: PTH123 (a descriptor)
            file.write(data)
            os.fchmod(number, 0o644)
        Path(name).replace(path)
    except BaseException:  # an interrupt leaves no file behind, either
        Path(name).unlink(missing_ok=True)
        raise
