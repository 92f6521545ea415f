"""Asks a connector for its tasks, in a worker, and makes their rows."""

import logging
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

from django.db import transaction

from connectors import database_time
from connectors.database import CONNECT
from connectors.installed_parts import INSTALLED
from connectors.models import Connector, State, Target, Task
from connectors.runtime.ports import Level
from connectors.runtime.traces import trace
from connectors.sdk.errors import ConfigError
from connectors.tasks import configs
from connectors.tasks.task_log import TaskLog
from connectors.validation import warnings_of
from connectors.vault import Stored

log: Final = logging.getLogger(__name__)
DEFAULT_MAX_TASKS: Final = 1
# More tasks add no parallel work, and the planner reads a row for each.
MOST_TASKS: Final = 1000
# A connector may check the other side for 5 s; other work of the worker waits meanwhile.
ANSWER_S: Final = 20.0


def prepare(worker: str, connector: int, generation: int) -> None:
    """Create the tasks of one generation; do nothing if it is not the wanted one any more."""
    row = Connector.objects.filter(pk=connector).first()
    if row is None or not _is_wanted(row, worker, generation):
        return
    # If the connector's code ends this process, the row names the connector.
    mine = Connector.objects.filter(pk=connector, worker=worker)
    mine.update(preparing_at=database_time.now())
    try:
        _make(row, worker, generation)
    finally:
        mine.update(preparing_at=None)


def _make(row: Connector, worker: str, generation: int) -> None:
    warnings: Collection[str] = ()
    try:
        clear = configs.clear(
            plugin=row.plugin, stored=row.config, own={}, cluster=row.cluster, name=row.name
        )
        warnings = warnings_of(clear.plugin, clear.config, components=INSTALLED).values()
        told, failure = _task_configs(row, clear), ""
    # Foreign code; the connector shows any exception.
    except Exception as error:  # noqa: BLE001
        told, failure = [], trace(error, _secrets_of(error))
    said = TaskLog(row.pk, name=row.name, number=None)
    for text in warnings:
        said.write(Level.WARN, text)
    if failure:
        said.write(Level.ERROR, failure.partition("\n")[0])
    said.close()
    with transaction.atomic(using=CONNECT):
        _write(row.pk, worker, generation, told, failure)


def _is_wanted(row: Connector, worker: str, generation: int) -> bool:
    return (
        row.generation == generation
        and row.planned_generation < generation
        and row.worker == worker
        and row.target != Target.STOPPED
    )


def _task_configs(row: Connector, clear: configs.ClearConfig) -> list[Stored]:
    most = _max_tasks(clear.config.get("tasks.max", str(DEFAULT_MAX_TASKS)))
    try:
        with _limited():
            told = clear.plugin().task_configs(clear.parsed, max_tasks=most)
    # Mark the error as the connector's, since its text may hold values of the config.
    except Exception as error:
        error.secrets = clear.secrets  # type: ignore[attr-defined]
        raise
    is_enforced = clear.config.get("tasks.max.enforce", "true").strip().lower() != "false"
    if len(told) > most and is_enforced:
        raise ConfigError(
            f"The connector {row.name} has generated {len(told)} tasks, which is greater than"
            f" {most}, the maximum number of tasks it is configured to create"
        )
    if len(told) > MOST_TASKS:
        raise ConfigError(f"{row.name} has {len(told)} tasks, and {MOST_TASKS} are allowed")
    return [
        configs.seal(
            one, plugin=clear.plugin, secrets=clear.secrets, cluster=row.cluster, name=row.name
        )
        for one in told
    ]


@contextmanager
def _limited() -> Iterator[None]:
    """Interrupt slow foreign code; Celery's limit ends code that hangs in a library."""

    def interrupt(*_: object) -> None:
        raise ConfigError(
            f"the connector has not said its tasks within {ANSWER_S:g} s: look whether the other"
            " side answers, and restart the connector"
        )

    former = signal.signal(signal.SIGALRM, interrupt)
    left, _ = signal.setitimer(signal.ITIMER_REAL, ANSWER_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, former)


def _max_tasks(text: str) -> int:
    try:
        return max(1, min(int(text), MOST_TASKS))
    except ValueError:
        raise ConfigError(
            f"Invalid value {text} for configuration tasks.max: Not a number of type INT"
        ) from None


def _secrets_of(error: Exception) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(error, "secrets", ())
    return found


def _write(connector: int, worker: str, generation: int, told: list[Stored], failure: str) -> None:
    row = Connector.objects.select_for_update().filter(pk=connector).first()
    if row is None or not _is_wanted(row, worker, generation):
        return
    now = database_time.now()
    if row.tasks.filter(leased_until__gt=now).exists():
        # A slice of the older generation is still ending: the planner asks again.
        row.planning_since = None
        row.save(update_fields=["planning_since"])
        return
    row.tasks.filter(number__gte=len(told)).delete()
    for number, config in enumerate(told):
        _write_task(row, number, config)
    row.planned_generation, row.planning_since, row.trace = generation, None, failure
    row.crashes, row.due_at = 0, None
    is_paused = row.target == Target.PAUSED
    row.state = State.FAILED if failure else State.PAUSED if is_paused else State.RUNNING
    row.save(
        update_fields=[
            "planned_generation",
            "planning_since",
            "trace",
            "state",
            "crashes",
            "due_at",
        ]
    )


def _write_task(row: Connector, number: int, config: Stored) -> None:
    """Create a row, or reset the existing one; its epoch never falls."""
    fresh = {
        "generation": row.generation,
        "config": config,
        "state": State.UNASSIGNED,
        "queued_at": None,
        "due_at": None,
        "leased_until": None,
        "hung_at": None,
        "slice_ended_at": None,
        "retries": 0,
        "idle_slices": 0,
        "crashes": 0,
        "trace": "",
    }
    # Above the epoch of any earlier row with this number, even of a deleted connector: targets
    # remember epochs.
    Task.objects.update_or_create(
        connector=row,
        number=number,
        defaults=fresh,
        create_defaults={**fresh, "epoch": time.time_ns() // 1_000_000},
    )
