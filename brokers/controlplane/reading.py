"""What an agent reads to stay true to the database: everything once, then what is new.

Runs in the store's thread. Notices a database that was set back: numbers below those that were
read before, or a known number under another id.
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
    """What has happened since a position. `is_lost`: too much, everything must be read anew."""

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

    The change at the position is read again: where it is another one now, or the newest is an
    older one, this is not the database that it was. Changes are forgotten from the oldest on, so
    one that is gone while newer ones are there is lost and says nothing.
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
    """Raise MetadataRegressed where this database never had a position that was read before."""
    if position == Position():
        return
    changes = models.Change.objects.filter(cluster__cluster_id=cluster_id)
    found = changes.filter(version=position.version).values_list("change_id", flat=True).first()
    if found is None:
        # Forgotten, if there are newer ones.
        is_known = changes.filter(version__gt=position.version).exists()
    else:
        is_known = bytes(found) == position.id
    if not is_known:
        store = values.position(models.Cluster.objects.get(cluster_id=cluster_id))
        raise MetadataRegressed(position, store)


def _entry(columns: tuple[int, bytes, bytes]) -> Entry:
    version, change_id, encoded = columns
    return Entry(position=Position(version=version, id=bytes(change_id)), encoded=bytes(encoded))
