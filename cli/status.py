"""`./samsa status`: shows the processes of a home, as text or, with `--json`, for scripts."""

import json
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from brokers.supervisor import client
from brokers.supervisor.errors import NotRunning
from brokers.supervisor.home import Home
from cli.home import HOME_OPTION

# The status of a stopped home has the same keys, so that scripts need no special case.
STOPPED: Final[Mapping[str, Any]] = {
    "bootstrap": None,
    "console": None,
    "gateway": None,
    "connect": None,
    "brokers": [],
    "components": [],
    "disks": [],
}
HEALTHY: Final = "healthy"
# An end that is older than this is history, which the log has.
RECENT_MS: Final = 24 * 3600 * 1000
# state: its symbol and its colour on a terminal
SHAPES: Final[Mapping[str, tuple[str, str]]] = {
    HEALTHY: ("●", "green"),
    "starting": ("◌", "yellow"),
    "restarting": ("▲", "yellow"),
    "stopping": ("◌", "yellow"),
    "stopped": ("◌", "yellow"),
    "unresponsive": ("▲", "yellow"),
    "degraded": ("▲", "red"),
    "crash-loop": ("■", "red"),
}


@click.command(epilog="Example: ./samsa status --json")
@HOME_OPTION
@click.option("--json", "is_json", is_flag=True, help="Print JSON, for scripts.")
def status(*, home: Path, is_json: bool) -> None:
    """Show the components of the home; exit 0 only if all are healthy."""
    try:
        told = client.ask(Home(home), "status")
    except NotRunning as error:
        if is_json:
            click.echo(json.dumps({**STOPPED, "home": str(home)}))
        click.echo(f"{error}", err=True)
        sys.exit(1)
    click.echo(json.dumps(told, indent=2) if is_json else shown(told))
    rows = [*told["components"], *told.get("disks", [])]
    sys.exit(0 if all(entry["state"] == HEALTHY for entry in rows) else 1)


def shown(told: Mapping[str, Any]) -> str:
    """Format the status as text."""
    ports = {entry["pid"]: entry for entry in told["brokers"] if entry["pid"] and entry["port"]}
    lines = [
        f"Home      {told['home']}",
        f"Kafka     {told['bootstrap']}",
        *([f"Console   {told['console']}"] if told["console"] else []),
        *([f"REST      {told['gateway']}"] if told.get("gateway") else []),
        *([f"Connect   {told['connect']}"] if told.get("connect") else []),
        "",
    ]
    width = max([10, *(len(entry["name"]) for entry in told["components"])])
    for entry in told["components"]:
        shape, colour = SHAPES.get(entry["state"], ("?", "yellow"))
        state = click.style(f"{shape} {entry['state']}", fg=colour)
        padding = " " * max(1, 14 - len(entry["state"]))
        broker = ports.get(entry["pid"])
        where = f"  id {broker['id']}, {broker['host']}:{broker['port']}" if broker else ""
        reason = f"  {entry['reason']}" if entry.get("reason") else ""
        if entry.get("last_end"):
            reason += f"  {last_end(entry)}"
        process = f"process {entry['pid']}" if entry["pid"] else ""
        lines.append(
            f"{entry['name']:<{width}}  {state}{padding}{process:<16}{where}{reason}".rstrip()
        )
        lines += [f"    | {line}" for line in entry.get("last_lines", [])]
    for disk in told.get("disks", []):
        if disk["state"] != HEALTHY:
            lines.append(click.style("■ ", fg="red") + disk["reason"])
    return "\n".join(lines)


def last_end(entry: Mapping[str, Any]) -> str:
    """Return how often a process was restarted, and how and when it ended last."""
    at_ms, how = entry["last_end"]["at_ms"], entry["last_end"]["how"]
    at = datetime.fromtimestamp(at_ms / 1000).astimezone()
    is_recent = time.time() * 1000 - at_ms < RECENT_MS
    when = at.strftime("%H:%M:%S" if is_recent else "%Y-%m-%d %H:%M:%S")
    again = f" (end {entry['restarts']} of it)" if entry["restarts"] > 1 else ""
    return f"{how} at {when}{again}"
