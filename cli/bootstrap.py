"""Determines the cluster of a data command, and reports its failures.

The address comes from --bootstrap, else SAMSA_BOOTSTRAP, else the settings of a running home, else
it is Kafka's usual one. Exit codes are part of the contract with scripts.
"""

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from brokers.supervisor.home import Home
from cli.home import HOME_OPTION
from gateway.kafka.connection import DEFAULT_TIMEOUT_S, Connection
from gateway.kafka.errors import KafkaFailure, Kind

USUAL_BOOTSTRAP: Final = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE: Final = "SAMSA_BOOTSTRAP"
# `up` writes a file of a few hundred bytes; ignore larger ones.
MAX_SETTINGS_BYTES: Final = 64 * 1024

# 0 means success, and 2 is click's own for an invalid command line.
EXIT_CODES: Final = {
    Kind.FAILED: 1,
    Kind.USAGE: 2,
    Kind.NOT_FOUND: 3,
    Kind.CONFLICT: 4,
    Kind.TIMEOUT: 5,
}


class ClusterError(click.ClickException):
    """A failure as shown to the user: what was wrong, and what to do next."""

    def __init__(self, failed: KafkaFailure) -> None:
        super().__init__(str(failed))
        # Click reads it from the instance, but has no such type.
        self.exit_code = EXIT_CODES[failed.kind]  # type: ignore[misc]
        self._next_step = failed.next_step

    def format_message(self) -> str:
        return f"{self.message}\nNext: {self._next_step}." if self._next_step else self.message


def default_bootstrap(home: Path) -> str:
    """Return the address of the most likely cluster."""
    return os.environ.get(BOOTSTRAP_VARIABLE) or bootstrap_of(home) or USUAL_BOOTSTRAP


def bootstrap_of(home: Path) -> str | None:
    """Return the address of a home's cluster, if it has ever run."""
    try:
        with Home(home).settings_file.open("rb") as file:
            settings = json.loads(file.read(MAX_SETTINGS_BYTES))
    except (OSError, ValueError):
        return None
    found = settings.get("bootstrap") if isinstance(settings, dict) else None
    return found if isinstance(found, str) and found else None


def parse_properties(
    _context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, str]:
    """Parse `-X name=value` to librdkafka's properties."""
    return dict(split_pair(pair, "a property") for pair in pairs)


def split_pair(text: str, what: str) -> tuple[str, str]:
    """Split KEY=VALUE at the first equals sign."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{text!r} is not {what} of the form KEY=VALUE")
    return key, value


def reaches_cluster(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a cluster to a command, as `connection`; report its failures."""

    @click.option(
        *("-b", "--bootstrap"),
        metavar="HOST:PORT,…",
        help=f"Brokers to begin with. Default: ${BOOTSTRAP_VARIABLE}, else the cluster of the"
        f" home, else {USUAL_BOOTSTRAP}.",
    )
    @HOME_OPTION
    @click.option(
        "--timeout",
        type=click.FloatRange(min=0.1, max=3600),
        default=DEFAULT_TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for the cluster.",
    )
    @click.option(
        *("-X", "properties"),
        multiple=True,
        callback=parse_properties,
        metavar="NAME=VALUE",
        help="A property of librdkafka, such as security.protocol=ssl.",
    )
    @functools.wraps(function)
    def command(
        *,
        bootstrap: str | None,
        home: Path,
        timeout: float,
        properties: dict[str, str],
        **options: object,
    ) -> None:
        connection = Connection(
            bootstrap=bootstrap or default_bootstrap(home),
            timeout_s=timeout,
            client_id="samsa-cli",
            properties=properties,
        )
        try:
            function(connection=connection, **options)
        except KafkaFailure as failed:
            raise ClusterError(failed) from failed

    return command
