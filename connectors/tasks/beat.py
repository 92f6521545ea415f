"""The process that plans: once a second, where no other host does, and at once where a worker ends.

Not Celery's beat: that sends messages to workers, whose one child may be busy for 30 s, while the
planner has to run just when workers are busy or gone.
"""

import logging
import os
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from celery import Celery  # type: ignore[import-untyped]
from django.db import DatabaseError, connections, transaction

from connectors.database import CONNECT
from connectors.models import Beat
from connectors.tasks import celery_app, database_time, home, planning, processes, workers
from connectors.tasks.processes import Process, Watched

log: Final = logging.getLogger(__name__)
TICK_S: Final = 1.0
COMPONENT: Final = "connect-beat"
# A beat that is gone with its host is replaced after this.
HOLD: Final = timedelta(seconds=6)
# Asked for again before it is over.
HOLD_AGAIN: Final = timedelta(seconds=3)


class Queues:
    """Celery's, for the planner."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def run(self, worker: str, task: int, ticket: datetime) -> None:
        celery_app.send_run(self._app, worker, task, ticket)

    def prepare(self, worker: str, connector: int, generation: int) -> None:
        celery_app.send_prepare(self._app, worker, connector, generation)

    def purge(self, worker: str) -> None:
        celery_app.purge(self._app, worker)


class Planner:
    """One round after the other. `wait` returns workers that have ended meanwhile."""

    def __init__(self, cluster: str, messages: planning.Messages) -> None:
        self._cluster = cluster
        self._messages = messages
        self._watched = Watched()
        self._names: dict[Process, str] = {}
        self._holder = f"{processes.host()}:{os.getpid()}:{processes.began(os.getpid())}"

    def round(self, wait_s: float) -> None:
        """Wait, then do what is to be done; a database that is away is tried again."""
        ended = self._watched.wait(wait_s)
        try:
            for process in ended:
                workers.bury(self._names[process], process)
            self._watch()
            if hold(self._cluster, self._holder):
                workers.bury_silent(self._cluster)
                planning.plan(self._cluster, self._messages)
            home.touch(COMPONENT)
        except DatabaseError as error:
            log.warning("plan.not_made reason=%r", str(error))
            connections[CONNECT].close()

    def _watch(self) -> None:
        here = workers.of_this_host(self._cluster)
        self._names = {process: name for name, process in here.items()}
        for process in self._watched.watch(set(here.values())):
            workers.bury(self._names[process], process)


def hold(cluster: str, holder: str) -> bool:
    """Return whether a process is the one that plans: it is, or nobody else is."""
    with transaction.atomic(using=CONNECT):
        now = database_time.now()
        row, is_new = Beat.objects.select_for_update().get_or_create(
            cluster=cluster, defaults={"holder": holder, "until": now + HOLD}
        )
        if is_new:
            return True
        if row.holder != holder and row.until > now:
            return False
        if row.holder != holder or row.until - now < HOLD_AGAIN:
            row.holder, row.until = holder, now + HOLD
            row.save(update_fields=["holder", "until"])
    return True


def serve(cluster: str, say_ready: Callable[[], None]) -> None:
    """Plan until this process is told to stop."""
    stops: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda which, _frame: stops.append(which))
    planner = Planner(cluster, Queues(celery_app.make(cluster)))
    say_ready()
    while not stops:
        planner.round(TICK_S)
