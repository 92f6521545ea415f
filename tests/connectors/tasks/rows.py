"""Rows of connectors and tasks for tests, every value defaulted."""

from datetime import datetime, timedelta
from typing import Any

from connectors import database_time
from connectors.models import Connector, Task
from connectors.tasks import leases
from connectors.tasks.leases import Taken

CLUSTER = "cluster-of-the-tests-0"


def add_connector(name: str = "c", **fields: Any) -> Connector:
    known = {
        "cluster": CLUSTER,
        "name": name,
        "plugin": "samsa.datagen",
        "kind": "source",
        "config": {"name": name, "topic": "t"},
        "target": "STARTED",
        "state": "RUNNING",
        "generation": 1,
        "planned_generation": 1,
    }
    return Connector.objects.create(**{**known, **fields})


def add_task(connector: Connector, number: int = 0, **fields: Any) -> Task:
    known = {"generation": 1, "state": "UNASSIGNED", "epoch": 7, "assigned": "w1"}
    return Task.objects.create(connector=connector, number=number, **{**known, **fields})


def queued(task: Task, worker: str = "w1") -> datetime:
    """Give a task to a queue, and return the ticket."""
    ticket = database_time.now()
    Task.objects.filter(pk=task.pk).update(assigned=worker, queued_at=ticket)
    return ticket


def taken(task: Task, worker: str = "w1") -> Taken:
    found = leases.take(worker, task.pk, queued(task, worker))
    assert found is not None
    return found


def expire(task: Task) -> None:
    """Let the lease of a task be over."""
    past = database_time.now() - timedelta(seconds=1)
    Task.objects.filter(pk=task.pk).update(leased_until=past)


def again(task: Task) -> Task:
    return Task.objects.get(pk=task.pk)
