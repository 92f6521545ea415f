"""`./samsa spark`: examples, the package for other Sparks, and Spark's own servers."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

import click

from brokers.release import VERSION
from cli.home import HOME_OPTION
from cli.spark_classes import store_classes
from cli.spark_examples import list_examples, run_example
from spark_integration.jobs import programs
from spark_integration.jobs.errors import SparkError
from spark_integration.jobs.package import build_package
from spark_integration.jobs.programs import Program

MEMORY = click.option(
    "--memory", default="1g", show_default=True, help="Heap of the JVM, such as 512m or 4g."
)
HOST = click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on, which other machines must be able to reach.",
)
PAGE_HOST = click.option(
    "--page-host",
    default="127.0.0.1",
    show_default=True,
    help="Address of Spark's web page, which has no password and shows the output of jobs.",
)


@click.group(epilog="Example: ./samsa spark example clickstream --once")
def spark() -> None:
    """Run Spark examples and servers, and package the source for others."""


spark.add_command(list_examples)
spark.add_command(run_example)


@spark.command(epilog="Example: ./samsa spark package --out dist")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("dist"),
    show_default=True,
    help="Folder to write to; it is created if missing.",
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


@spark.command("store-classes", epilog="Example: ./samsa spark store-classes")
def store() -> None:
    """Store Spark's classes for Java, which halves its start time, as installing Spark does."""
    if failure := store_classes():
        raise click.ClickException(failure)


@spark.command(epilog="Example: ./samsa spark server --memory 2g")
@HOME_OPTION
@click.option("--port", default=15002, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--master",
    "at",
    default="local[*]",
    show_default=True,
    help="Where jobs run: in this process, or on the workers of spark://HOST:7077.",
)
@MEMORY
def server(home: Path, port: int, at: str, memory: str) -> None:
    """Run a Connect server on loopback until Ctrl-C; SAMSA_SPARK_TOKEN is its secret."""
    with told():
        made = programs.connect_server(home, os.environ, port=port, master=at, memory=memory)
        become(made)


@spark.command(epilog="Example: ./samsa spark master --host 10.0.0.5")
@HOME_OPTION
@HOST
@click.option("--port", default=7077, show_default=True, type=click.IntRange(1, 65535))
@PAGE_HOST
def master(home: Path, host: str, port: int, page_host: str) -> None:
    """Run a standalone master until Ctrl-C; SAMSA_SPARK_TOKEN is its secret."""
    with told():
        become(programs.master(home, os.environ, host=host, port=port, page_host=page_host))


@spark.command(epilog="Example: ./samsa spark worker spark://10.0.0.5:7077 --cores 4")
@HOME_OPTION
@HOST
@click.option(
    "--cores", default=os.cpu_count() or 1, help="Number of cores. Default: all of the machine's."
)
@MEMORY
@PAGE_HOST
@click.argument("address", metavar="spark://HOST:PORT")
def worker(home: Path, host: str, cores: int, memory: str, page_host: str, address: str) -> None:
    """Run a worker of the master at spark://HOST:PORT until Ctrl-C, with the same secret."""
    with told():
        become(
            programs.worker(
                home,
                os.environ,
                host=host,
                at=address,
                cores=cores,
                memory=memory,
                page_host=page_host,
            )
        )


@contextmanager
def told() -> Iterator[None]:
    try:
        yield
    except SparkError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from error


def become(program: Program) -> NoReturn:
    """Replace this process by a program of Spark, which gets the terminal and its signals."""
    programs.prepare(program)
    # A Python worker would import modules in its current folder instead of its own.
    os.chdir(program.folder)
    os.execve(program.command[0], program.command, dict(program.environment))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with ExitStack() as failing:
        # Also after an interrupt.
        failing.callback(Path(name).unlink, missing_ok=True)
        with open(number, "wb") as file:  # noqa: PTH123 (a descriptor)
            file.write(data)
            os.fchmod(number, 0o644)
        Path(name).replace(path)
        failing.pop_all()
