"""Reads the last report of each worker of a pool, and whether it is still current."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from connectors import database_time
from connectors.models import Worker, WorkerReport
from connectors.runtime.pools import SPARK
from connectors.selectors import WORKER_SILENCE

__all__ = ["SPARK", "Report", "reports"]

# Over twice the interval at which a worker repeats an unchanged report.
SILENCE: Final = timedelta(seconds=40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The last report of a worker. A silent worker has ended or cannot be reached."""

    worker: str
    host: str
    told: Mapping[str, Any]
    told_at: datetime
    is_silent: bool


def reports(cluster: str, pool: str) -> list[Report]:
    """Return the last report of each worker of a pool, newest first."""
    now = database_time.now()
    present = set(
        Worker.objects.filter(cluster=cluster, pool=pool, seen_at__gte=now - WORKER_SILENCE)
        .values_list("name", flat=True)
        .order_by("name")
    )
    rows = WorkerReport.objects.filter(cluster=cluster, pool=pool).order_by("-told_at")
    return [
        Report(
            worker=row.name,
            host=row.host,
            told=row.told,
            told_at=row.told_at,
            is_silent=row.name not in present or now - row.told_at > SILENCE,
        )
        for row in rows
    ]
