"""Reads the database for an agent: everything once, then only changes.

Runs in the store's thread. Detects a database that was restored from an older copy: its numbers
are below those read before, or a known number has another id.
"""

from dataclasses import dataclass
from typing import Final

from brokers.cluster.image import Position
from brokers.cluster.store import MetadataRegressed
from brokers.controlplane import models, values
from brokers.controlplane.database import one_moment
from brokers.controlplane.history import Entry, History
from brokers.controlplane.services.transactions import KEPT_BYTES, KEPT_CHANGES

# Changes read at once; more are read at the next turn, right after.
MAX_READ: Final = 500

COLUMNS: Final = ("version", "change_id", "encoded")


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """The changes since a position. `is_lost`: too many, so everything must be read again."""

    entries: tuple[Entry, ...] = ()
    is_lost: bool = False


def read_all(*, cluster_id: str) -> History:
    """Return the cluster as it is now, with the changes that led to it."""
    with one_moment():
        row = models.Cluster.objects.get(cluster_id=cluster_id)
        newest = row.changes.filter(version__gt=row.version - KEPT_CHANGES).order_by("version")
        return History(
            values.image(row),
            [_entry(columns) for columns in newest.values_list(*COLUMNS)],
            kept=KEPT_CHANGES,
            kept_bytes=KEPT_BYTES,
        )


def read_news(*, cluster_id: str, after: Position) -> News:
    """Return the changes after a position that was read before.

    The change at the position is read again: if it is another one now, or if the newest change is
    older, the database was replaced. The oldest changes are deleted first, so a missing change
    with newer ones present was deleted and proves nothing.
    """
    rows = models.Change.objects.filter(
        cluster__cluster_id=cluster_id, version__gte=after.version
    ).order_by("version")
    entries = tuple(_entry(columns) for columns in rows.values_list(*COLUMNS)[: MAX_READ + 1])
    if after.version == 0:
        return News(entries=entries, is_lost=bool(entries) and entries[0].position.version > 1)
    if entries and entries[0].position == after:
        return News(entries=entries[1:])
    if entries and entries[0].position.version > after.version:
        return News(is_lost=True)
    store = values.position(models.Cluster.objects.get(cluster_id=cluster_id))
    raise MetadataRegressed(after, store)


def check_known(*, cluster_id: str, position: Position) -> None:
    """Raise MetadataRegressed if this database never had a position that was read before."""
    if position == Position():
        return
    changes = models.Change.objects.filter(cluster__cluster_id=cluster_id)
    found = changes.filter(version=position.version).values_list("change_id", flat=True).first()
    if found is None:
        # Deleted as old, if there are newer ones.
        is_known = changes.filter(version__gt=position.version).exists()
    else:
        is_known = bytes(found) == position.id
    if not is_known:
        store = values.position(models.Cluster.objects.get(cluster_id=cluster_id))
        raise MetadataRegressed(position, store)


def _entry(columns: tuple[int, bytes, bytes]) -> Entry:
    version, change_id, encoded = columns
    return Entry(position=Position(version=version, id=bytes(change_id)), encoded=bytes(encoded))
