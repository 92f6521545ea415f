"""Ends connectors whose author has lost a right that they need (`connectors.authors`).

The planning process checks all connectors every few seconds, and each one before it creates tasks;
slices do not check. An unreachable database of users ends no connector.
"""

import logging
from typing import Final

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.models import Exists, F, OuterRef

from connectors import authors
from connectors.authors import Known
from connectors.models import Connector, Target, Task
from connectors.sdk.errors import RetriableError

log: Final = logging.getLogger(__name__)


def end_unvouched(cluster: str) -> int:
    """Restart connectors that need a lost right, which then fail; return how many.

    Their slices end as with any change, and the planner calls `refusal` before it creates tasks.
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
    """Return why a connector may not have tasks, an empty text if it may, None if unknown."""
    stored = Connector.objects.filter(pk=connector).values_list("claims", flat=True).first()
    try:
        return Known(cluster).lost(stored)
    except DatabaseError as error:
        _note(error)
        return None


def creation_refusal(cluster: str, connector: int, topic: str) -> str:
    """Return why a connector's author may not create a topic; RetriableError if unknown."""
    stored = Connector.objects.filter(pk=connector).values_list("claims", flat=True).first()
    try:
        return authors.creation_refusal(cluster, stored, topic)
    except DatabaseError as error:
        _note(error)
        raise RetriableError(
            f"topic {topic} does not exist, and the database does not show whether the "
            "connector's author may create it"
        ) from error


def _note(error: DatabaseError) -> None:
    log.warning("vouching.not_known reason=%r", str(error))
    connections[DEFAULT_DB_ALIAS].close()
