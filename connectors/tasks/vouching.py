"""Ends connectors whose author has lost a right that they rest upon (`connectors.authors`).

Looked at every few seconds by the process that plans, for all connectors at once, and for one
before its tasks are made: no slice asks for it. A database of users that is away ends nobody.
"""

import logging
from typing import Final

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.models import Exists, F, OuterRef

from connectors.authors import Known
from connectors.models import Connector, Target, Task

log: Final = logging.getLogger(__name__)


def end_unvouched(cluster: str) -> int:
    """Have connectors that rest upon a lost right begin anew, which fails; return how many.

    Their slices end as with any change, and the planner asks `refusal` before it makes tasks.
    """
    known, ended = Known(cluster), 0
    running = Connector.objects.filter(
        Exists(Task.objects.filter(connector=OuterRef("pk"))),
        cluster=cluster,
        planned_generation=F("generation"),
    ).exclude(target=Target.STOPPED)
    rows = list(running.values_list("pk", "name", "generation", "claims"))
    try:
        lost = [row for row in rows if known.lost(row[3])]
    except DatabaseError as error:
        _note(error)
        return 0
    for pk, name, generation, _ in lost:
        same = Connector.objects.filter(pk=pk, generation=generation)
        ended += same.update(generation=F("generation") + 1, planning_since=None, due_at=None)
        log.warning("connector.unvouched connector=%r", name)
    return ended


def refusal(cluster: str, connector: int) -> str | None:
    """Return why a connector may have no tasks, an empty text where it may; None: nobody knows."""
    stored = Connector.objects.filter(pk=connector).values_list("claims", flat=True).first()
    try:
        return Known(cluster).lost(stored)
    except DatabaseError as error:
        _note(error)
        return None


def _note(error: DatabaseError) -> None:
    log.warning("vouching.not_known reason=%r", str(error))
    connections[DEFAULT_DB_ALIAS].close()
