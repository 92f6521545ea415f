"""Runs that send dead letters again: the beat queues them, workers run them, rows hold the state.

As with tasks, a message is a hint and the row decides: the epoch rises when the owner changes, and
an owner with an older epoch cannot store anything.
"""

import logging
from datetime import datetime, timedelta
from typing import Final, Protocol

from django.db import DatabaseError, connections, transaction
from django.db.models import QuerySet

from connectors import database_time
from connectors.database import CONNECT
from connectors.models import Redrive as Row
from connectors.models import RunState
from connectors.redrive_plans import plan_in
from connectors.runtime.pools import PLAIN
from connectors.runtime.ports import Clock, LeaseLost, Verdict
from connectors.runtime.redrive import Ending, Redrive, Run, RunEnd, Step, Wire
from connectors.tasks import leases, workers
from connectors.tasks.celery_app import logging_unsent

log: Final = logging.getLogger(__name__)
# One batch waits for the cluster up to 15 s, and the lease is renewed between batches.
LEASE: Final = timedelta(seconds=40)
# A message that no worker took is sent again with the same ticket; the first to arrive counts.
TOLD_AGAIN: Final = timedelta(seconds=20)
# How often to retry a cluster that does not answer, before the run fails.
MAX_FAILURES: Final = 20
LATER: Final = timedelta(seconds=3)
AWAY: Final = (
    "the cluster did not answer {count} times in a row; last error: {reason}. Check that the"
    " brokers run, then resume the run"
)


class Messages(Protocol):
    """The queues of workers; calls raise the exceptions of the transport."""

    def redrive(self, worker: str, run: int, ticket: datetime) -> None: ...


class RowLedger:
    """The row of a run that a worker owns."""

    def __init__(self, pk: int, *, worker: str, epoch: int) -> None:
        self._pk = pk
        self._worker = worker
        self._epoch = epoch

    def renew(self) -> Verdict:
        until = database_time.now() + LEASE
        if not self.rows().update(leased_until=until):
            return Verdict.LOST
        if not self.rows().filter(state=RunState.RUNNING).exists():
            return Verdict.STOP
        return Verdict.YIELD if leases.has_others(self._worker, 0) else Verdict.KEEP

    def begin(self) -> None:
        if not self.rows().update(is_in_doubt=True):
            raise LeaseLost

    def store(self, step: Step) -> None:
        with transaction.atomic(using=CONNECT):
            row = self.rows().select_for_update().first()
            now = database_time.now()
            if row is None or row.leased_until is None or row.leased_until <= now:
                raise LeaseLost
            row.positions = {str(at): offset for at, offset in step.positions.items()}
            row.mark = {str(at): offset for at, offset in step.mark.items()}
            row.is_in_doubt, row.failures, row.changed_at = False, 0, now
            row.looked += step.looked
            row.sent += step.sent
            row.sent_bytes += step.sent_bytes
            for reason, count in step.unsent.items():
                row.unsent[reason.value] = row.unsent.get(reason.value, 0) + count
            row.leased_until = now + LEASE
            row.save()

    def rows(self) -> "QuerySet[Row]":
        return Row.objects.filter(
            pk=self._pk, worker=self._worker, epoch=self._epoch, leased_until__isnull=False
        )


def run_slice(
    worker: str, pk: int, ticket: datetime, *, wire: Wire, clock: Clock
) -> datetime | None:
    """Run a slice; return the ticket of the next one if it continues at once."""
    try:
        taken = take(worker, pk, ticket)
        if taken is None:
            return None
        run, ledger = taken
        end = Redrive(run, wire=wire, ledger=ledger, clock=clock).slice()
        return release(ledger, end)
    except DatabaseError as error:
        # The lease expires, and the beat takes over.
        log.warning("redrive.not_run run=%d reason=%r", pk, str(error))
        connections[CONNECT].close()
        return None


def take(worker: str, pk: int, ticket: datetime) -> tuple[Run, RowLedger] | None:
    """Take a run for a worker; None if its row does not match the ticket."""
    with transaction.atomic(using=CONNECT):
        row = Row.objects.select_for_update().filter(pk=pk, state=RunState.RUNNING).first()
        now = database_time.now()
        if row is None or row.worker != worker or row.queued_at != ticket:
            return None
        if row.leased_until is not None and row.leased_until > now:
            return None
        # Raised in each slice: a slice without a lease may still run in the worker's former child.
        row.epoch += 1
        row.leased_until, row.queued_at = now + LEASE, None
        row.save(update_fields=["epoch", "leased_until", "queued_at"])
    return run_of(row), RowLedger(row.pk, worker=worker, epoch=row.epoch)


def run_of(row: Row) -> Run:
    plan = plan_in(row.plan)
    return Run(
        id=str(row.pk),
        dead_topic=plan.dead_topic,
        topic_ids=plan.topic_ids,
        destination=plan.destination,
        choice=plan.choice,
        to=plan.to,
        targets=frozenset(plan.targets),
        positions={int(at): offset for at, offset in row.positions.items()},
        mark={int(at): offset for at, offset in row.mark.items()},
        is_in_doubt=row.is_in_doubt,
    )


def release(ledger: RowLedger, end: RunEnd) -> datetime | None:
    """Release a run with the result of its slice; return the ticket of the next one, if any."""
    with transaction.atomic(using=CONNECT):
        row = ledger.rows().select_for_update().first()
        if row is None:
            return None
        now = database_time.now()
        row.leased_until, row.changed_at = None, now
        if row.state == RunState.RUNNING:
            _note_end(row, end, now)
        goes_on = row.state == RunState.RUNNING and end.ending is Ending.MORE
        row.queued_at = row.told_at = now if goes_on else None
        row.save()
    return row.queued_at


def _note_end(row: Row, end: RunEnd, now: datetime) -> None:
    match end.ending:
        case Ending.DONE:
            row.state, row.reason, row.due_at = RunState.DONE, "", None
        case Ending.FAILED:
            row.state, row.reason = RunState.FAILED, end.reason
        case Ending.LATER:
            row.failures += 1
            row.due_at, row.reason = now + LATER, end.reason
            if row.failures >= MAX_FAILURES:
                row.state = RunState.FAILED
                row.reason = AWAY.format(count=row.failures, reason=end.reason)
        case _:
            row.due_at, row.reason = None, ""


def plan(cluster: str, messages: Messages) -> int:
    """Assign runs without an owner to workers; return how many messages were sent."""
    rows = list(Row.objects.filter(connector__cluster=cluster, state=RunState.RUNNING))
    if not rows:
        return 0
    now, names, count = database_time.now(), workers.by_pool(cluster).get(PLAIN, []), 0
    for row in rows:
        if not names or not _is_to_be_told(row, names, now):
            continue
        worker = row.worker if row.worker in names else names[row.pk % len(names)]
        has_ticket = row.queued_at is not None and row.worker == worker
        ticket = row.queued_at if has_ticket and row.queued_at is not None else now
        unchanged = Row.objects.filter(
            pk=row.pk, epoch=row.epoch, queued_at=row.queued_at, state=RunState.RUNNING
        )
        if unchanged.update(worker=worker, queued_at=ticket, told_at=now, leased_until=None):
            count += 1
            with logging_unsent(log, "redrive.not_sent"):
                messages.redrive(worker, row.pk, ticket)
    return count


def _is_to_be_told(row: Row, names: list[str], now: datetime) -> bool:
    if row.leased_until is not None and row.leased_until > now:
        return False
    if row.due_at is not None and row.due_at > now:
        return False
    is_waiting = row.queued_at is not None and row.worker in names
    return not is_waiting or row.told_at is None or row.told_at + TOLD_AGAIN <= now
