"""Removes old snapshots of an Iceberg table, to which each batch adds one.

Each commit writes the metadata of all snapshots, so commits would take ever longer. A snapshot is
removed only if later ones hold all of its rows, so that no unreferenced data file remains. Tables
that others have deleted from, or compacted, are left to them. Imports pyiceberg, which is an extra,
so only functions import this module.
"""

from contextlib import suppress
from itertools import pairwise
from typing import Final

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot

from connectors.plugins.spark.iceberg_catalog import path_of
from connectors.sdk.errors import ConnectorError
from connectors.sdk.home_files import ICEBERG_METADATA

# The property that sets how many snapshots are kept; a table without it keeps all.
KEPT: Final = "samsa.snapshots.kept"
# Expire many at once: each expiry takes a commit and reads the manifests of each snapshot.
MORE: Final = 100


def expire(table: Table) -> None:
    """Remove surplus old snapshots, and the files that only they need."""
    old = outdated(table.metadata)
    if not old:
        return
    first_kept = table.metadata.snapshots[len(old)]
    lists = {one.manifest_list for one in old}
    try:
        needed = {one.manifest_path for one in first_kept.manifests(table.io)}
        found = {part.manifest_path for one in old for part in one.manifests(table.io)}
    except (OSError, ConnectorError):
        # Others have moved or removed some. The batch is committed, so old snapshots may stay.
        return
    try:
        table.maintenance.expire_snapshots().by_ids([one.snapshot_id for one in old]).commit()
    except CommitFailedException:
        # Another writer committed first; a later batch tries again.
        return
    own = (path_of(table.metadata.location) / ICEBERG_METADATA).resolve()
    for path in sorted(lists | (found - needed)):
        # A file that stays is small and unused. Others may have written the paths in a list.
        with suppress(OSError, ConnectorError):
            if path_of(path).resolve().is_relative_to(own):
                table.io.delete(path)


def outdated(metadata: TableMetadata) -> list[Snapshot]:
    """Return the snapshots to remove: the oldest, as long as each appends to the one before it."""
    kept = metadata.properties.get(KEPT, "")
    count = len(metadata.snapshots) - int(kept) if kept.isdecimal() else 0
    if count < MORE or set(metadata.refs) != {MAIN_BRANCH}:
        return []
    snapshots = metadata.snapshots
    if metadata.refs[MAIN_BRANCH].snapshot_id != snapshots[-1].snapshot_id:
        return []
    for index, (before, one) in enumerate(pairwise(snapshots)):
        if one.parent_snapshot_id != before.snapshot_id:
            return []
        if one.summary is None or one.summary.operation is not Operation.APPEND:
            # It may remove rows of the snapshot before it, which records that removal.
            count = min(count, index)
            break
    return list(snapshots[:count])
