"""Files of a batch, from where Spark wrote them into the table.

Each file is whole before anybody can see it: it is written in a folder that readers pass over, and
renamed. The names of a batch are fixed before its first file is renamed, so an end in the middle is
gone on with, and nothing lies in the table twice.
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

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# As Hive and Spark name the folder of rows without a value.
NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
ENDING: Final = ".parquet"
DELTA_LOG: Final = "_delta_log"
# Where files of an Iceberg table lie in its folder, as others put them too.
ICEBERG_DATA: Final = "data"
ICEBERG_METADATA: Final = "metadata/*.metadata.json"
# Before the name of a column that is made for its folder only, and before a value that is empty.
COPY: Final = "_samsa_by_"
EMPTY: Final = "__EMPTY__"


class Table(Protocol):
    """What becomes of files that lie in their place."""

    # The folder that files of batches are moved to.
    files: Path
    # Whether files have the columns, too, whose values become folders.
    keeps_columns: bool

    def require(self, schema: str) -> None:
        """Raise ConnectorError where files with a schema, as Spark writes it, do not fit."""

    def add(self, state: State, batch: Batch) -> None:
        """Take the files of a batch in; does nothing for one that was taken before."""


class ParquetTable:
    """A folder: a file that is there belongs to the table."""

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
    """Tell whether a folder is that of an Iceberg table."""
    return next(folder.glob(ICEBERG_METADATA), None) is not None


def require_no_iceberg(folder: Path) -> None:
    if has_iceberg(folder):
        raise ConnectorError(
            f"{folder.name} is an Iceberg table, which would not know of the files: set"
            " table.format to iceberg, or give another folder"
        )


def require_no_log(folder: Path, path: str) -> None:
    """Refuse to read a folder as Parquet files where a log says which of them count."""
    # Files of an Iceberg table lie one folder below what makes it one.
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
    """Have Spark write rows to a folder, in folders of their values below it."""
    names = folders
    if keeps_columns:
        # Spark leaves the columns out of the files that it makes folders of.
        for name in folders:
            rows = rows.withColumn(f"{COPY}{name}", _folder_value(rows, name))
        names = [f"{COPY}{name}" for name in folders]
    # Not escaped: Hadoop takes `%20` of an address for these three characters.
    rows.write.partitionBy(*names).parquet(f"file:{staging}")


def written_files(folder: Path, state: State) -> Iterator[WrittenFile]:
    """Return what a batch has written to a folder of the staging, with the names it is to have."""
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
    """Return the values that folders such as `day=2026-01-01` name."""
    pairs = (part.partition("=") for part in parts)
    return {
        unquote(name): None if value == NO_VALUE else unquote(value) for name, _, value in pairs
    }


def sync_staged(files: Iterable[WrittenFile], staging: Path) -> None:
    """Make files durable, with the folders that name them, before a state names them."""
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


def take_back_damaged(files: Sequence[WrittenFile], staging: Path, table: Path) -> bool:
    """Tell whether a file has another size than was written; have then none of them in the table.

    A power cut may have emptied files that were not durable. No table has taken such a batch in,
    since that needs all files in their places. Spark may divide the rows among other names next
    time, so what is in its place goes back.
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
    """Put files into their places; those that lie there already are passed over."""
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
    """Return what a folder is called by, so that no two values of a column share one."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - an extra, and its usual name

    column = F.col(quoted(name))
    if rows.schema[name].dataType.typeName() != "string":
        return column
    # Spark puts texts without a character where it puts those that are not there.
    is_taken = (column == "") | column.startswith(EMPTY) | column.startswith(NO_VALUE)
    return F.when(is_taken, F.concat(F.lit(EMPTY), column)).otherwise(column)


def _is_hidden(path: Path, below: Path) -> bool:
    """Tell whether a file is Spark's own. A folder of a column such as `_topic=orders` is not."""
    parts = path.relative_to(below).parts
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def sync_file(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
