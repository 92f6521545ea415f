"""`./samsa up` and `./samsa node`: start a home, in the foreground or in the background.

The supervisor does the checks and the work. This module starts it, and for `--detach` shows its
messages until all components are healthy.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import click

from brokers.supervisor.errors import StartRefused
from brokers.supervisor.options import (
    DEFAULT_BIND,
    DEFAULT_BROKERS,
    DEFAULT_CONNECT_PORT,
    DEFAULT_PORT,
    DEFAULT_REST_PORT,
    DEFAULT_WEB_PORT,
    Options,
    check,
    endpoint,
)
from brokers.supervisor.ports import answers
from cli.environment import ROOT
from cli.home import HOME_OPTION

# Each component has its own limit; this one is for the waiting command, on a slow machine whose
# brokers recover unflushed data after a crash.
HEALTHY_SECONDS: Final = 120
# A supervisor that closes the pipe ends within this, or is healthy.
HUNG_UP_SECONDS: Final = 5
# Brokers run but the console does not. Not 1, after which nothing runs, nor 2, which is click's.
NO_CONSOLE_CODE: Final = 3
POSTGRES_SCHEMES: Final = frozenset({"postgres", "postgresql", "psql", "pgsql"})
POSTGRES_PORT: Final = 5432
HOW_TO_NAME_A_DATABASE: Final = (
    "write postgres://USER:PASSWORD@HOST/NAME, or unset it to use the home's own SQLite files"
)


def start_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of both `up` and `node` to a command."""
    for option in (
        click.option("--detach", is_flag=True, help="Return when all components are healthy."),
        click.option(
            "--insecure",
            is_flag=True,
            help="Allow --bind to a network address, without authentication.",
        ),
        click.option(
            "--advertise",
            default="",
            metavar="HOST",
            help="Host name that the brokers advertise to clients.",
        ),
        click.option(
            "--bind",
            default=DEFAULT_BIND,
            metavar="ADDR",
            show_default=True,
            help="Address that the brokers listen on.",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="Set a broker config for this run; overrides broker.properties. May be repeated.",
        ),
        click.option(
            "--port",
            default=DEFAULT_PORT,
            show_default=True,
            help="Port of the first broker; the others use the next ports. 0 picks free ports.",
        ),
        click.option(
            "--brokers",
            default=DEFAULT_BROKERS,
            show_default=True,
            metavar="N",
            help="Number of brokers; each uses one core.",
        ),
        HOME_OPTION,
    ):
        command = option(command)
    return command


@click.command(epilog="Example: ./samsa up --brokers 3 --detach")
@start_options
@click.option(
    "--web-port",
    type=int,
    metavar="PORT",
    help=f"Port of the console; 0 picks a free port. Default: {DEFAULT_WEB_PORT}, or the next free"
    " port.",
)
@click.option(
    "--rest-port",
    type=int,
    metavar="PORT",
    help=f"Port of the gateway; 0 picks a free port. Default: {DEFAULT_REST_PORT}, or the next free"
    " port.",
)
@click.option(
    "--connect-port",
    type=int,
    metavar="PORT",
    help="Port of the Kafka Connect REST API, which the console serves too; 0 picks a free port. "
    f"Default: {DEFAULT_CONNECT_PORT}, or the next free port.",
)
@click.option(
    "--web-bind",
    default="",
    metavar="ADDR",
    help="Address that console and gateway listen on. Default: that of --bind. A network address "
    "needs TLS or a proxy.",
)
@click.option(
    "--web-cert",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Serve console and gateway with TLS, by this certificate and --web-key.",
)
@click.option(
    "--web-key", type=click.Path(path_type=Path), metavar="FILE", help="Private key of --web-cert."
)
@click.option(
    "--gateway-workers",
    default=1,
    show_default=True,
    metavar="N",
    help="Number of gateway processes; each uses one core.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    metavar="N",
    help="Number of processes that run connector tasks. They run only while connectors exist; 0"
    " runs none here.",
)
@click.option(
    "--metrics-topic",
    default="",
    metavar="NAME",
    help="Write the collector's samples to this topic every ten seconds; the topic is created if it"
    " is missing. Default: no topic.",
)
def up(
    *,
    web_port: int | None,
    rest_port: int | None,
    connect_port: int | None,
    web_cert: Path | None,
    web_key: Path | None,
    port: int,
    **given: Any,  # noqa: ANN401 (click's own values, named in `start`)
) -> None:
    """Start brokers, their agent, the console and the gateway."""
    # `--port 0` chooses free ports for all components: web, gateway and Connect, too.
    usual = (DEFAULT_WEB_PORT, DEFAULT_REST_PORT, DEFAULT_CONNECT_PORT)
    web, rest, connect = usual if port else (0, 0, 0)
    start(
        port=port,
        web_port=web if web_port is None else web_port,
        rest_port=rest if rest_port is None else rest_port,
        connect_port=connect if connect_port is None else connect_port,
        can_web_port_move=web_port is None,
        can_rest_port_move=rest_port is None,
        can_connect_port_move=connect_port is None,
        web_cert=web_cert and web_cert.absolute(),
        web_key=web_key and web_key.absolute(),
        **given,
    )


@click.command(epilog="Example: ./samsa node --brokers 2 --port 9192 --workers 1")
@start_options
@click.option(
    "--workers",
    default=0,
    show_default=True,
    metavar="N",
    help="Number of processes that run connector tasks here. They take work from REDIS_URL.",
)
def node(*, workers: int, **given: Any) -> None:  # noqa: ANN401
    """Start an agent and brokers that join the cluster of DATABASE_URL."""
    if not os.environ.get("DATABASE_URL"):
        raise click.ClickException(
            "DATABASE_URL is not set: set it to the database of the cluster that this node joins,"
            " as postgres://USER:PASSWORD@HOST/NAME (`up` needs none)"
        )
    if workers and not os.environ.get("REDIS_URL"):
        raise click.ClickException(
            "REDIS_URL is not set: --workers needs the Valkey or Redis of the cluster's console,"
            " as redis://HOST:6379/0"
        )
    start(web_port=None, workers=workers, **given)


def start(*, insecure: bool, detach: bool, **given: Any) -> None:  # noqa: ANN401
    """Start a home; `given` has the fields of its options by the same names."""
    options = Options(is_insecure=insecure, is_detached=detach, **given)
    try:
        check(options)
    except StartRefused as refused:
        raise click.UsageError(str(refused)) from refused
    try:
        check_database(os.environ.get("DATABASE_URL", ""))
    except StartRefused as refused:
        raise click.ClickException(str(refused)) from refused
    command = [sys.executable, "-m", "brokers.supervisor", *options.arguments()]
    # Components are found from the checkout, and no process should keep the user's folder busy.
    os.chdir(ROOT)
    if detach:
        sys.exit(start_detached(command))
    sys.stdout.flush()
    # Replace this process, so that Ctrl-C interrupts the supervisor itself.
    os.execv(command[0], command)


def check_database(url: str) -> None:
    """Refuse an unreachable database; never show the URL, which may contain a password."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or POSTGRES_PORT
    except ValueError as error:
        raise StartRefused(
            f"DATABASE_URL is not a URL ({error}): {HOW_TO_NAME_A_DATABASE}"
        ) from error
    if parts.scheme not in POSTGRES_SCHEMES:
        raise StartRefused(
            f"DATABASE_URL begins with {parts.scheme + ':' if parts.scheme else 'no scheme'}, but "
            f"only PostgreSQL is supported: {HOW_TO_NAME_A_DATABASE}"
        )
    # An escaped host, or one among the parameters, is the folder of a unix socket.
    is_socket = not host or "%" in host or "host" in parse_qs(parts.query)
    if not is_socket and not answers(host, port):
        raise StartRefused(
            f"no server answers at {endpoint(host, port)}, the address in DATABASE_URL: start "
            "PostgreSQL there, or correct DATABASE_URL"
        )


def start_detached(command: list[str]) -> int:
    """Start the supervisor in its own session and show its start; return the exit code."""
    supervisor = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert supervisor.stdout is not None
    with supervisor.stdout as pipe:
        try:
            return follow(supervisor, pipe.fileno())
        except KeyboardInterrupt:
            supervisor.terminate()
            show("stopping again")
            return supervisor.wait() or 130


def follow(supervisor: "subprocess.Popen[bytes]", pipe: int) -> int:
    deadline = time.monotonic() + HEALTHY_SECONDS
    for line in lines_until(pipe, deadline):
        message = parse(line)
        if message is None:
            # A traceback, or the supervisor's reason not to start.
            show(line, is_error=True)
        elif "started" in message:
            show("\n".join(("", *message["started"])))
            # It continues in its own session, without a parent that waits for it.
            supervisor.returncode = 0
            if not message["complaint"]:
                return 0
            show(f"samsa: {message['complaint']}", is_error=True)
            return NO_CONSOLE_CODE
        else:
            show(message.get("say", ""))
    if time.monotonic() < deadline:
        try:
            return supervisor.wait(HUNG_UP_SECONDS) or 1
        except subprocess.TimeoutExpired:
            # If the closing message was not read, it lives, so all components were healthy.
            supervisor.returncode = 0
            show("all is healthy; see `status`")
            return 0
    supervisor.returncode = 1
    show(
        f"samsa: not all is healthy after {HEALTHY_SECONDS} s; the processes keep starting: "
        "see `status` and `logs`, or stop it with `down`",
        is_error=True,
    )
    return 1


def show(line: str, *, is_error: bool = False) -> None:
    try:
        click.echo(line, err=is_error)
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe; keep the start and its exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2 if is_error else 1)


def lines_until(pipe: int, deadline: float) -> Iterator[str]:
    """Yield lines from the supervisor until it closes the pipe or the time is over."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                return
            block = os.read(pipe, 65_536)
            if not block:
                return
            *lines, rest = (rest + block).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)


def parse(line: str) -> dict[str, Any] | None:
    """Return a message of the supervisor; None for any other line."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
