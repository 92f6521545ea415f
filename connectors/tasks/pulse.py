"""Renews the lease of the slice that runs, and knows what it is to do next.

A thread beside the slice, so that a task that waits long for its target keeps its lease; one that
hangs for ever is ended by its worker's time limit, and renews no more.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Self

from django.db import DatabaseError, connections

from connectors.database import CONNECT
from connectors.runtime.ports import Verdict
from connectors.tasks import leases
from connectors.tasks.leases import LEASE, Taken

log: Final = logging.getLogger(__name__)
# How soon a slice hears that others wait, or that it is to stop.
LOOK_S: Final = 0.5
RENEW_S: Final = 5.0
# A lease that could not be renewed for so long is as good as lost: the slice ends before another
# worker may take it.
MAX_SILENCE_S: Final = LEASE.total_seconds() - 3


class Pulse:
    """The lease of one slice. A context manager."""

    def __init__(self, taken: Taken, *, is_draining: Callable[[], bool]) -> None:
        self._taken = taken
        self._is_draining = is_draining
        self._verdict = Verdict.YIELD if taken.has_others else Verdict.KEEP
        self._renewed_at = time.monotonic()
        self._has_progress = False
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
        self._has_progress = True

    def _beat(self) -> None:
        try:
            while not self._over.wait(LOOK_S):
                try:
                    self._look()
                except DatabaseError as error:
                    # It may be back before the lease is over; what is broken is opened anew.
                    connections[CONNECT].close()
                    log.warning("lease.not_renewed task=%s reason=%r", self._taken.task, str(error))
        finally:
            connections[CONNECT].close()

    def _look(self) -> None:
        before = time.monotonic()
        if before - self._renewed_at >= RENEW_S:
            has_progress, self._has_progress = self._has_progress, False
            if not leases.renew(self._taken, has_progress=has_progress):
                self._verdict = Verdict.LOST
                return
            self._renewed_at = before
        self._verdict = leases.verdict(self._taken)
