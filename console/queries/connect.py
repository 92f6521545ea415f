"""Reads the list of connectors: those in need first, with their rates and the lag of sinks."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from connectors import selectors
from connectors.selectors import ConnectorInfo, Plugin, Status, TaskStatus
from console import group_names
from console.monitoring.tables import GroupRow
from console.queries.connector_states import (
    FAILED,
    IN_TROUBLE,
    LOSING,
    LOSING_SOME,
    ORDER,
    PARTLY,
    RUNNING,
    STATES,
    Trouble,
    causes_of,
    is_retrying,
    state_of,
    troubles,
)
from console.queries.frame import Frame, frame
from console.queries.lag import MARKS, Mark
from console.queries.reading import Reading, last_good
from gateway.access.grants import Names, Rights
from gateway.access.operations import Kind, Operation

SINK: Final = "sink"
# The shortest duration of a batch, so that the divisor is never zero.
SHORTEST_CYCLE_S: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The lag of a sink's group, as the collector reports it.

    `mark` is None where the group is fine and its connector is not: what is read is not written.
    """

    mark: Mark | None
    lag: int
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    kind: str
    title: str  # of the plugin
    state: str
    mark: Mark
    running: int
    retrying: int
    tasks: int
    # Records that became dead letters, and those that were skipped without one.
    dead: int
    dropped: int
    cause: str  # the first line of the error
    restarts: int
    rate: float | None  # records per second, over the last seconds
    behind: Behind | None
    topics: tuple[str, ...]
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Connectors:
    frame: Frame
    is_whole: bool = True
    rows: tuple[Row, ...] = ()
    failed: int = 0
    losing: int = 0
    # No worker has sent a heartbeat lately, and some connector needs one.
    lacks_workers: bool = False
    may_create: bool = False
    # What can be created here, by title; empty for a user who may not.
    plugins: tuple[Plugin, ...] = ()


def connectors(cluster_id: str | None, rights: Rights) -> Reading[Connectors]:
    return last_good.read(
        ("connectors", cluster_id, rights.grants),
        lambda: _read(cluster_id, rights),
        is_empty=lambda data: not data.rows,
    )


def visible(rights: Rights, cluster_id: str) -> Names:
    """Return the connectors that a user may see."""
    return rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.CONNECTOR)


def _read(cluster_id: str | None, rights: Rights) -> Connectors:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return Connectors(frame=around)
    cluster = around.shown.cluster_id
    names = visible(rights, cluster)
    infos = [info for info in selectors.connectors(cluster) if info.name in names]
    told = {status.name: status for status in selectors.statuses(cluster, reader=rights)}
    causes = causes_of(told.values())
    plugins = sorted(selectors.catalogue(), key=lambda one: one.title.casefold())
    titles = {plugin.name: plugin.title for plugin in plugins}
    may_create = rights.allows_somewhere(Operation.CREATE_CONNECTORS, cluster=cluster)
    groups = groups_of(around, (info.name for info in infos if info.kind == SINK), rights)
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
    rows.sort(key=lambda row: (ORDER[row.state], row.name))
    return Connectors(
        frame=around,
        is_whole=names.is_all,
        rows=tuple(rows),
        failed=sum(row.state in (FAILED, PARTLY) for row in rows),
        losing=sum(row.state in (LOSING, LOSING_SOME) for row in rows),
        may_create=may_create,
        plugins=tuple(plugins) if may_create else (),
        lacks_workers=bool(rows) and not selectors.has_workers(cluster),
    )


def troubled(cluster: str, rights: Rights) -> list[Trouble]:
    """Return connectors in trouble that the user may see, the worst first."""
    names = visible(rights, cluster)
    return [trouble for trouble in troubles(cluster, rights) if trouble.name in names]


def groups_of(around: Frame, names: Iterable[str], rights: Rights) -> dict[str, Behind]:
    """Return the lag of each sink whose group the user may see, by connector."""
    if around.shown is None or around.live is None:
        return {}
    cluster = around.shown.cluster_id
    may_see = rights.names(Operation.VIEW, cluster=cluster, kind=Kind.GROUP)
    table = around.live.snapshot.tables.get("groups", {})
    found = {}
    for name in names:
        group = selectors.group_of(name)
        told = table.get(group)
        if told is not None and group in may_see:
            row = GroupRow(*told)
            found[name] = Behind(
                mark=MARKS[row.verdict_value], lag=row.lag, link=group_names.link(cluster, group)
            )
    return found


def rate_of(status: Status) -> float | None:
    """Return the records per second of all tasks; None if no task reports a rate."""
    rates = [rate for task in status.tasks if (rate := task_rate(task, status.kind)) is not None]
    return sum(rates) if rates else None


def task_rate(task: TaskStatus, kind: str) -> float | None:
    """Return the records per second of a running task; the row of another keeps its last rate."""
    if task.state == RUNNING and (batch := task.figures.get("last_batch")):
        return batch_rate(batch, 1000 * time.time())
    rate = task.figures.get("read_per_s" if kind == SINK else "written_per_s")
    return None if rate is None or task.state != RUNNING else float(rate)


def batch_rate(batch: Mapping[str, Any], now_ms: float) -> float:
    """Return the records per second of a job by its last batch, including the wait before it.

    Counts of the last seconds would jump between zero and a whole batch. The rate falls while the
    next batch is late.
    """
    cycle_s = batch["read_s"] + batch["write_s"] + (batch["waited_s"] or 0.0)
    since_s = (now_ms - batch["ended_ms"]) / 1000
    return float(batch["records"] / max(cycle_s, since_s, SHORTEST_CYCLE_S))


def behind_of(behind: Behind | None, state: str) -> Behind | None:
    """Return a lag without a mark that says fine beside a connector in trouble."""
    if behind is None or behind.mark is None or state not in IN_TROUBLE:
        return behind
    return replace(behind, mark=None) if behind.mark.state == "ok" else behind


def _row(
    info: ConnectorInfo, status: Status, *, title: str, cause: str, behind: Behind | None
) -> Row:
    state = state_of(status)
    lost, dead = (_sum(status, name) for name in ("records_lost", "dead_letters"))
    return Row(
        name=info.name,
        kind=info.kind,
        title=title,
        state=state,
        mark=STATES[state],
        running=sum(task.state == RUNNING and not is_retrying(task) for task in status.tasks),
        retrying=sum(is_retrying(task) for task in status.tasks),
        dead=dead,
        dropped=max(0, lost - dead),
        tasks=len(status.tasks),
        cause=cause,
        restarts=sum(task.restarts for task in status.tasks),
        rate=rate_of(status),
        behind=behind_of(behind, state),
        topics=info.topics,
        changed_at=info.changed_at,
    )


def _sum(status: Status, name: str) -> int:
    return sum(int(task.figures.get(name, 0)) for task in status.tasks)
