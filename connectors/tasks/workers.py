"""Maintains the rows of workers: registers them, renews them, and removes those that are gone."""

import logging
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.db import transaction

from connectors import database_time
from connectors.database import CONNECT
from connectors.models import Worker
from connectors.runtime.pools import PLAIN
from connectors.sdk import outgoing
from connectors.tasks import crashes, processes
from connectors.tasks.processes import Process

log: Final = logging.getLogger(__name__)
# A worker reports at this interval, and counts as gone, with its host, after a silence of
# GONE_AFTER.
SEEN_EVERY_S: Final = 3.0
GONE_AFTER: Final = timedelta(seconds=10)


def register(cluster: str, name: str, process: Process, *, is_new: bool, pool: str = PLAIN) -> None:
    """Register a worker; a new child of it has no slice yet."""
    with transaction.atomic(using=CONNECT):
        if is_new:
            crashes.free_all(name)
        Worker.objects.update_or_create(
            name=name,
            defaults={
                "cluster": cluster,
                "pool": pool,
                "host": processes.host(),
                "boot_id": processes.boot_id(),
                "process_id": process.number,
                "process_began": process.began,
                "targets": outgoing.setting(),
                "seen_at": database_time.now(),
            },
        )


def seen(name: str, process: Process) -> bool:
    """Note that a worker is alive; False if its row was removed meanwhile."""
    rows = Worker.objects.filter(name=name, process_id=process.number)
    return rows.update(seen_at=database_time.now()) == 1


def of_this_host(cluster: str) -> dict[str, Process]:
    """Return the processes of the workers registered on this host."""
    rows = Worker.objects.filter(cluster=cluster, host=processes.host())
    return {
        row.name: Process(number=row.process_id, began=row.process_began)
        # Those of an earlier boot of the host are gone.
        for row in rows.filter(boot_id=processes.boot_id())
    }


def bury(name: str, process: Process) -> None:
    """Remove a worker whose process has ended, and free its tasks, unless it is back."""
    with transaction.atomic(using=CONNECT):
        gone, _ = Worker.objects.filter(
            name=name, process_id=process.number, process_began=process.began
        ).delete()
        if gone:
            freed = crashes.free_all(name)
            log.warning("worker.gone worker=%s leases=%d", name, freed)


def bury_silent(cluster: str) -> None:
    """Remove workers that have not reported for long."""
    limit = database_time.now() - GONE_AFTER
    for row in Worker.objects.filter(cluster=cluster, seen_at__lt=limit):
        # Their leases must expire first: they may still run without reaching the database.
        if Worker.objects.filter(pk=row.pk, seen_at__lt=limit).delete()[0]:
            log.warning("worker.silent worker=%s host=%s", row.name, row.host)


def by_pool(cluster: str) -> Mapping[str, list[str]]:
    """Return the worker names by pool."""
    found: dict[str, list[str]] = defaultdict(list)
    for pool, name in Worker.objects.filter(cluster=cluster).values_list("pool", "name"):
        found[pool].append(name)
    return found
