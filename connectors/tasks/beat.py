"""Runs the planner once a second, unless another host does, and at once when a worker ends.

Not Celery's beat: that sends messages to workers, whose one child may be busy for 30 s, while the
planner must run precisely when workers are busy or gone.
"""

import logging
import os
import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Protocol

from celery import Celery  # type: ignore[import-untyped]
from django.db import DatabaseError, connections, transaction

from connectors import database_time, wanted
from connectors.database import CONNECT
from connectors.models import Beat
from connectors.runtime.pools import POOLS
from connectors.tasks import (
    celery_app,
    home,
    planning,
    processes,
    redrives,
    vouching,
    workers,
)
from connectors.tasks.processes import Process, Watched

log: Final = logging.getLogger(__name__)
TICK_S: Final = 1.0
# The same while a connector waits for its tasks, for as long as the start of a worker takes; one
# that waits longer has failed, or no worker runs.
SOON_S: Final = 0.1
SOON_FOR_S: Final = 15.0
COMPONENT: Final = "connect-beat"
# A user who deletes the last connector may soon create another one, and processes take seconds to
# start.
CALM_S: Final = 60.0
# How often to check facts that seldom change. A connector may run this long without its author's
# right, plus the time until its slice ends.
LOOK_S: Final = 15.0
# A beat that is gone with its host is replaced after this.
HOLD: Final = timedelta(seconds=6)
# The role is renewed when this much of it is left.
HOLD_AGAIN: Final = timedelta(seconds=3)


class Queues:
    """The queues of Celery, for the planner."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def run(self, worker: str, task: int, ticket: datetime) -> None:
        celery_app.send_run(self._app, worker, task, ticket)

    def prepare(self, worker: str, connector: int, generation: int) -> None:
        celery_app.send_prepare(self._app, worker, connector, generation)

    def redrive(self, worker: str, run: int, ticket: datetime) -> None:
        celery_app.send_redrive(self._app, worker, run, ticket)

    def purge(self, worker: str) -> None:
        celery_app.purge(self._app, worker)


class AllMessages(planning.Messages, redrives.Messages, Protocol):
    """The messages that the beat sends."""


class Planner:
    """Plans in rounds; in between, it waits for workers to end."""

    def __init__(self, cluster: str, messages: AllMessages) -> None:
        self._cluster = cluster
        self._messages = messages
        self._watched = Watched()
        self._names: dict[Process, str] = {}
        self._looked_at = float("-inf")
        self._had_some_at = dict.fromkeys(POOLS, time.monotonic())
        # Since when connectors wait for their tasks; None while none does.
        self._waiting_since: float | None = None
        self._holder = f"{processes.host()}:{os.getpid()}:{processes.began(os.getpid())}"

    def round(self, wait_s: float) -> None:
        """Wait, then plan; retry in the next round if the database is down."""
        ended = self._watched.wait(wait_s)
        try:
            for process in ended:
                workers.bury(self._names[process], process)
            self._watch()
            now = time.monotonic()
            if now - self._looked_at >= LOOK_S:
                self._look(now)
            if hold(self._cluster, self._holder):
                workers.bury_silent(self._cluster)
                planning.plan(self._cluster, self._messages)
                redrives.plan(self._cluster, self._messages)
                self._note_waiting(now)
            home.touch(COMPONENT)
        except DatabaseError as error:
            log.warning("plan.not_made reason=%r", str(error))
            connections[CONNECT].close()

    @property
    def wait_s(self) -> float:
        """The time until the next round is due."""
        since = self._waiting_since
        return TICK_S if since is None or time.monotonic() - since > SOON_FOR_S else SOON_S

    def close(self) -> None:
        """Remove the marks of pools without connectors; without any, the home starts no beat."""
        try:
            for pool in POOLS:
                wanted.take_back(self._cluster, pool)
        except DatabaseError as error:
            log.warning("plan.mark_kept reason=%r", str(error))

    def _note_waiting(self, now: float) -> None:
        if not planning.has_waiting(self._cluster):
            self._waiting_since = None
        elif self._waiting_since is None:
            self._waiting_since = now

    def _look(self, now: float) -> None:
        self._looked_at = now
        for pool in POOLS:
            if not wanted.is_empty(self._cluster, pool):
                self._had_some_at[pool] = now
            elif now - self._had_some_at[pool] >= CALM_S:
                wanted.take_back(self._cluster, pool)
        vouching.end_unvouched(self._cluster)

    def _watch(self) -> None:
        here = workers.of_this_host(self._cluster)
        self._names = {process: name for name, process in here.items()}
        for process in self._watched.watch(set(here.values())):
            workers.bury(self._names[process], process)


def hold(cluster: str, holder: str) -> bool:
    """Take or renew the role of the planner; return whether `holder` has it."""
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
    """Plan until a signal stops this process."""
    stops: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda which, _frame: stops.append(which))
    planner = Planner(cluster, Queues(celery_app.make(cluster)))
    say_ready()
    while not stops:
        planner.round(planner.wait_s)
    planner.close()
