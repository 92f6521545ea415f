"""Reads the Spark page: the session that connectors share, and what each of them does in it.

A query is a connector whose tasks run in the session. The page does not know a user's own Spark.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from brokers.controlplane import selectors as controlplane
from connectors import selectors, worker_reports
from connectors.selectors import ConnectorInfo, Status
from connectors.worker_reports import SPARK
from console import durations
from console.queries import extras
from console.queries.brokers import may_view
from console.queries.connect import Behind, groups_of, rate_of, visible
from console.queries.connector_states import ORDER, STATES, causes_of, state_of
from console.queries.frame import Frame, frame
from console.queries.lag import Mark
from console.queries.reading import Reading, last_good, moment
from console.queries.spark_sessions import Session, Stream, moment_of, sessions_of
from gateway.access.grants import Rights
from gateway.access.operations import Operation

# Config keys of connectors that run on Spark.
TOPICS, OUTPUT_TOPIC, TABLE = "topics", "output.topic", "table.path"
BATCH: Final = "last_batch"
# Bootstrap addresses in a snippet; a client discovers the others from them.
MAX_BOOTSTRAP: Final = 3
PACKAGE: Final = "pyspark"
NO_BREAK: Final = "\u00a0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The last batch of a query."""

    records: int
    rows: int
    took: str
    # The time to read, write and wait before, in words.
    parts: str
    newest_at: datetime | None
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One connector that runs on Spark."""

    name: str
    title: str
    state: str
    mark: Mark
    cause: str
    rate: float | None
    batch: Batch | None
    behind: Behind | None
    topics: tuple[str, ...]
    # The output: a topic, or a table below the home's files.
    to_topic: str
    to_table: str
    table_format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPage:
    frame: Frame
    is_whole: bool = True
    rows: tuple[QueryRow, ...] = ()
    failed: int = 0
    # None if the user may not see the cluster itself, and so none of its workers.
    sessions: tuple[Session, ...] | None = None
    may_create: bool = False
    # Whether the extra is installed on the host of this console.
    is_installed: bool = True
    bootstrap: str = ""

    @property
    def streams(self) -> tuple[Stream, ...]:
        return tuple(stream for one in self.sessions or () for stream in one.streams)


def spark(cluster_id: str | None, rights: Rights) -> Reading[SparkPage]:
    return last_good.read(
        ("spark", cluster_id, rights.grants),
        lambda: _read(cluster_id, rights),
        is_empty=lambda data: not data.rows,
    )


def _read(cluster_id: str | None, rights: Rights) -> SparkPage:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return SparkPage(frame=around)
    cluster = around.shown.cluster_id
    names = visible(rights, cluster)
    there = selectors.names(cluster, pool=SPARK)
    rows = _rows(around, names.among(there), rights)
    is_installed = extras.is_installed(PACKAGE)
    told = worker_reports.reports(cluster, SPARK) if may_view(rights, cluster) else None
    return SparkPage(
        frame=around,
        is_whole=names.is_all,
        rows=tuple(rows),
        failed=sum(row.mark.state == "bad" for row in rows),
        sessions=None
        if told is None
        else sessions_of(told, is_wanted=bool(there), is_installed=is_installed),
        may_create=rights.allows_somewhere(Operation.CREATE_CONNECTORS, cluster=cluster),
        is_installed=is_installed,
        # As on other pages, only users who may see the whole cluster see addresses.
        bootstrap="" if told is None else _bootstrap(cluster),
    )


def _rows(around: Frame, names: Iterable[str], rights: Rights) -> list[QueryRow]:
    assert around.shown is not None, "there is a cluster"
    cluster = around.shown.cluster_id
    infos = selectors.connectors(cluster, among=names)
    among = [info.name for info in infos]
    told = {one.name: one for one in selectors.statuses(cluster, reader=rights, among=among)}
    causes = causes_of(told.values())
    titles = {plugin.name: plugin.title for plugin in selectors.catalogue()}
    groups = groups_of(around, told, rights)
    rows = [
        _row(
            info,
            told[info.name],
            title=titles.get(info.plugin, info.plugin),
            cause=causes.get(info.name, ""),
            behind=groups.get(info.name),
        )
        for info in infos
        if info.name in told
    ]
    return sorted(rows, key=lambda row: (ORDER[row.state], row.name))


def _row(
    info: ConnectorInfo, status: Status, *, title: str, cause: str, behind: Behind | None
) -> QueryRow:
    state = state_of(status)
    target = info.config.get(OUTPUT_TOPIC, "").strip()
    # A pattern names no topic: show the topics that were read.
    named = tuple(filter(None, map(str.strip, info.config.get(TOPICS, "").split(","))))
    return QueryRow(
        name=info.name,
        title=title,
        state=state,
        mark=STATES[state],
        cause=cause,
        rate=rate_of(status),
        batch=_batch(status),
        behind=behind,
        topics=named or tuple(topic for topic in info.topics if topic != target),
        to_topic=target,
        to_table=info.config.get(TABLE, "").strip(),
        table_format=info.config.get("table.format", "parquet"),
    )


def _batch(status: Status) -> Batch | None:
    """Return the newest batch that a task has completed."""
    found = [told for task in status.tasks if (told := task.figures.get(BATCH))]
    if not found:
        return None
    told = max(found, key=lambda one: int(one["ended_ms"]))
    return Batch(
        records=int(told["records"]),
        rows=int(told["rows"]),
        took=durations.span(told["read_s"] + told["write_s"]),
        parts=_parts(told),
        newest_at=moment_of(told["newest_ms"]),
        ended_at=moment(told["ended_ms"] / 1000),
    )


def _parts(told: Mapping[str, Any]) -> str:
    parts = [f"{durations.span(told['read_s'])} read", f"{durations.span(told['write_s'])} written"]
    if told["waited_s"] is not None:
        parts.append(f"{durations.span(told['waited_s'])} waited")
    # Allow line breaks between parts, not within one.
    return ", ".join(part.replace(" ", NO_BREAK) for part in parts)


def _bootstrap(cluster_id: str) -> str:
    serving = [one for one in controlplane.brokers(cluster_id=cluster_id) if not one.is_fenced]
    return ",".join(f"{one.host}:{one.port}" for one in serving[:MAX_BOOTSTRAP])
