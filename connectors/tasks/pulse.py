"""Renews the lease of the running slice, stores its figures, and learns its next orders.

It runs in a thread beside the slice, so that a task that waits long for its target keeps its lease.
The time limit of the worker ends a task that hangs, and with it the renewals.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Self

from django.db import DatabaseError, connections

from connectors.database import CONNECT
from connectors.runtime.figures import Account, Figures
from connectors.runtime.ports import Verdict
from connectors.tasks import leases
from connectors.tasks.leases import LEASE, Taken, Told

log: Final = logging.getLogger(__name__)
# How soon a slice notices that others wait, or that it should stop.
LOOK_S: Final = 0.5
RENEW_S: Final = 5.0
# After this without a renewal the lease counts as lost: the slice ends before another worker may
# take it.
MAX_SILENCE_S: Final = LEASE.total_seconds() - 3


class Pulse:
    """The lease of one slice, as a context manager."""

    def __init__(self, taken: Taken, figures: Figures, *, is_draining: Callable[[], bool]) -> None:
        self._taken = taken
        self._figures = figures
        self._condition = leases.condition_of(taken)
        figures.retrying = self._condition.retrying
        figures.has_worked = self._condition.has_worked
        self._account = Account(taken.figures, time.monotonic() - taken.waited_s)
        self._is_draining = is_draining
        self._verdict = Verdict.YIELD if taken.has_others else Verdict.KEEP
        self._renewed_at = time.monotonic()
        self._is_suspect = taken.has_crashed
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(MAX_SILENCE_S)

    def renew(self) -> Verdict:
        if time.monotonic() - self._renewed_at > MAX_SILENCE_S:
            return Verdict.LOST
        if self._is_draining() and self._verdict is not Verdict.LOST:
            return Verdict.STOP
        return self._verdict

    def progress(self) -> None:
        """Reset the task's crash count at once: its worker may be killed in the next second."""
        if not self._is_suspect:
            return
        try:
            leases.forgive(self._taken)
        except DatabaseError as error:
            # The next commit, or the end of the slice, tries again.
            connections[CONNECT].close()
            log.warning("task.not_forgiven task=%s reason=%r", self._taken.task, str(error))
        else:
            self._is_suspect = False

    def told(self) -> Told:
        """Return the report on the task."""
        counted = self._account.after(
            self._figures.counts(), time.monotonic(), self._figures.batch()
        )
        condition = self._condition.after(self._figures, time.time_ns() // 1_000_000)
        return Told(figures={**counted, **condition}, topics=self._figures.topics())

    def _beat(self) -> None:
        try:
            while not self._over.wait(LOOK_S):
                try:
                    self._look()
                except DatabaseError as error:
                    # It may be back before the lease expires; a broken connection is reopened.
                    connections[CONNECT].close()
                    log.warning("lease.not_renewed task=%s reason=%r", self._taken.task, str(error))
        finally:
            connections[CONNECT].close()

    def _look(self) -> None:
        before = time.monotonic()
        if before - self._renewed_at >= RENEW_S:
            if not leases.renew(self._taken, self.told()):
                self._verdict = Verdict.LOST
                return
            self._renewed_at = before
        self._verdict = leases.verdict(self._taken)
