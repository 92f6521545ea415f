"""Runs a worker process: Celery's parent, and the one child that runs slices.

The parent opens no database connection, so that the child inherits none. The child reports that
the worker is alive, and ends with its parent.
"""

import ctypes
import logging
import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from celery import Celery, signals  # type: ignore[import-untyped]
from django.db import DatabaseError, close_old_connections, connections

from connectors.database import CONNECT
from connectors.runtime.pools import PLAIN
from connectors.runtime.redrive import Wire
from connectors.tasks import (
    celery_app,
    home,
    leases,
    preparation,
    processes,
    redrives,
    workers,
)
from connectors.tasks.reports import Reporter
from connectors.tasks.slices import HostClock, Runner

log: Final = logging.getLogger(__name__)
PR_SET_PDEATHSIG: Final = 1
PRCTL: Final = ctypes.CDLL(None, use_errno=True).prctl
# How long a message waits for a child that has not reached the database yet.
REGISTERED_WITHIN_S: Final = 30.0
# A worker ends if messages wait for it and none has arrived at this many of its reports in a row:
# Celery has lost its connection without noticing, which happens if Valkey ends while it
# acknowledges a message.
DEAF_AFTER: Final = 3
# The usual form in Kubernetes and in Connect's status: a name and a host.
NAME: Final = "{}@{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The identity of a worker within its cluster."""

    cluster: str
    name: str
    # Its component name in the home.
    component: str
    pool: str = PLAIN


class Flag:
    """A bit that the parent sets and its children read."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 1)

    def set(self) -> None:
        self._shared[0] = 1

    def is_set(self) -> bool:
        return self._shared[0] == 1


class Child:
    """The part of a worker that runs in the child; created after the fork."""

    def __init__(self, app: Celery, place: Place, wire: Wire, draining: Flag) -> None:
        self._app = app
        self._place = place
        self._wire = wire
        self._draining = draining
        self._parent = processes.this_one(os.getppid())
        self._runner = Runner(place.name, wire, is_draining=draining.is_set)
        self._reporter = Reporter(cluster=place.cluster, worker=place.name, pool=place.pool)
        self._registered = threading.Event()
        self._over = threading.Event()
        # Whether a message is being processed, and whether one has arrived since the last check.
        self._at_work = threading.Event()
        self._heard = threading.Event()
        self._unheard = 0
        self._thread = threading.Thread(target=self._keep_known, name="presence", daemon=True)

    def begin(self) -> None:
        PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._parent.number:
            # The parent died before the call above, so no signal will arrive.
            os._exit(1)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._runner.close()
        # The thread must not overwrite the final report.
        if self._thread.is_alive():
            self._thread.join(workers.SEEN_EVERY_S)
        self._reporter.end()

    def run(self, task: int, ticket: datetime) -> None:
        """Run a slice, and queue the next one if the task continues at once."""
        if not self._registered.wait(REGISTERED_WITHIN_S):
            return
        with self._working():
            again = self._runner.run(task, ticket)
        if again is None:
            return
        with celery_app.logging_unsent(log, f"slice.not_queued task={task}"):
            celery_app.send_run(self._app, self._place.name, task, again)

    def prepare(self, connector: int, generation: int) -> None:
        if self._registered.wait(REGISTERED_WITHIN_S):
            with self._working():
                preparation.prepare(self._place.name, connector, generation)

    def redrive(self, run: int, ticket: datetime) -> None:
        """Run a slice of a redrive, and queue the next one."""
        if self._draining.is_set() or not self._registered.wait(REGISTERED_WITHIN_S):
            return
        with self._working():
            name, clock = self._place.name, HostClock()
            again = redrives.run_slice(name, run, ticket, wire=self._wire, clock=clock)
        if again is None:
            return
        with celery_app.logging_unsent(log, f"redrive.not_queued run={run}"):
            celery_app.send_redrive(self._app, name, run, again)

    @contextmanager
    def _working(self) -> Iterator[None]:
        self._heard.set()
        self._at_work.set()
        # One that the database has closed meanwhile would fail the message.
        close_old_connections()
        try:
            yield
        finally:
            close_old_connections()
            self._at_work.clear()

    def _listen(self) -> None:
        """End a worker that receives no messages, so that the supervisor restarts it."""
        is_deaf = (
            not self._heard.is_set()
            and not self._at_work.is_set()
            and leases.has_others(self._place.name, 0)
        )
        self._heard.clear()
        self._unheard = self._unheard + 1 if is_deaf else 0
        if self._unheard >= DEAF_AFTER:
            log.error("worker.deaf worker=%s", self._place.name)
            # The parent has no work in progress, and this process ends with it.
            os.kill(self._parent.number, signal.SIGKILL)

    def _keep_known(self) -> None:
        """Report that the worker is alive, as long as this process runs."""
        try:
            while True:
                try:
                    self._say()
                except DatabaseError as error:
                    # Close it: a broken connection is reopened.
                    connections[CONNECT].close()
                    log.warning("worker.not_told reason=%r", str(error))
                if self._over.wait(workers.SEEN_EVERY_S):
                    return
        finally:
            connections[CONNECT].close()

    def _say(self) -> None:
        name, parent = self._place.name, self._parent
        if self._registered.is_set():
            if not workers.seen(name, parent):
                self._register(is_new=False)
            self._listen()
            home.touch(self._place.component)
            self._reporter.say()
            return
        self._register(is_new=True)
        self._registered.set()
        log.info("worker.registered worker=%s process=%d", name, parent.number)

    def _register(self, *, is_new: bool) -> None:
        place = self._place
        workers.register(place.cluster, place.name, self._parent, is_new=is_new, pool=place.pool)


def serve(place: Place, make_wire: Callable[[], Wire], say_ready: Callable[[], None]) -> None:
    """Run the worker in this process until a signal stops it."""
    app = celery_app.make(place.cluster, place.pool)
    draining = Flag()
    children: list[Child] = []

    @app.task(name=celery_app.RUN)  # type: ignore[untyped-decorator]
    def run_slice(*, task: int, ticket: str) -> None:
        children[0].run(task, datetime.fromisoformat(ticket))

    @app.task(name=celery_app.PREPARE)  # type: ignore[untyped-decorator]
    def prepare(*, connector: int, generation: int) -> None:
        children[0].prepare(connector, generation)

    @app.task(name=celery_app.REDRIVE)  # type: ignore[untyped-decorator]
    def redrive(*, run: int, ticket: str) -> None:
        children[0].redrive(run, datetime.fromisoformat(ticket))

    def begin(**_: Any) -> None:
        # Close inherited connections: they belong to the parent.
        connections.close_all()
        children.append(Child(app, place, make_wire(), draining))
        children[0].begin()

    def end(**_: Any) -> None:
        for child in children:
            child.end()

    signals.worker_process_init.connect(begin, weak=False)
    signals.worker_process_shutdown.connect(end, weak=False)
    signals.worker_shutting_down.connect(lambda **_: draining.set(), weak=False)
    signals.worker_ready.connect(lambda **_: say_ready(), weak=False)
    # Prevent Celery from replacing the handler that the command has set up.
    signals.setup_logging.connect(lambda **_: None, weak=False)
    # Past Celery's command line, whose shells and graphs take a third of a worker's start.
    app.Worker(
        hostname=NAME.format("worker", place.name),
        queues=celery_app.QUEUE.format(place.name),
        loglevel="WARNING",
        # Without the banner, which would repeat in the log at each start.
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    ).start()
