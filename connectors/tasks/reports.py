"""Stores the state of a worker's engine in a row that outlives the worker.

Only pools with an engine have reports. A report is a row, not a file of the home, since a console
may run on another host than the worker. `connectors.worker_reports` decides by its time, and by
the worker's own row, whether it is still current.
"""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from django.db import DatabaseError

from connectors import database_time
from connectors.models import WorkerReport
from connectors.plugins.spark import report as spark
from connectors.runtime.pools import SPARK
from connectors.tasks import processes

log: Final = logging.getLogger(__name__)
Telling = Callable[[], Mapping[str, Any]]
TELLINGS: Final[Mapping[str, Telling]] = {SPARK: spark.told}
# An unchanged report is stored again after this, so that its silence means something.
EVERY_S: Final = 15.0
# Reports of workers that have been silent for this long are deleted.
KEPT: Final = timedelta(days=7)
ENDED: Final = {"stage": "ended", "is_stopped": True, "streams": [], "memory_bytes": None}


class Reporter:
    """Reports for one worker; its presence thread calls it every few seconds."""

    def __init__(self, *, cluster: str, worker: str, pool: str) -> None:
        self._place = {"cluster": cluster, "pool": pool, "host": processes.host()}
        self._worker = worker
        self._telling = TELLINGS.get(pool)
        self._told: Mapping[str, Any] | None = None
        self._told_at_s = 0.0

    def say(self) -> None:
        """Store the report if it is new, or if the last one is old."""
        if self._telling is None:
            return
        told = self._telling()
        if told == self._told and time.monotonic() - self._told_at_s < EVERY_S:
            return
        if self._told is None:
            old = database_time.now() - KEPT
            WorkerReport.objects.filter(cluster=self._place["cluster"], told_at__lt=old).delete()
        self._write(told)

    def end(self) -> None:
        """Store that the worker was stopped."""
        if self._telling is None or self._told is None:
            return
        try:
            self._write({**self._telling(), **ENDED})
        except DatabaseError as error:
            # Its silence shows the same a few seconds later.
            log.warning("report.not_ended worker=%s reason=%r", self._worker, str(error))

    def _write(self, told: Mapping[str, Any]) -> None:
        WorkerReport.objects.update_or_create(
            name=self._worker,
            defaults={**self._place, "told": told, "told_at": database_time.now()},
        )
        self._told, self._told_at_s = told, time.monotonic()
