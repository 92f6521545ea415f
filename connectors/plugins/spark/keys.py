"""Defines the keys of the Spark sink."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from connectors.sdk import home_files
from connectors.sdk.checks import in_range, one_of
from connectors.sdk.configs import Definition, Files, Importance, Key, Kind
from connectors.sdk.connector import Parsed

PATH: Final = "table.path"
FORMAT: Final = "table.format"
NAMESPACE: Final = "iceberg.namespace"
NAME: Final = "iceberg.table"
VALUES: Final = "value.format"
SCHEMA: Final = "value.schema"
PARTITION_BY: Final = "partition.by"
PARTITION_TIME: Final = "partition.time"
COMPACT: Final = "compact.min.files"
METADATA: Final = "include.metadata"
BATCH_ROWS: Final = "batch.max.records"
BATCH_WAIT: Final = "batch.max.wait.ms"

# A table is written with all that is in its folder.
TABLE_FOLDER: Final = Files(is_written=True, is_folder=True)

TABLE, RECORDS, BATCHES = "Table", "Records", "Batches"
# Partition folders for days and hours of the records' timestamps, in UTC.
TIMES: Final[Mapping[str, Mapping[str, str]]] = {
    "none": {},
    "day": {"day": "yyyy-MM-dd"},
    "hour": {"day": "yyyy-MM-dd", "hour": "HH"},
}
# A batch takes some seconds on two cores, and is lost if the process ends.
DEFAULT_ROWS: Final = 500_000
MAX_ROWS: Final = 50_000_000
MAX_PARTITION_COLUMNS: Final = 8
# Of small files in one folder; more of them make every reader slow.
MAX_FILES: Final = 100_000
PARTITION_COLUMN: Final = "_partition"
# Spark cannot read an Iceberg table with a column of the other name, which is Iceberg's own.
ICEBERG_COLUMN: Final = "_topic_partition"
DEFAULT_NAMESPACE: Final = "default"
# Names that every engine accepts, some of them only in quotes.
TABLE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
# Characters that end a location for readers that parse it as a URL.
CUTS: Final = re.compile(r"[#?;]")
COLUMNS_BEGIN: Final = re.compile(r"[\w`]")
# Each batch writes at least one file per core and folder.
DEFAULT_WAIT_MS: Final = 10_000
MAX_WAIT_MS: Final = 24 * 60 * 60 * 1000


class Values(Enum):
    JSON = "json"
    STRING = "string"
    BINARY = "binary"


class Format(Enum):
    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


NOT_COMPACTED: Final[Mapping[Format, str]] = {
    Format.PARQUET: (
        "Files of a folder cannot be replaced at once, so readers would see rows twice or miss them"
    ),
    Format.ICEBERG: "pyiceberg has no operation that replaces files of a table by merged ones",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How rows are laid out in the table."""

    partition_by: tuple[str, ...]
    times: Mapping[str, str]
    has_metadata: bool
    # The metadata column with the number of the record's partition.
    partition_column: str = PARTITION_COLUMN

    @property
    def folders(self) -> tuple[str, ...]:
        return (*self.times, *self.partition_by)


def layout_of(parsed: Parsed) -> Layout:
    return Layout(
        partition_by=tuple(parsed[PARTITION_BY]),
        times=TIMES[parsed[PARTITION_TIME]],
        has_metadata=parsed[METADATA],
        partition_column=ICEBERG_COLUMN if _is_iceberg(parsed) else PARTITION_COLUMN,
    )


def table_name(parsed: Parsed) -> tuple[str, str]:
    """Return the namespace and the name of an Iceberg table."""
    return parsed[NAMESPACE], parsed[NAME] or home_files.parts_of(parsed[PATH])[-1]


def table_problems(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """Yield the keys of a table that conflict with its format, each with the problem."""
    reason = NOT_COMPACTED.get(Format(parsed[FORMAT])) if parsed[COMPACT] else None
    if reason:
        yield COMPACT, f"{reason}: set {COMPACT}=0, or {FORMAT}=delta for a new table"
    if not _is_iceberg(parsed):
        if parsed[NAME]:
            yield (
                NAME,
                f"Only an Iceberg table has a name: set {FORMAT} to iceberg, or leave it out",
            )
        return
    _, name = table_name(parsed)
    if not parsed[NAME] and not TABLE_NAME.fullmatch(name):
        yield (
            NAME,
            f"Give the table a name: {name} of {PATH} has more than letters, digits, _ and -",
        )
    if cut := CUTS.search(parsed[PATH]):
        yield PATH, f"Readers of Iceberg tables cut paths at {cut[0]}: give another folder"


def _check_compact(value: Any) -> str | None:
    return "Give 0 for never, or 2 files or more" if value == 1 else in_range(0, MAX_FILES)(value)


def definition() -> Definition:
    return Definition((*_of_table(), *_of_files(), *_of_records(), *of_batches()))


def _of_table() -> tuple[Key, ...]:
    return (
        _key(
            PATH,
            Kind.STRING,
            "The folder of the table, below the folder `files` of Samsa's home.",
            TABLE,
            check=home_files.problem,
            files=TABLE_FOLDER,
            importance=Importance.HIGH,
            display_name="Folder",
            example="lake/orders",
        ),
        _key(
            FORMAT,
            Kind.STRING,
            "`parquet` is a folder of files; `delta` is a Delta table, whose readers see all of a"
            " batch or nothing; `iceberg` is the same as an Iceberg table, in the catalog"
            " `iceberg.db` of the folder `files`.",
            TABLE,
            default=Format.PARQUET.value,
            check=one_of(*(one.value for one in Format)),
            importance=Importance.HIGH,
            display_name="Format",
        ),
        _key(
            NAMESPACE,
            Kind.STRING,
            "The namespace of the Iceberg table in the catalog.",
            TABLE,
            default=DEFAULT_NAMESPACE,
            check=_check_name,
            visible=_is_iceberg,
            display_name="Namespace",
        ),
        _key(
            NAME,
            Kind.STRING,
            "The name of the Iceberg table in the catalog; by default the last part of the folder.",
            TABLE,
            default="",
            check=_check_name,
            visible=_is_iceberg,
            display_name="Table name",
        ),
    )


def _of_files() -> tuple[Key, ...]:
    return (
        _key(
            PARTITION_TIME,
            Kind.STRING,
            "Folders by the time of records, in UTC: `day=2026-01-31`, and for `hour` also"
            " `hour=07` below it.",
            TABLE,
            default="none",
            check=one_of(*TIMES),
            display_name="Folders by time",
        ),
        _key(
            PARTITION_BY,
            Kind.LIST,
            "Columns whose values become folders, below those of times. They have to be in"
            f" `{SCHEMA}`.",
            TABLE,
            default=(),
            check=_check_columns,
            display_name="Folders by columns",
            example="country, city",
        ),
        _key(
            COMPACT,
            Kind.INT,
            "Merge the small files of a Delta table, between batches, as soon as one of its folders"
            " has so many that are smaller than 50 MiB; 0 for never. Merged files have about"
            " 100 MiB.",
            TABLE,
            default=0,
            check=_check_compact,
            importance=Importance.LOW,
            visible=lambda values: values.get(FORMAT) == Format.DELTA.value,
            display_name="Merge small files from",
        ),
    )


def _of_records() -> tuple[Key, ...]:
    return (
        _key(
            VALUES,
            Kind.STRING,
            "`json` objects become rows with a column for each field; `string` and `binary` become"
            " the one column `value`.",
            RECORDS,
            default=Values.JSON.value,
            check=one_of(*(one.value for one in Values)),
            importance=Importance.HIGH,
            display_name="Values are",
        ),
        _key(
            SCHEMA,
            Kind.STRING,
            "The columns of JSON values, as Spark writes them. Left empty, they are found in the"
            " records, which reads each batch twice.",
            RECORDS,
            default="",
            check=_check_schema,
            importance=Importance.HIGH,
            display_name="Columns",
            example="id BIGINT, customer STRING, total DOUBLE",
            has_lines=True,
            visible=lambda values: values.get(VALUES) in {None, Values.JSON.value},
        ),
        _key(
            METADATA,
            Kind.BOOLEAN,
            "Add the columns `_topic`, `_partition` (in Iceberg tables `_topic_partition`),"
            " `_offset` and `_timestamp`.",
            RECORDS,
            default=False,
            display_name="Add columns of the record",
        ),
    )


def of_batches() -> tuple[Key, ...]:
    """Return the keys for the size of a batch, and for when it begins."""
    return (
        _key(
            BATCH_ROWS,
            Kind.INT,
            "The maximum number of records in a batch. Larger batches are faster, but repeat "
            "more work after a worker is killed.",
            BATCHES,
            default=DEFAULT_ROWS,
            check=in_range(1, MAX_ROWS),
            display_name="Records at most",
        ),
        _key(
            BATCH_WAIT,
            Kind.LONG,
            "The time in milliseconds, since the previous batch, that a batch waits to fill. "
            "Longer waits make fewer, larger files, and rows arrive later.",
            BATCHES,
            default=DEFAULT_WAIT_MS,
            check=in_range(0, MAX_WAIT_MS),
            display_name="Wait for more",
        ),
    )


def _key(name: str, kind: Kind, doc: str, group: str, **more: Any) -> Key:
    importance = more.pop("importance", Importance.MEDIUM)
    return Key(name=name, kind=kind, doc=doc, group=group, importance=importance, **more)


def columns_problem(text: str) -> str | None:
    """Refuse texts that Spark would read as a type in JSON, which may name a class to load."""
    if not COLUMNS_BEGIN.match(text):
        return "Columns begin with a name, as in id BIGINT, name STRING"
    return None


def _is_iceberg(values: Mapping[str, Any]) -> bool:
    return values.get(FORMAT) == Format.ICEBERG.value


def _check_name(value: Any) -> str | None:
    if value and not TABLE_NAME.fullmatch(value):
        return "It has letters, digits, _ and -, at most 100, and begins with no hyphen"
    return None


def _check_schema(value: Any) -> str | None:
    return columns_problem(value) if value else None


def _check_columns(value: Any) -> str | None:
    names = value or []
    if len(names) > MAX_PARTITION_COLUMNS:
        return f"{len(names)} columns are given, at most {MAX_PARTITION_COLUMNS} become folders"
    if len({name.lower() for name in names}) < len(names) or "" in names:
        return "Each column is named once, and none is empty"
    return None
