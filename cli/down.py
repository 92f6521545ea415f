"""`./samsa down`: stop a home, and leave no process behind."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from brokers.supervisor import client, leftovers
from brokers.supervisor.errors import NotRunning
from brokers.supervisor.home import Home
from cli.home import HOME_OPTION

# The supervisor's own stop ends within this; remaining processes are killed.
STOP_SECONDS: Final = 27
# The time for processes without a supervisor to end, before they are killed.
LEFTOVER_SECONDS: Final = 10
POLL_SECONDS: Final = 0.05
# Part of the supervisor's command line.
SUPERVISOR: Final = b"brokers.supervisor"


@click.command(epilog="Example: ./samsa down")
@HOME_OPTION
def down(*, home: Path) -> None:
    """Stop all components of the home."""
    place = Home(home)
    if not place.is_owned() and not is_any_left(home):
        click.echo(f"{home} is not running")
        return
    started = time.monotonic()
    if place.is_owned():
        stop_supervisor(place)
    stop_leftovers(home)
    click.echo(f"{home} stopped in {time.monotonic() - started:.1f} s")


def stop_supervisor(place: Home) -> None:
    """Ask the supervisor to stop, and kill it if it does not."""
    end = time.monotonic() + STOP_SECONDS
    process = place.owner()
    try:
        client.ask(place, "stop")
    except NotRunning as error:
        click.echo(str(error), err=True)
        end = time.monotonic()
    # It releases the home some moments before it ends.
    while place.is_owned() or is_supervisor(process):
        if time.monotonic() > end:
            kill(place.owner() if place.is_owned() else process)
        time.sleep(POLL_SECONDS)


def is_supervisor(process: int) -> bool:
    """Return whether a process is a supervisor; 0 means that the owner has not written it yet."""
    try:
        return process > 0 and SUPERVISOR in Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(process: int) -> None:
    """Kill a supervisor, unless its number belongs to another process by now."""
    # It may have ended since the check.
    with suppress(ProcessLookupError):
        if is_supervisor(process):
            os.kill(process, signal.SIGKILL)


def stop_leftovers(home: Path) -> None:
    """End processes whose supervisor is gone: the kernel has signalled them already."""
    end = time.monotonic() + LEFTOVER_SECONDS
    leftovers.send(home, signal.SIGTERM)
    while is_any_left(home) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    for pause in leftovers.kill_all(home, time.monotonic):
        time.sleep(pause)


def is_any_left(home: Path) -> bool:
    """Check twice, since one scan may miss a process that is just starting another program."""
    if any(leftovers.marked(home)):
        return True
    time.sleep(leftovers.SCAN_SECONDS)
    return any(leftovers.marked(home))
