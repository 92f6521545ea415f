"""Merges the small files of a Delta table, as a transaction of its library beside the batches.

Readers see the table with the old files or with the merged ones, and batches that are added
meanwhile do not conflict. Old files stay until the table's retention is over, for readers of an
older version.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from connectors.plugins.spark.state import sync_folder
from connectors.plugins.spark.tables import sync_file

if TYPE_CHECKING:
    from deltalake import DeltaTable as Delta

# Of a merged file, as Delta's own default; two files below half of it always fit into one.
TARGET_BYTES: Final = 100 * 1024 * 1024
SMALL_BYTES: Final = TARGET_BYTES // 2
# Commit what is merged so often, so that an end of the worker costs no more than this.
COMMIT_EVERY: Final = timedelta(seconds=30)
# Limits an error of the library in a message.
MAX_SHOWN_CHARS: Final = 300


def compact(
    folder: Path, *, min_files: int, log: Callable[[str], None], sync_log: Callable[[], None]
) -> None:
    """Merge small files if a folder of the table has enough of them.

    A failure is logged, and no row depends on it. `sync_log` makes transactions durable.
    """
    from deltalake import DeltaTable as Opened  # noqa: PLC0415 - an extra

    try:
        if not Opened.is_deltatable(str(folder)):
            return
        table = Opened(str(folder))
        if max(small_files(table).values(), default=0) >= min_files:
            log(_merged(table, folder, sync_log))
    # The library and its parsers raise classes of their own.
    except Exception as error:  # noqa: BLE001
        shown = f"{type(error).__name__}: {error}"[:MAX_SHOWN_CHARS]
        log(f"small files of {folder.name} are not merged, a later batch tries again: {shown}")


def _merged(table: "Delta", folder: Path, sync_log: Callable[[], None]) -> str:
    before = set(table.file_uris())
    done = table.optimize.compact(
        target_size=TARGET_BYTES, max_concurrent_tasks=1, min_commit_interval=COMMIT_EVERY
    )
    # The library syncs neither the files nor the transaction.
    for uri in set(table.file_uris()) - before:
        path = Path(uri.removeprefix("file://"))
        sync_file(path)
        sync_folder(path.parent)
    sync_log()
    removed = table.vacuum(dry_run=False)
    return (
        f"merged {done['numFilesRemoved']} small files of {folder.name} into"
        f" {done['numFilesAdded']}, and deleted {len(removed)} that were replaced before the"
        " table's retention"
    )


def small_files(table: "Delta") -> Counter[str]:
    """Return the number of small files of each folder."""
    actions = table.get_add_actions(flatten=True)
    paths, sizes = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
    return Counter(
        path.rpartition("/")[0]
        for path, size in zip(paths, sizes, strict=True)
        if size < SMALL_BYTES
    )
