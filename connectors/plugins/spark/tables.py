"""Moves the files of a batch from where Spark wrote them into the table.

A file is complete before readers can see it: it is written in a folder that readers ignore, and
renamed. The names of a batch are fixed before its first file is renamed, so a move that was cut
short is continued, and no file is in the table twice.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote

from connectors.plugins.spark.batches import Batch, State, WrittenFile
from connectors.plugins.spark.schemas import quoted
from connectors.plugins.spark.state import sync_folder
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.home_files import DELTA_LOG, ICEBERG_METADATA

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The name that Hive and Spark give the folder of rows without a value.
NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
ENDING: Final = ".parquet"
# The folder for files of an Iceberg table; other engines use it too.
ICEBERG_DATA: Final = "data"
# Prefixes of a column that is only made for its folder, and of a value that is empty.
COPY: Final = "_samsa_by_"
EMPTY: Final = "__EMPTY__"


class Table(Protocol):
    """Adds files that are in their place to the table."""

    # The folder that files of batches are moved to.
    files: Path
    # Whether the columns whose values become folders are in the files, too.
    keeps_columns: bool

    def require(self, schema: str) -> None:
        """Raise ConnectorError if files with a schema, as Spark writes it, do not fit."""

    def add(self, state: State, batch: Batch) -> None:
        """Add the files of a batch; do nothing if it was added before."""


class ParquetTable:
    """A folder: each file in it belongs to the table."""

    keeps_columns = False

    def __init__(self, folder: Path) -> None:
        self._folder = self.files = folder

    def require(self, schema: str) -> None:
        del schema
        if (self._folder / DELTA_LOG).exists():
            raise ConnectorError(
                f"{self._folder.name} is a Delta table, which would not know of the files: set"
                " table.format to delta, or give another folder"
            )
        require_no_iceberg(self._folder)

    def add(self, state: State, batch: Batch) -> None:
        del state, batch


def has_iceberg(folder: Path) -> bool:
    """Return whether a folder holds an Iceberg table."""
    return next(folder.glob(f"{ICEBERG_METADATA}/*.metadata.json"), None) is not None


def require_no_iceberg(folder: Path) -> None:
    if has_iceberg(folder):
        raise ConnectorError(
            f"{folder.name} is an Iceberg table, which would not know of the files: set"
            " table.format to iceberg, or give another folder"
        )


def require_no_log(folder: Path, path: str) -> None:
    """Refuse to read a folder as Parquet files if a log decides which of them count."""
    # Files of an Iceberg table are in a folder below its own.
    above = [folder.parent] if folder.name == ICEBERG_DATA else []
    is_delta = (folder / DELTA_LOG).exists()
    if is_delta or any(map(has_iceberg, (folder, *above))):
        kind = "a Delta" if is_delta else "an Iceberg"
        raise ConnectorError(
            f"{path} belongs to {kind} table, and tables to join with are folders of Parquet"
            " files, all of which count: write the rows to a table of table.format parquet, and"
            " name that"
        )


def write(rows: "DataFrame", folders: Sequence[str], staging: Path, *, keeps_columns: bool) -> None:
    """Have Spark write rows to a folder, with a subfolder for each partition value."""
    names = folders
    if keeps_columns:
        # Spark leaves partition columns out of the files.
        for name in folders:
            rows = rows.withColumn(f"{COPY}{name}", _folder_value(rows, name))
        names = [f"{COPY}{name}" for name in folders]
    # Not escaped: Hadoop takes `%20` of an address for these three characters.
    rows.write.partitionBy(*names).parquet(f"file:{staging}")


def written_files(folder: Path, state: State) -> Iterator[WrittenFile]:
    """Return the files of a batch in a staging folder, with their names in the table."""
    from pyarrow import parquet  # noqa: PLC0415 - only tasks need it

    found = sorted(path for path in folder.rglob(f"*{ENDING}") if not _is_hidden(path, folder))
    for index, path in enumerate(found):
        inner = path.relative_to(folder)
        rows = parquet.read_metadata(path).num_rows
        if not rows:
            continue
        name = f"{state.number:010}-{index:05}-{state.app}{ENDING}"
        parts = [part.removeprefix(COPY) for part in inner.parent.parts]
        yield WrittenFile(
            staged=str(folder.name / inner),
            path=str(Path(*parts, name)),
            size=path.stat().st_size,
            rows=rows,
            partition=partition_of(parts),
        )


def partition_of(parts: Iterable[str]) -> Mapping[str, str | None]:
    """Return the partition values that folders such as `day=2026-01-01` name."""
    pairs = (part.partition("=") for part in parts)
    return {
        unquote(name): None if value == NO_VALUE else unquote(value) for name, _, value in pairs
    }


def sync_staged(files: Iterable[WrittenFile], staging: Path) -> None:
    """Sync files and their folders to disk, before a state refers to them."""
    folders: set[Path] = set()
    try:
        for file in files:
            source = staging / file.staged
            sync_file(source)
            folders |= {one for one in source.parents if one.is_relative_to(staging)}
        for folder in folders:
            sync_folder(folder)
    except OSError as error:
        raise RetriableError(f"{staging} cannot be made durable: {error.strerror}") from error


def revert_if_damaged(files: Sequence[WrittenFile], staging: Path, table: Path) -> bool:
    """Move the batch back to staging if a file's size differs; return whether it did.

    A power cut may have emptied files that were not durable. No table has added such a batch, since
    that needs all files in their places. Spark may distribute the rows over other file names next
    time, so files that are in place go back.
    """
    try:
        is_damaged = any(
            not (table / file.path).exists() and _is_damaged(staging / file.staged, file.size)
            for file in files
        )
        folders: set[Path] = set()
        for file in files if is_damaged else ():
            source, target = staging / file.staged, table / file.path
            if target.exists():
                source.parent.mkdir(parents=True, exist_ok=True)
                target.replace(source)
                folders |= {source.parent, target.parent}
        for folder in folders:
            sync_folder(folder)
    except OSError as error:
        raise RetriableError(f"{staging} cannot be looked at: {error.strerror}") from error
    return is_damaged


def _is_damaged(path: Path, size: int) -> bool:
    return path.exists() and path.stat().st_size != size


def move(files: Iterable[WrittenFile], staging: Path, table: Path) -> None:
    """Move files to their places; skip those that are already there."""
    folders: set[Path] = set()
    for file in files:
        source, target = staging / file.staged, table / file.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.exists() and not _is_damaged(source, file.size):
                sync_file(source)
                source.replace(target)
            elif not target.exists():
                raise ConnectorError(
                    f"{target} was written and is gone, so the batch is not whole: put it back, or"
                    " stop the connector and set its offsets to where the batch began"
                )
        except OSError as error:
            raise RetriableError(f"{target} cannot be put there: {error.strerror}") from error
        folders |= {target.parent, *(one for one in target.parent.parents if table in one.parents)}
    for folder in {table, *folders}:
        sync_folder(folder)


def _folder_value(rows: "DataFrame", name: str) -> "Column":
    """Return the folder's name for a value, so that no two values of a column share a folder."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - an extra, and its usual name

    column = F.col(quoted(name))
    if rows.schema[name].dataType.typeName() != "string":
        return column
    # Spark puts empty texts into the folder of missing values.
    is_taken = (column == "") | column.startswith(EMPTY) | column.startswith(NO_VALUE)
    return F.when(is_taken, F.concat(F.lit(EMPTY), column)).otherwise(column)


def _is_hidden(path: Path, below: Path) -> bool:
    """Return whether a file is Spark's own. A partition folder such as `_topic=orders` is not."""
    parts = path.relative_to(below).parts
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def sync_file(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
