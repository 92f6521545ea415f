"""Old snapshots of an Iceberg table, which each batch adds one to: which may go, and with what.

A commit writes the metadata of all snapshots, so it would take ever longer. Only those go whose
rows all are in later ones, so that no data file is left behind that nothing names: a table that
others have deleted from, or compacted, is theirs to clear. Imports pyiceberg, which is an extra, so
that only functions import this module.
"""

from contextlib import suppress
from itertools import pairwise
from typing import Final

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Snapshot

from connectors.plugins.spark.iceberg import METADATA
from connectors.plugins.spark.iceberg_catalog import path_of
from connectors.sdk.errors import ConnectorError

# The property that says how many snapshots stay; a table without it keeps all.
KEPT: Final = "samsa.snapshots.kept"
# Many are cleared at once, since that takes a commit, and the reading of each one's manifests.
MORE: Final = 100


def expire(table: Table) -> None:
    """Remove old snapshots where there are too many, and the files that only these need."""
    old = outdated(table.metadata)
    if not old:
        return
    first_kept = table.metadata.snapshots[len(old)]
    lists = {one.manifest_list for one in old}
    try:
        needed = {one.manifest_path for one in first_kept.manifests(table.io)}
        found = {part.manifest_path for one in old for part in one.manifests(table.io)}
    except (OSError, ConnectorError):
        # Others have moved or removed some; the batch is in the table, and old snapshots may stay.
        return
    try:
        table.maintenance.expire_snapshots().by_ids([one.snapshot_id for one in old]).commit()
    except CommitFailedException:
        # Another writer was faster; a later batch comes here again.
        return
    own = (path_of(table.metadata.location) / METADATA).resolve()
    for path in sorted(lists | (found - needed)):
        # What stays is a small file that nobody reads. Others may have written what a list names.
        with suppress(OSError, ConnectorError):
            if path_of(path).resolve().is_relative_to(own):
                table.io.delete(path)


def outdated(metadata: TableMetadata) -> list[Snapshot]:
    """Return the snapshots that may go: the oldest, while each adds to the one before it."""
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
            # It may take away rows of the one before it, which has to say so.
            count = min(count, index)
            break
    return snapshots[:count]
