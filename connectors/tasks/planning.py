"""Reads the rows for the planner, and carries out its decisions.

Each action is a compare-and-set: if the row has changed, nothing happens. Rows are written before
messages are sent, so a message that could not be sent is noticed like a lost one.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from django.db import transaction
from django.db.models import F, QuerySet

from connectors import database_time
from connectors.database import CONNECT
from connectors.models import Connector, State, Target, Task
from connectors.runtime import planner
from connectors.runtime.planner import Action, ConnectorRow, TaskRow
from connectors.runtime.pools import PLAIN
from connectors.tasks import vouching, workers
from connectors.tasks.celery_app import logging_unsent

log: Final = logging.getLogger(__name__)
TASK_FIELDS: Final = (
    *("id", "generation", "state", "worker", "assigned", "leased_until", "queued_at"),
    *("served_at", "slice_ended_at", "due_at", "crashes", "hung_at"),
)
CONNECTOR_FIELDS: Final = (
    *("id", "target", "state", "generation", "planned_generation", "pool", "worker"),
    *("planning_since", "preparing_at", "crashes", "due_at"),
)


ConnectorAction: TypeAlias = (
    planner.TellConnector | planner.Prepare | planner.FailConnector | planner.RemoveTasks
)


class Messages(Protocol):
    """The queues of workers; calls raise the exceptions of the transport."""

    def run(self, worker: str, task: int, ticket: datetime) -> None: ...

    def prepare(self, worker: str, connector: int, generation: int) -> None: ...

    def purge(self, worker: str) -> None: ...


def rows(cluster: str) -> list[ConnectorRow]:
    """Return all connectors of a cluster with their tasks.

    Not a consistent snapshot, which would block writers each second: a change between the two
    queries is a newer generation, or is noticed when an action does not match its row.
    """
    tasks: dict[int, list[TaskRow]] = defaultdict(list)
    found = Task.objects.filter(connector__cluster=cluster).order_by("connector_id", "number")
    for connector, *values in found.values_list("connector_id", *TASK_FIELDS):
        tasks[connector].append(TaskRow(**dict(zip(TASK_FIELDS, values, strict=True))))
    connectors = Connector.objects.filter(cluster=cluster).order_by("id")
    return [
        ConnectorRow(
            **dict(zip(CONNECTOR_FIELDS, values, strict=True)), tasks=tuple(tasks[values[0]])
        )
        for values in connectors.values_list(*CONNECTOR_FIELDS)
    ]


def has_waiting(cluster: str) -> bool:
    """Return whether a connector waits for its tasks, or a new task for its first slice."""
    started = Connector.objects.filter(cluster=cluster, target=Target.STARTED)
    fresh = Task.objects.filter(
        connector__in=started.exclude(state=State.FAILED),
        state=State.UNASSIGNED,
        queued_at=None,
        slice_ended_at=None,
        due_at=None,
    )
    return started.filter(planned_generation__lt=F("generation")).exists() or fresh.exists()


def plan(cluster: str, messages: Messages) -> int:
    """Plan once; return the number of actions."""
    now = database_time.now()
    by_pool = workers.by_pool(cluster)
    planned = planner.plan(rows(cluster), by_pool.get(PLAIN, ()), now, pools=by_pool)
    actions = [one for action in planned if (one := _vouched(cluster, action)) is not None]
    if not actions:
        return 0
    with transaction.atomic(using=CONNECT):
        done = [action for action in actions if _apply(action, now)]
    _send(done, messages, now)
    return len(done)


def _vouched(cluster: str, action: Action) -> Action | None:
    """Return an action, or a failure instead of tasks if the author has lost a right."""
    if not isinstance(action, planner.Prepare):
        return action
    refusal = vouching.refusal(cluster, action.connector)
    if refusal is None:
        # Checked again in the next round.
        return None
    if not refusal:
        return action
    return planner.FailConnector(
        connector=action.connector, generation=action.generation, trace=refusal
    )


def _apply(action: Action, now: datetime) -> bool:
    """Change the row of an action; False if the row has changed meanwhile."""
    match action:
        case planner.Free(task=pk):
            return _task(pk, leased_until__lte=now).update(leased_until=None) == 1
        case planner.Fail(task=pk, trace=trace):
            return _task(pk, leased_until=None).update(state=State.FAILED, trace=trace) == 1
        case planner.TellTask(task=pk, state=state):
            # Keep the failure of a slice that failed after the rows were read.
            rows = _task(pk, leased_until=None).exclude(state=State.FAILED)
            return rows.update(state=state) == 1
        case planner.Queue(task=pk, worker=worker):
            return _task(pk, leased_until=None).update(assigned=worker, queued_at=now) == 1
        case planner.Purge():
            return True
        case _:
            return _apply_to_connector(action, now)


def _apply_to_connector(action: ConnectorAction, now: datetime) -> bool:
    match action:
        case planner.TellConnector(connector=pk, state=state):
            return Connector.objects.filter(pk=pk).update(state=state) == 1
        case planner.Prepare(connector=pk, generation=generation, worker=worker):
            asked = Connector.objects.filter(
                pk=pk, generation=generation, planned_generation__lt=F("generation")
            )
            return asked.update(worker=worker, planning_since=now, preparing_at=None) == 1
        case planner.FailConnector(connector=pk, generation=generation, trace=trace):
            return _fail_connector(pk, generation, trace, now)
        case planner.RemoveTasks(connector=pk):
            return _remove_tasks(pk, now)


def _task(pk: int, **wanted: object) -> "QuerySet[Task]":
    return Task.objects.filter(pk=pk, **wanted)


def _remove_tasks(connector: int, now: datetime) -> bool:
    """Remove the tasks of a stopped connector, which a resume creates again."""
    row = Connector.objects.select_for_update().filter(pk=connector, target=Target.STOPPED).first()
    if row is None or row.tasks.filter(leased_until__gt=now).exists():
        return False
    row.tasks.all().delete()
    row.planned_generation = row.generation - 1
    row.planning_since = None
    row.save(update_fields=["planned_generation", "planning_since"])
    return True


def _fail_connector(connector: int, generation: int, trace: str, now: datetime) -> bool:
    """Fail a connector for one generation, with the reason; the next one is a new attempt."""
    rows = Connector.objects.select_for_update().filter(pk=connector, generation=generation)
    row = rows.filter(planned_generation__lt=generation).first()
    if row is None or row.tasks.filter(leased_until__gt=now).exists():
        return False
    row.tasks.all().delete()
    row.planned_generation, row.state, row.trace = generation, State.FAILED, trace
    row.planning_since = row.preparing_at = row.due_at = None
    row.crashes = 0
    row.save(
        update_fields=[
            *("planned_generation", "state", "trace"),
            *("planning_since", "preparing_at", "due_at", "crashes"),
        ]
    )
    return True


def _send(actions: Sequence[Action], messages: Messages, ticket: datetime) -> None:
    with logging_unsent(log, "plan.not_sent"):
        for action in actions:
            match action:
                case planner.Purge(worker=worker):
                    messages.purge(worker)
                case planner.Queue(task=pk, worker=worker):
                    messages.run(worker, pk, ticket)
                case planner.Prepare(connector=pk, generation=generation, worker=worker):
                    messages.prepare(worker, pk, generation)
                case _:
                    pass
