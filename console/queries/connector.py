"""Reads the page of one connector: its state, tasks, config, log and offsets."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from connectors import selectors
from connectors.runtime.condition import FIRST_SUCCESS_S, WINDOW_MINUTES, Losing, Retrying
from connectors.selectors import ConnectorInfo, Line, Status, TaskStatus
from console import group_names
from console.queries.connect import SINK, Behind, behind_of, groups_of, rate_of, task_rate, visible
from console.queries.connector_states import (
    FAILED,
    PARTLY,
    STATES,
    cause_of,
    losing_of,
    retry_words,
    retrying_of,
    state_of,
    task_state,
)
from console.queries.frame import Frame, frame
from console.queries.lag import Mark
from console.queries.reading import Reading, last_good, moment
from gateway.access.grants import Resource, Rights, decide
from gateway.access.operations import Kind, Operation

# Log lines that a page shows; the newest thousand are stored.
MAX_LINES: Final = 300
# Source partitions that a page shows; the REST interface returns all.
MAX_PLACES: Final = 500
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
CAUSES: Final = "errors.deadletterqueue.context.headers.enable"
LEVELS: Final[Mapping[str, str]] = {"ERROR": "bad", "WARN": "warn", "WARNING": "warn"}


class Tab(Enum):
    TASKS = "tasks"
    CONFIG = "config"
    LOG = "log"
    OFFSETS = "offsets"
    DEAD = "dead-letters"  # has pages of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    number: int
    mark: Mark
    worker: str
    restarts: int
    tries: int  # failures in a row up to now
    trace: str
    read: int
    written: int
    skipped: int
    lost: int
    dead: int
    rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    line: Line
    mark: str  # the CSS class of its level, or empty


@dataclass(frozen=True, slots=True, kw_only=True)
class May:
    """What the user may do with this connector."""

    operate: bool
    alter: bool
    delete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """The dead letter topic of a sink, and how many records its tasks have put there."""

    topic: str
    count: int
    # Their headers hold the error of each record.
    has_causes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorPage:
    frame: Frame
    name: str
    tab: Tab
    info: ConnectorInfo | None = None
    title: str = ""
    status: Status | None = None
    mark: Mark | None = None
    cause: str = ""
    # Of a connector that has failed.
    has_failed: bool = False
    losing: Losing | None = None
    losing_since: datetime | None = None
    losing_last: datetime | None = None
    retrying_since: datetime | None = None
    # Minutes of reading without a loss after which it no longer counts as losing records.
    calm_minutes: int = WINDOW_MINUTES
    retrying: Retrying | None = None
    retry_words: str = ""
    # Minutes after which a task fails that has never worked.
    first_minutes: int = int(FIRST_SUCCESS_S) // 60
    rate: float | None = None
    behind: Behind | None = None
    may: May | None = None
    missing: str = ""  # why the plugin cannot run here
    extra: str = ""  # the extra that would install what is missing
    tasks: tuple[TaskRow, ...] = ()
    config: tuple[tuple[str, str], ...] = ()
    config_json: str = ""
    lines: tuple[LogRow, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    more_places: int = 0
    dead: DeadLetters | None = None
    # The page that resets the offsets of a sink's group.
    reset_link: str = ""

    @property
    def is_sink(self) -> bool:
        return self.info is not None and self.info.kind == SINK


def connector(
    cluster_id: str | None, name: str, tab: Tab, rights: Rights
) -> Reading[ConnectorPage]:
    return last_good.read(
        ("connector", cluster_id, name, tab, rights.grants),
        lambda: _read(cluster_id, name, tab, rights),
        is_empty=lambda data: data.info is None,
    )


def _read(cluster_id: str | None, name: str, tab: Tab, rights: Rights) -> ConnectorPage:
    around = frame(cluster_id, rights)
    nothing = ConnectorPage(frame=around, name=name, tab=tab)
    if around.shown is None or name not in visible(rights, around.shown.cluster_id):
        return nothing
    cluster = around.shown.cluster_id
    infos = selectors.connectors(cluster, among=[name])
    statuses = selectors.statuses(cluster, reader=rights, among=[name])
    # The connector may be deleted between the two reads.
    if not infos or not statuses:
        return nothing
    info, status = infos[0], statuses[0]
    is_sink = info.kind == SINK
    plugin = next((each for each in selectors.catalogue() if each.name == info.plugin), None)
    state, groups = state_of(status), groups_of(around, [name], rights) if is_sink else {}
    losing, retrying = losing_of(status), retrying_of(status)
    places = offsets_of(info) if tab is Tab.OFFSETS else []
    return ConnectorPage(
        frame=around,
        name=name,
        tab=tab,
        info=info,
        title=info.plugin if plugin is None else plugin.title,
        missing="" if plugin is None else plugin.missing,
        extra="" if plugin is None else plugin.extra,
        status=status,
        mark=STATES[state],
        cause=cause_of(status),
        has_failed=state in (FAILED, PARTLY),
        losing=losing,
        losing_since=None if losing is None else moment(losing.since_ms / 1000),
        losing_last=None if losing is None else moment(losing.last_ms / 1000),
        retrying_since=None if retrying is None else moment(retrying.since_ms / 1000),
        retrying=retrying,
        retry_words="" if retrying is None else retry_words(retrying, time.time()),
        rate=rate_of(status),
        behind=behind_of(groups.get(name), state),
        may=_may(rights, cluster, name),
        tasks=tuple(_task(task, info.kind) for task in status.tasks),
        config=tuple(sorted(info.config.items())),
        config_json=json.dumps(dict(sorted(info.config.items())), indent=2, ensure_ascii=False),
        lines=_lines(cluster, name, rights) if tab is Tab.LOG else (),
        dead=_dead_letters(info, status),
        reset_link=group_names.link(cluster, selectors.group_of(name), "reset-offsets"),
        places=tuple(places[:MAX_PLACES]),
        more_places=max(0, len(places) - MAX_PLACES),
    )


def _may(rights: Rights, cluster: str, name: str) -> May:
    def may(operation: Operation) -> bool:
        what = Resource(kind=Kind.CONNECTOR, cluster=cluster, name=name)
        return decide(rights, operation, what).is_allowed

    return May(
        operate=may(Operation.OPERATE_CONNECTORS),
        alter=may(Operation.ALTER_CONNECTORS),
        delete=may(Operation.DELETE_CONNECTORS),
    )


def offsets_of(info: ConnectorInfo) -> list[tuple[str, str]]:
    """Return the source partitions and their offsets, as JSON; an empty list for a sink."""
    if info.kind == SINK:
        return []
    return [
        (_shown(place), _shown(offset))
        for place, offset in selectors.source_offsets(info.cluster, info.name)
    ]


def _dead_letters(info: ConnectorInfo, status: Status) -> DeadLetters | None:
    topic = info.config.get(DEAD_LETTERS, "").strip()
    if info.kind != SINK or not topic:
        return None
    return DeadLetters(
        topic=topic,
        count=sum(int(task.figures.get("dead_letters", 0)) for task in status.tasks),
        has_causes=info.config.get(CAUSES, "").strip().lower() == "true",
    )


def _shown(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _task(task: TaskStatus, kind: str) -> TaskRow:
    figures = task.figures
    return TaskRow(
        number=task.number,
        mark=STATES[task_state(task)],
        worker=task.worker,
        restarts=task.restarts,
        tries=task.retrying.tries if task.retrying else 0,
        trace=task.trace,
        read=int(figures.get("records_read", 0)),
        written=int(figures.get("records_written", 0)),
        skipped=int(figures.get("records_skipped", 0)),
        lost=int(figures.get("records_lost", 0)),
        dead=int(figures.get("dead_letters", 0)),
        rate=task_rate(task, kind),
    )


def _lines(cluster: str, name: str, rights: Rights) -> tuple[LogRow, ...]:
    found = selectors.log_lines(cluster, name, reader=rights, limit=MAX_LINES)
    return tuple(LogRow(line=line, mark=LEVELS.get(line.level.upper(), "")) for line in found)
