"""Reads connectors: their configs, their status, and the validation of configs.

Values are frozen, and contain no password. The caller has checked the user's rights.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.db.models import Q

from connectors import (
    database_time,
    models,
    needed_rights,
    registry,
    secret_rights,
    targets,
    validation,
)
from connectors import framework_keys as keys
from connectors.installed_parts import INSTALLED
from connectors.kept_secrets import filled
from connectors.references import Allowed
from connectors.refusals import NotFound, Unfit
from connectors.runtime import group_names, record_parts
from connectors.runtime.condition import (
    CONDITION,
    RETRYING,
    Losing,
    Retrying,
    era_of,
    losing,
    read_lately,
)
from connectors.sdk.configs import MASK
from connectors.sdk.connector import Connector
from connectors.validation import Validation
from connectors.vault import Place, Stored, Vault, masked
from gateway.access.callers import Caller
from gateway.access.grants import Rights
from gateway.access.operations import Kind, Operation

# Its offsets are no group's.
SOURCE: Final = "source"
# The most connectors that one query returns, and that the services allow.
MAX_CONNECTORS: Final = 1000
# Log lines that a page shows at once.
MAX_LINES: Final = 1000
MAX_OFFSETS: Final = 10_000
# Workers report every three seconds; starting one takes some seconds.
WORKER_SILENCE: Final = timedelta(seconds=15)
# Kafka Connect has no word for a task without a worker; an empty one would look like a host
# without a name.
NO_WORKER: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorInfo:
    """The config of a connector, with masks in the place of passwords."""

    cluster: str
    name: str
    plugin: str
    version: str
    kind: str
    config: Mapping[str, str]
    tasks: tuple[int, ...]
    target: str
    generation: int
    topics: tuple[str, ...]
    created_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    number: int
    state: str
    worker: str
    trace: str
    restarts: int
    retries: int
    figures: Mapping[str, Any]
    config: Mapping[str, str]
    # Failures in a row while it runs, and records that it loses; None if there are none.
    retrying: Retrying | None
    losing: Losing | None
    # Records that it has read in its last minutes of reading, lost or not.
    read_lately: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of a connector and its tasks."""

    name: str
    kind: str
    version: str
    target: str
    state: str
    worker: str
    trace: str
    tasks: tuple[TaskStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    number: int
    task: int | None
    at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One entry of the catalogue.

    `missing` is why it cannot run here, empty if it can; `extra` names what it needs.
    """

    name: str
    names: tuple[str, ...]
    kind: str
    title: str
    summary: str
    version: str
    is_foreign: bool
    # The origin of a foreign connector: a package, or a folder of the home.
    origin: str
    missing: str
    extra: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPlugin:
    """A plugin that cannot be loaded, with the reason."""

    origin: str
    reason: str


def connectors(cluster: str, *, among: Iterable[str] | None = None) -> list[ConnectorInfo]:
    """Return the connectors of a cluster by name, or those with the given names."""
    rows = models.Connector.objects.filter(cluster=cluster).prefetch_related("tasks")
    if among is not None:
        rows = rows.filter(name__in=list(among))
    return [_info(row) for row in rows.order_by("name")[:MAX_CONNECTORS]]


def names(cluster: str, *, pool: str | None = None) -> list[str]:
    """Return the names of connectors, or of those whose tasks run in a pool."""
    rows = models.Connector.objects.filter(cluster=cluster).order_by("name")
    if pool is not None:
        rows = rows.filter(pool=pool)
    return list(rows.values_list("name", flat=True)[:MAX_CONNECTORS])


def connector(cluster: str, name: str) -> ConnectorInfo:
    """Return one connector; NotFound if there is none of this name."""
    return _info(row_of(cluster, name))


def statuses(cluster: str, *, reader: Rights, among: Iterable[str] | None = None) -> list[Status]:
    """Return statuses; parts of them that repeat records need the reader's right."""
    seen = _seen_by(reader, cluster)
    rows = models.Connector.objects.filter(cluster=cluster).prefetch_related("tasks")
    if among is not None:
        rows = rows.filter(name__in=list(among))
    return [_status(row, seen) for row in rows.order_by("name")[:MAX_CONNECTORS]]


def status(cluster: str, name: str, *, reader: Rights) -> Status:
    row = row_of(cluster, name, missing=f"No status found for connector {name}")
    return _status(row, _seen_by(reader, cluster))


def task_status(cluster: str, name: str, number: int, *, reader: Rights) -> TaskStatus | None:
    """Return the status of a task, also of one that a worker is about to create."""
    row = row_of(cluster, name, missing=f"No status found for task {name}-{number}")
    found = _status(row, _seen_by(reader, cluster)).tasks
    for one in found:
        if one.number == number:
            return one
    return _awaited(number) if awaits_task(row, number) else None


def awaits_task(row: models.Connector, number: int) -> bool:
    """Return whether workers have still to create a connector's tasks, and this may be one."""
    is_planned = row.planned_generation >= row.generation
    most = row.config.get(keys.TASKS_MAX, "1")
    is_within = number < int(most) if str(most).isdecimal() else number == 0
    return not is_planned and row.target != models.Target.STOPPED and is_within


def source_offsets(cluster: str, name: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return the offset of each place of a source."""
    rows = row_of(cluster, name).offsets.order_by("pk")[:MAX_OFFSETS]
    return [(row.place, row.offset) for row in rows]


def log_lines(
    cluster: str,
    name: str,
    *,
    reader: Rights,
    task: int | None = None,
    after: int = 0,
    limit: int = MAX_LINES,
) -> list[Line]:
    """Return the newest log lines of a connector, or of one task, oldest first."""
    seen = _seen_by(reader, cluster)
    rows = row_of(cluster, name).lines.filter(pk__gt=after)
    if task is not None:
        rows = rows.filter(task=task)
    newest = list(rows.order_by("-pk")[: min(limit, MAX_LINES)])
    return [
        Line(number=row.pk, task=row.task, at=row.at, level=row.level, text=seen(row.text))
        for row in reversed(newest)
    ]


def in_trouble(cluster: str, *, tries: int) -> list[str]:
    """Return connectors that failed, or may have a task that failed, retries or loses records."""
    failed = models.State.FAILED
    hurt = Q(state=failed) | Q(tasks__state=failed)
    hurt |= Q(tasks__figures__retrying__tries__gte=tries)
    hurt |= Q(tasks__figures__losses__has_key="since_ms")
    rows = models.Connector.objects.filter(hurt, cluster=cluster).order_by("name")
    return list(rows.values_list("name", flat=True).distinct()[:MAX_CONNECTORS])


def has_workers(cluster: str) -> bool:
    """Return whether any worker has reported lately."""
    since = database_time.now() - WORKER_SILENCE
    return models.Worker.objects.filter(cluster=cluster, seen_at__gte=since).exists()


def catalogue() -> list[Plugin]:
    """Return all connectors that can be configured."""
    return [
        Plugin(
            name=plugin.name,
            names=tuple(registry.names_of(plugin)),
            kind=registry.kind_of(plugin),
            title=plugin.title,
            summary=plugin.summary,
            version=plugin.version,
            is_foreign=registry.is_foreign(plugin),
            origin=registry.origin_of(plugin),
            missing=missing.reason if (missing := registry.missing(plugin)) else "",
            extra=missing.extra if missing else "",
        )
        for plugin in registry.classes()
    ]


def broken_plugins() -> list[BrokenPlugin]:
    return [BrokenPlugin(origin=one.origin, reason=one.reason) for one in registry.broken()]


def validate(
    caller: Caller,
    cluster: str,
    plugin: type[Connector],
    config: Mapping[str, str],
    *,
    stored_of: str | None = None,
    is_deep: bool = False,
) -> Validation:
    """Validate a caller's config, without changes.

    Masks stand for the stored values of the connector `stored_of`; omit it if the caller may not
    change that connector.
    """
    row = None if stored_of is None else find_row(cluster, stored_of)
    return judged(caller, cluster, plugin, config, row, is_deep=is_deep).validation


# --- for services ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A config with its masks filled in, and its validation."""

    config: Mapping[str, str]
    validation: Validation
    # Keys that refer to secrets which the author may not use.
    beyond_rights: tuple[str, ...] = ()


def judged(
    caller: Caller,
    cluster: str,
    plugin: type[Connector],
    config: Mapping[str, str],
    row: models.Connector | None,
    *,
    is_deep: bool,
) -> Judged:
    """Fill in the masks of a config from the stored one, and validate it for its author."""
    refused: Mapping[str, str] = {}
    if row is not None and any(MASK in text for text in config.values()):
        known = plugin.definition().by_name
        found = filled(
            config, row.config, opened(row), lambda given: validation.partly_secret(given, known)
        )
        config, refused = found.config, found.refused
    lacking = secret_rights.refused(
        caller, cluster, plugin, config, lambda: {} if row is None else opened(row)
    )
    return Judged(
        config=config,
        validation=validation.validate(
            plugin,
            config,
            components=INSTALLED,
            allowed=allowed(),
            refused={
                **needed_rights.refused(caller, cluster, plugin, config),
                **lacking,
                **refused,
            },
            target_judge=targets.judge(cluster, can_resolve=is_deep),
            is_deep=is_deep,
        ),
        beyond_rights=tuple(lacking),
    )


def plugin_of(class_name: str) -> type[Connector]:
    """Return the connector with a name; Unfit if there is none."""
    found = registry.find(class_name)
    if found is None:
        there = ", ".join(plugin.name for plugin in registry.classes())
        raise Unfit(
            "Failed to find any class that implements Connector and which name matches"
            f" {class_name[:200]}, available connectors are: {there}"
        )
    return found


def class_in(config: Mapping[str, str]) -> str:
    """Return the class that a config names; Unfit if it names none."""
    name = config.get(keys.CLASS, "").strip()
    if not name:
        shown = ", ".join(f"{key}={text}" for key, text in _hidden(config).items())
        raise Unfit(f"Connector config {{{shown[:1000]}}} contains no connector type")
    return name


def row_of(cluster: str, name: str, *, missing: str = "") -> models.Connector:
    row = find_row(cluster, name)
    if row is None:
        raise NotFound(missing or f"Connector {name} not found")
    return row


def group_of(name: str) -> str:
    """Return the group with a sink's offsets."""
    return group_names.group_of(name)


def connectors_of_groups(
    cluster: str, groups: Iterable[str], *, reader: Rights
) -> dict[str, Status]:
    """Return the connectors whose offsets are in some of the groups, by group."""
    found = {name: group for group in groups if (name := group_names.connector_of(group))}
    told = statuses(cluster, reader=reader, among=found) if found else []
    return {found[status.name]: status for status in told if status.kind != SOURCE}


def find_row(cluster: str, name: str) -> models.Connector | None:
    return models.Connector.objects.filter(cluster=cluster, name=name).first()


def opened(row: models.Connector) -> dict[str, str]:
    """Return a stored config in clear, with unresolved references."""
    stored: Stored = row.config
    return vault().open(stored, place_of(row))


def place_of(row: models.Connector) -> Place:
    return Place(cluster=row.cluster, connector=row.name)


@cache
def vault() -> Vault:
    return Vault(settings.SAMSA_CONNECT_KEY_FILE)


def allowed() -> Allowed:
    """Return what references may name on this host."""
    return Allowed(
        folders=settings.SAMSA_CONNECT_SECRET_DIRS,
        names=frozenset(settings.SAMSA_CONNECT_ENV_NAMES),
    )


def _hidden(config: Mapping[str, str]) -> dict[str, str]:
    """Mask a config without a class, so that its password keys are unknown."""
    secret = dict.fromkeys(validation.secret_keys(config, {}), MASK)
    return {**config, **validation.partly_secret(config, {}), **secret}


def _info(row: models.Connector) -> ConnectorInfo:
    return ConnectorInfo(
        cluster=row.cluster,
        name=row.name,
        plugin=row.plugin,
        version=row.version,
        kind=row.kind,
        config=masked(row.config),
        tasks=tuple(sorted(task.number for task in row.tasks.all())),
        target=row.target,
        generation=row.generation,
        topics=tuple(sorted(row.topics)),
        created_at=row.created_at,
        changed_at=row.changed_at,
    )


def _seen_by(reader: Rights, cluster: str) -> Callable[[str], str]:
    """Return the function from a stored text to what a user sees of it."""
    names = reader.names(Operation.READ_PAYLOADS, cluster=cluster, kind=Kind.TOPIC)

    def may_read(topics: Collection[str]) -> bool:
        return names.is_all or (bool(topics) and all(topic in names for topic in topics))

    return lambda text: record_parts.shown(text, may_read)


def _status(row: models.Connector, seen: Callable[[str], str]) -> Status:
    tasks: Sequence[models.Task] = sorted(row.tasks.all(), key=lambda task: task.number)
    return Status(
        name=row.name,
        kind=row.kind,
        version=row.version,
        target=row.target,
        state=row.state,
        worker=row.worker or NO_WORKER,
        trace=seen(row.trace),
        tasks=tuple(
            TaskStatus(
                number=task.number,
                state=task.state,
                worker=task.worker or task.assigned or NO_WORKER,
                trace=seen(task.trace),
                restarts=task.restarts,
                retries=task.retries,
                figures={name: n for name, n in task.figures.items() if name not in CONDITION},
                config={**masked(row.config), **masked(task.config)},
                retrying=_retrying(task, seen),
                losing=_losing(task, seen),
                read_lately=read_lately(task.figures, era=era_of(task.generation, task.restarts)),
            )
            for task in tasks
        ),
    )


def _awaited(number: int) -> TaskStatus:
    return TaskStatus(
        number=number,
        state=models.State.UNASSIGNED,
        worker=NO_WORKER,
        trace="",
        restarts=0,
        retries=0,
        figures={},
        config={},
        retrying=None,
        losing=None,
        read_lately=0,
    )


def _retrying(task: models.Task, seen: Callable[[str], str]) -> Retrying | None:
    """Return the failures in a row of a task that runs, or waits for its next attempt."""
    if task.state not in {models.State.RUNNING, models.State.UNASSIGNED}:
        return None
    found = Retrying.of(task.figures.get(RETRYING))
    return None if found is None else replace(found, reason=seen(found.reason))


def _losing(task: models.Task, seen: Callable[[str], str]) -> Losing | None:
    found = losing(task.figures, era=era_of(task.generation, task.restarts))
    if found is None:
        return None
    causes = tuple(replace(cause, text=seen(cause.text)) for cause in found.causes)
    return replace(found, causes=causes)
