"""Who runs a task, in rows: taken by compare-and-set, renewed, given back, freed.

A message is a hint: it names a ticket, and whoever does not find the row as the ticket says leaves
the task alone. The epoch rises when the owner changes, and is the fence of all that is stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, QuerySet

from connectors.database import CONNECT
from connectors.models import Connector, State, Target, Task
from connectors.runtime import figures
from connectors.runtime.ports import Ending, SliceEnd, Verdict
from connectors.tasks import database_time

# A worker that is gone with its host is replaced after this; a slice renews it three times.
LEASE: Final = timedelta(seconds=15)
# Names of topics that a connector is known to have used; one with more uses names it makes up.
MAX_TOPICS: Final = 1000
RUNNABLE: Final = (State.UNASSIGNED, State.RUNNING, State.RESTARTING)
# A task that has just ended its worker waits before it is given another one.
AFTER_CRASH: Final = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A task whose lease was taken, with what its slice needs to know."""

    task: int
    connector: int
    cluster: str
    name: str
    plugin: str
    worker: str
    number: int
    count: int
    generation: int
    epoch: int
    # Of the connector as it is stored, and of the task.
    config: Mapping[str, Any] = field(repr=False)
    own_config: Mapping[str, Any] = field(repr=False)
    retries: int
    idle_slices: int
    has_others: bool


def take(worker: str, task: int, ticket: datetime) -> Taken | None:
    """Take the lease of a task for its worker; None where it is not as the ticket says."""
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
        row.save(
            update_fields=["epoch", "worker", "state", "leased_until", "served_at", "queued_at"]
        )
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
            epoch=row.epoch,
            config=row.connector.config,
            own_config=row.config,
            retries=row.retries,
            idle_slices=row.idle_slices,
            has_others=has_others(worker, row.pk),
        )


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
    """Tell whether anything waits for a worker beside the task that it runs."""
    waiting = Task.objects.filter(assigned=worker, queued_at__isnull=False).exclude(pk=but)
    unmade = Connector.objects.filter(
        worker=worker, planning_since__isnull=False, planned_generation__lt=F("generation")
    )
    return waiting.exists() or unmade.exists()


def verdict(taken: Taken) -> Verdict:
    """Return what a slice is to do, from its row."""
    row = _mine(taken).values_list("state", "connector__target", "connector__generation").first()
    if row is None:
        return Verdict.LOST
    state, target, generation = row
    if state not in RUNNABLE or target != Target.STARTED or generation != taken.generation:
        return Verdict.STOP
    return Verdict.YIELD if has_others(taken.worker, taken.task) else Verdict.KEEP


def renew(taken: Taken, *, has_progress: bool) -> bool:
    """Lengthen a lease; False where the task has another owner."""
    changes: dict[str, Any] = {"leased_until": database_time.now() + LEASE}
    if has_progress:
        changes["crashes"] = 0
    return _mine(taken).update(**changes) == 1


def release(taken: Taken, end: SliceEnd, seconds: float) -> datetime | None:
    """Give a lease back with what became of the slice; return a ticket where it goes on at once."""
    with transaction.atomic(using=CONNECT):
        row = _mine(taken).select_for_update(of=("self",)).select_related("connector").first()
        if row is None:
            return None
        now = database_time.now()
        row.leased_until, row.slice_ended_at, row.crashes = None, now, 0
        row.retries, row.idle_slices = end.retries, end.idle_slices
        row.due_at = now + timedelta(seconds=end.wait_s) if end.wait_s else None
        row.figures = figures.total(row.figures, end.figures, seconds)
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
        _note_topics(row.connector, end.topics)
    return row.queued_at


def _note_topics(connector: Connector, topics: frozenset[str]) -> None:
    if topics <= set(connector.topics):
        return
    locked = Connector.objects.select_for_update().get(pk=connector.pk)
    known = sorted({*locked.topics, *topics})[:MAX_TOPICS]
    Connector.objects.filter(pk=connector.pk).update(topics=known)


def free_all(worker: str, *, has_died: bool) -> int:
    """Take all leases of a worker away, none of whose slices runs any more; return how many."""
    rows = Task.objects.filter(worker=worker, leased_until__isnull=False)
    if not has_died:
        return rows.update(leased_until=None)
    return rows.update(
        leased_until=None, crashes=F("crashes") + 1, due_at=database_time.now() + AFTER_CRASH
    )


def still_here(worker: str, tasks: Mapping[int, tuple[int, int]]) -> set[int]:
    """Return those of some tasks, with generation and epoch, that a worker has not lost since."""
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
