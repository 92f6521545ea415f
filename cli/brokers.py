"""`./samsa brokers`: starts, stops, restarts and holds a broker of a home, through its supervisor.

BROKER is its id in the cluster, or its name in `./samsa status`. A stopped broker stays stopped,
and one on hold stays on hold, even after a restart of the home.
"""

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from brokers.supervisor import client
from brokers.supervisor.errors import NotRunning
from brokers.supervisor.home import Home
from cli.home import HOME_OPTION

# Exceeds the supervisor's longest operations: a stop, and a start that recovers logs.
ORDER_SECONDS: Final = 60.0


@click.group(epilog="Example: ./samsa brokers restart broker-1")
def brokers() -> None:
    """Start, stop, restart and hold a broker of the home."""


def verb(
    function: Callable[..., None],
) -> click.Command:
    """Return a subcommand that takes a broker."""
    taken: Callable[..., Any] = click.argument("broker")(HOME_OPTION(function))
    example = f"Example: ./samsa brokers {function.__name__} broker-1"
    return brokers.command(epilog=example)(taken)


@verb
def start(*, home: Path, broker: str) -> None:
    """Start a stopped BROKER, and wait until it accepts clients."""
    order(home, "start", broker)


@verb
def stop(*, home: Path, broker: str) -> None:
    """Stop a BROKER. Partitions without another replica are unavailable until it starts."""
    order(home, "stop", broker)


@verb
def restart(*, home: Path, broker: str) -> None:
    """Stop a BROKER, start it again, and wait until it accepts clients."""
    order(home, "restart", broker)


@verb
def hold(*, home: Path, broker: str) -> None:
    """Put a BROKER on hold: it is monitored, but not restarted if it hangs or exits."""
    order(home, "hold", broker)


@verb
def release(*, home: Path, broker: str) -> None:
    """Release a BROKER from its hold, and start it if it has exited meanwhile."""
    order(home, "release", broker)


def order(home: Path, name: str, broker: str) -> None:
    by = f"{getpass.getuser()} on this host"
    try:
        told = client.ask(Home(home), f"broker.{name}", seconds=ORDER_SECONDS, broker=broker, by=by)
    except NotRunning as error:
        raise click.ClickException(str(error)) from error
    if "error" in told:
        raise click.ClickException(str(told["error"]))
    click.echo(told["sentence"])
