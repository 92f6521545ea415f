"""Takes, renews and releases the leases of tasks: rows changed by compare-and-set.

A message is a hint with a ticket; a worker whose ticket does not match the row leaves the task
alone. The epoch rises when the owner changes, and fences every write.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, QuerySet

from connectors import database_time, framework_keys
from connectors.database import CONNECT
from connectors.models import Connector, Redrive, RunState, State, Target, Task
from connectors.runtime.condition import Condition, era_of
from connectors.runtime.ports import Ending, SliceEnd, Verdict

# A worker that is gone with its host is replaced after this; a slice renews it in a third of this.
LEASE: Final = timedelta(seconds=15)
# Topics to remember for a connector; one with more makes up its topic names.
MAX_TOPICS: Final = 1000
TAKEN_FIELDS: Final = (
    *("epoch", "worker", "state", "leased_until", "served_at", "queued_at", "taken_at"),
)
# Two hundred tasks of one worker each run within a fraction of this. A longer pause is not counted,
# so that the rate of a paused task covers only the time in which it runs.
MAX_WAITED_S: Final = 60.0
# Enough to tell the configs of one task apart.
CONFIG_DIGEST_CHARS: Final = 16
RUNNABLE: Final = (State.UNASSIGNED, State.RUNNING, State.RESTARTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A task whose lease was taken, with the inputs of its slice."""

    task: int
    connector: int
    cluster: str
    name: str
    plugin: str
    worker: str
    number: int
    count: int
    generation: int
    restarts: int
    epoch: int
    # The stored configs of the connector and of the task.
    config: Mapping[str, Any] = field(repr=False)
    own_config: Mapping[str, Any] = field(repr=False)
    retries: int
    idle_slices: int
    # Whether worker processes ended while it ran, without anything made durable since.
    has_crashed: bool
    # The figures after its former slices.
    figures: Mapping[str, Any]
    has_others: bool
    # The time since its last slice ended, which its next rates include.
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The report on a task: its figures including the slice, and the slice's topics."""

    figures: Mapping[str, Any]
    topics: frozenset[str]


def take(worker: str, task: int, ticket: datetime) -> Taken | None:
    """Take the lease of a task for its worker; None if the row does not match the ticket."""
    with transaction.atomic(using=CONNECT):
        row = (
            Task.objects.select_for_update(of=("self",))
            .select_related("connector")
            .filter(pk=task)
            .first()
        )
        now = database_time.now()
        if row is None or not _is_free(row, worker, ticket, now):
            return None
        if row.worker != worker:
            row.epoch += 1
        row.worker, row.state = worker, State.RUNNING
        row.leased_until, row.served_at, row.queued_at = now + LEASE, ticket, None
        row.taken_at = now
        row.save(update_fields=TAKEN_FIELDS)
        return Taken(
            task=row.pk,
            connector=row.connector.pk,
            cluster=row.connector.cluster,
            name=row.connector.name,
            plugin=row.connector.plugin,
            worker=worker,
            number=row.number,
            count=row.connector.tasks.count(),
            generation=row.generation,
            restarts=row.restarts,
            epoch=row.epoch,
            config=row.connector.config,
            own_config=row.config,
            retries=row.retries,
            idle_slices=row.idle_slices,
            has_crashed=row.crashes > 0,
            figures=row.figures,
            has_others=has_others(worker, row.pk),
            waited_s=_waited_s(row, now),
        )


def condition_of(taken: Taken) -> Condition:
    """Return the stored condition of a task, as far as its config and restarts leave it valid."""
    stored = json.dumps([taken.config, taken.own_config], sort_keys=True)
    return Condition(
        taken.figures,
        retries=taken.retries,
        era=era_of(taken.generation, taken.restarts),
        config=hashlib.sha256(stored.encode()).hexdigest()[:CONFIG_DIGEST_CHARS],
        keeps_letters=bool(taken.config.get(framework_keys.DEAD_LETTERS, "").strip()),
    )


def _waited_s(row: Task, now: datetime) -> float:
    if row.slice_ended_at is None:
        return 0.0
    return min(max(0.0, (now - row.slice_ended_at).total_seconds()), MAX_WAITED_S)


def _is_free(row: Task, worker: str, ticket: datetime, now: datetime) -> bool:
    return (
        row.assigned == worker
        and row.queued_at == ticket
        and (row.leased_until is None or row.leased_until <= now)
        and row.state in RUNNABLE
        and row.connector.target == Target.STARTED
        and row.generation == row.connector.generation
    )


def has_others(worker: str, but: int) -> bool:
    """Return whether a worker has other work waiting besides the given task."""
    waiting = Task.objects.filter(assigned=worker, queued_at__isnull=False).exclude(pk=but)
    unmade = Connector.objects.filter(
        worker=worker, planning_since__isnull=False, planned_generation__lt=F("generation")
    )
    runs = Redrive.objects.filter(worker=worker, queued_at__isnull=False, state=RunState.RUNNING)
    return waiting.exists() or unmade.exists() or runs.exists()


def verdict(taken: Taken) -> Verdict:
    """Return what a slice should do next, from its row."""
    row = _mine(taken).values_list("state", "connector__target", "connector__generation").first()
    if row is None:
        return Verdict.LOST
    state, target, generation = row
    if state not in RUNNABLE or target != Target.STARTED or generation != taken.generation:
        return Verdict.STOP
    return Verdict.YIELD if has_others(taken.worker, taken.task) else Verdict.KEEP


def renew(taken: Taken, told: Told) -> bool:
    """Renew a lease and store the slice's figures; return False if the task has another owner."""
    with transaction.atomic(using=CONNECT):
        until = database_time.now() + LEASE
        if not _mine(taken).update(leased_until=until, figures=told.figures):
            return False
        _note_topics(taken.connector, told.topics)
    return True


def forgive(taken: Taken) -> None:
    """Reset the crash count of a task that has made something durable."""
    _mine(taken).filter(crashes__gt=0).update(crashes=0)


def release(taken: Taken, end: SliceEnd, told: Told) -> datetime | None:
    """Release a lease with the slice's result; return a ticket if the task continues at once."""
    with transaction.atomic(using=CONNECT):
        row = _mine(taken).select_for_update(of=("self",)).select_related("connector").first()
        if row is None:
            return None
        now = database_time.now()
        row.leased_until, row.slice_ended_at = None, now
        row.crashes, row.hung_at = 0, None
        row.retries, row.idle_slices = end.retries, end.idle_slices
        row.due_at = now + timedelta(seconds=end.wait_s) if end.wait_s else None
        row.figures = told.figures
        if end.ending is Ending.FAILED and row.state == State.RUNNING:
            row.state, row.trace = State.FAILED, end.trace
        goes_on = (
            end.ending in {Ending.BUSY, Ending.IDLE}
            and not end.wait_s
            and row.state == State.RUNNING
            and row.connector.target == Target.STARTED
            and row.connector.generation == row.generation
        )
        row.queued_at = now if goes_on else None
        row.save()
        _note_topics(row.connector.pk, told.topics)
    return row.queued_at


def _note_topics(connector: int, topics: frozenset[str]) -> None:
    rows = Connector.objects.filter(pk=connector)
    if topics <= set(rows.values_list("topics", flat=True).get()):
        return
    locked = rows.select_for_update().get()
    rows.update(topics=sorted({*locked.topics, *topics})[:MAX_TOPICS])


def still_here(worker: str, tasks: Mapping[int, tuple[int, int]]) -> set[int]:
    """Return the tasks whose generation and epoch are unchanged, and which the worker still has."""
    rows = Task.objects.filter(pk__in=list(tasks), assigned=worker)
    return {
        pk
        for pk, generation, epoch in rows.values_list("pk", "generation", "epoch")
        if tasks[pk] == (generation, epoch)
    }


def _mine(taken: Taken) -> "QuerySet[Task]":
    return Task.objects.filter(
        pk=taken.task, worker=taken.worker, epoch=taken.epoch, leased_until__isnull=False
    )
