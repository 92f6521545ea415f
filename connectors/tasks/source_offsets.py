"""Reads and stores the offsets of a source, fenced by the task's epoch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import DatabaseError, connections, transaction

from connectors import database_time
from connectors.database import CONNECT
from connectors.models import SourceOffset, Task
from connectors.places import digest_of
from connectors.runtime.ports import LeaseLost
from connectors.sdk.errors import RetriableError
from connectors.sdk.records import Place
from connectors.tasks.leases import Taken


class StoredOffsets:
    """The offsets that one slice reads and stores."""

    def __init__(self, taken: Taken) -> None:
        self._taken = taken

    def read(self, place: Place) -> Place | None:
        with _passing():
            row = SourceOffset.objects.filter(
                connector=self._taken.connector, digest=digest_of(place)
            ).first()
        return None if row is None else row.offset

    def store(self, offsets: Sequence[tuple[Place, Place]]) -> None:
        with _passing():
            self._store(offsets)

    def _store(self, offsets: Sequence[tuple[Place, Place]]) -> None:
        taken = self._taken
        with transaction.atomic(using=CONNECT):
            # Lock the row, so that no worker takes the task while its last offsets are stored; read
            # the clock after that, since locking may take time.
            locked = Task.objects.select_for_update().filter(
                pk=taken.task, worker=taken.worker, epoch=taken.epoch
            )
            row = locked.first()
            now = database_time.now()
            if row is None or row.leased_until is None or row.leased_until <= now:
                raise LeaseLost(f"{taken.name}-{taken.number} has another owner, or may have one")
            SourceOffset.objects.bulk_create(
                [
                    SourceOffset(
                        connector_id=taken.connector,
                        digest=digest_of(place),
                        place=dict(place),
                        offset=dict(offset),
                        epoch=taken.epoch,
                        changed_at=now,
                    )
                    for place, offset in offsets
                ],
                update_conflicts=True,
                unique_fields=["connector", "digest"],
                update_fields=["offset", "epoch", "changed_at"],
            )


@contextmanager
def _passing() -> Iterator[None]:
    """Turn an unreachable database into a reason to retry, instead of a failure of the task."""
    try:
        yield
    except DatabaseError as error:
        connections[CONNECT].close()
        raise RetriableError(f"the database of offsets does not answer: {error}") from error
