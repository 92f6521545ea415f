"""Records which task or connector a worker was running when its process ended.

It is a suspect, and waits before a worker gets it again: briefly if the process ended on its own,
and long if it was killed, since the other tasks of the worker then waited for a minute.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from connectors import database_time
from connectors.models import Connector, LogLine, Redrive, Task
from connectors.runtime.planner import AFTER_HANG
from connectors.runtime.pools import PLAIN, pool_of
from connectors.runtime.ports import Level

AFTER_CRASH: Final = timedelta(seconds=2)
# A preparation may wait longer, since no running stream depends on it.
AFTER_CRASH_OF_PREPARATION: Final = timedelta(seconds=10)
# A slice normally ends within half of the limit at which Celery kills its process: one of nearly
# that age, less the delay of a message, was killed.
MESSAGE_S: Final = 5
HUNG: Final = (
    "the {what} did not return within {limit} s, so the process of worker {worker} was killed; it"
    " is tried again in {wait:.0f} minutes, as other tasks wait for the worker: check whether what"
    " it talks to answers"
)
ENDED: Final = "the process of worker {worker} ended while it ran the {what}, try {count}"


def free_all(worker: str) -> int:
    """Release everything that a worker had, and note what it was running; return how many."""
    now = database_time.now()
    lines = [*_free_tasks(worker, now), *_free_preparations(worker, now)]
    LogLine.objects.bulk_create(lines)
    return len(lines) + _free_runs(worker)


def _free_tasks(worker: str, now: datetime) -> Iterator[LogLine]:
    leased = Task.objects.select_for_update(of=("self",)).select_related("connector")
    for row in leased.filter(worker=worker, leased_until__isnull=False):
        limit_s = pool_of(row.connector.pool).hard_limit_s
        has_hung = _has_hung(row.taken_at, now, limit_s)
        row.leased_until, row.crashes = None, row.crashes + 1
        row.due_at = now + (AFTER_HANG if has_hung else AFTER_CRASH)
        row.hung_at = now if has_hung else row.hung_at
        row.save(update_fields=["leased_until", "crashes", "due_at", "hung_at"])
        if has_hung:
            # Its tasks without progress so far may hang alike: void their messages, so that the
            # planner tries them one by one.
            waiting = Task.objects.filter(connector=row.connector_id, slice_ended_at=None)
            waiting.filter(leased_until=None).update(queued_at=None)
        text = _said("task", worker, row.crashes, limit_s if has_hung else None)
        yield _line(row.connector_id, row.number, text)


def _free_preparations(worker: str, now: datetime) -> Iterator[LogLine]:
    at_work = Connector.objects.select_for_update().filter(worker=worker)
    for row in at_work.filter(preparing_at__isnull=False):
        limit_s = pool_of(PLAIN).hard_limit_s
        has_hung = _has_hung(row.preparing_at, now, limit_s)
        row.preparing_at = row.planning_since = None
        row.crashes += 1
        row.due_at = now + (AFTER_HANG if has_hung else AFTER_CRASH_OF_PREPARATION)
        row.save(update_fields=["preparing_at", "planning_since", "crashes", "due_at"])
        limit = limit_s if has_hung else None
        text = _said("question for its tasks", worker, row.crashes, limit)
        yield _line(row.pk, None, text)


def _free_runs(worker: str) -> int:
    """Let the beat assign runs to another worker; each finds out itself what it has sent."""
    rows = Redrive.objects.filter(worker=worker, leased_until__isnull=False)
    return rows.update(leased_until=None, queued_at=None)


def _has_hung(since: datetime | None, now: datetime, limit_s: int) -> bool:
    return since is not None and now - since >= timedelta(seconds=limit_s - MESSAGE_S)


def _said(what: str, worker: str, count: int, limit_s: int | None) -> str:
    """Return a log line; `limit_s` is how long it hung, None if it did not hang."""
    if limit_s is None:
        return ENDED.format(worker=worker, what=what, count=count)
    wait = AFTER_HANG.total_seconds() / 60
    return HUNG.format(worker=worker, what=what, limit=limit_s, wait=wait)


def _line(connector: int, task: int | None, text: str) -> LogLine:
    return LogLine(connector_id=connector, task=task, level=Level.ERROR.value, text=text)
