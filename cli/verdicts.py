"""Asks the collector of a home for the verdicts on groups, where the home's cluster is meant.

Kafka's protocol knows no verdicts, so a command that reaches another cluster has none; neither has
a home without a web server, which runs no collector.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from brokers.supervisor.home import COLLECTOR_SOCKET, Home
from cli.bootstrap import bootstrap_of
from console.monitoring.selectors import CollectorFailed, Line, Reach
from console.monitoring.tables import FORMAT, GroupRow
from console.monitoring.verdicts import MEANINGS, WORDS
from gateway.kafka.connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The verdict on a group, as the console's pages show it."""

    value: str
    word: str
    meaning: str
    since_ms: int

    @property
    def sentence(self) -> str:
        began = datetime.fromtimestamp(self.since_ms / 1000).astimezone()
        return f"{self.word} since {began:%Y-%m-%d %H:%M:%S}. {self.meaning}"

    def json(self) -> dict[str, Any]:
        return {"verdict": self.value, "rule": self.meaning, "since_ms": self.since_ms or None}


def verdicts(connection: Connection) -> dict[str, Told]:
    """Return the verdict on each group of the cluster; nothing where no collector follows it."""
    home: Path | None = click.get_current_context().params.get("home")
    if home is None or connection.bootstrap != bootstrap_of(home):
        return {}
    line = Line(Reach(socket=Home(home).socket_folder() / COLLECTOR_SOCKET))
    try:
        told = line.ask("/snapshot")
        if told["format"] != FORMAT:
            return {}
        rows = [GroupRow(*row) for row in told["rows"]["groups"].values()]
    except CollectorFailed:
        return {}
    finally:
        line.close()
    return {
        row.name: Told(
            value=row.verdict,
            word=WORDS[row.verdict_value],
            meaning=MEANINGS[row.rule],
            since_ms=row.since_ms,
        )
        for row in rows
    }
