"""Values from PostgreSQL's log: types, columns, tables, rows, and the origin of a change.

Pure: this module knows no connection. A row has one cell per column, in column order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

# OIDs of user objects begin here; lower ones belong to the server.
FIRST_OWN_OID: Final = 16384
# Settings that every connection needs, so that cells have the form parsed here.
SESSION: Final = (
    *("-c DateStyle=ISO", "-c IntervalStyle=postgres", "-c TimeZone=UTC"),
    *("-c bytea_output=hex", "-c extra_float_digits=1", "-c lc_monetary=C"),
)


class Unchanged(Enum):
    """A large value that an update left unchanged, and that the log does not repeat."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
# A value as PostgreSQL writes it, None for null.
Cell: TypeAlias = str | Unchanged | None
Row: TypeAlias = Sequence[Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataType:
    """A column type, with its name in `pg_type`."""

    oid: int
    name: str
    labels: tuple[str, ...] = ()  # of an enum
    element: "DataType | None" = None  # of an array
    base: "DataType | None" = None  # of a domain
    base_modifier: int = -1  # of a domain

    @property
    def is_built_in(self) -> bool:
        return self.oid < FIRST_OWN_OID


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    type: DataType
    modifier: int = -1
    is_optional: bool = True
    is_key: bool = False
    # The default expression, as `pg_get_expr` writes it.
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    schema: str
    name: str
    columns: tuple[Column, ...]
    # The key columns in the order of the key; empty for column order.
    key: tuple[str, ...] = ()


class Operation(Enum):
    """The operation on a row; member values are Debezium's letters."""

    READ = "r"
    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    TRUNCATE = "t"


class Snapshot(Enum):
    """The place of a row in a snapshot; member values are Debezium's words."""

    FIRST = "first"
    FIRST_OF_TABLE = "first_in_data_collection"
    WITHIN = "true"
    LAST_OF_TABLE = "last_in_data_collection"
    LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """The origin of a change: its LSN and its transaction."""

    # When the transaction was committed, or the row was read, in microseconds since 1970.
    ts_us: int
    lsn: int
    transaction: int | None
    # The end of the last commit before this transaction; None if there was none.
    last_commit_lsn: int | None = None
    # None for changes from the log.
    snapshot: Snapshot | None = None
    origin: str | None = None
    origin_lsn: int | None = None
