"""What the log of PostgreSQL tells about: types, columns, tables, rows, and the place of a change.

Pure: no connection is known here. A row is one cell a column, in the order of the columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

# Objects of users have numbers from here on; what lies below comes with the server.
FIRST_OWN_OID: Final = 16384
# What a connection must set, so that cells have the form that is read here.
SESSION: Final = (
    *("-c DateStyle=ISO", "-c IntervalStyle=postgres", "-c TimeZone=UTC"),
    *("-c bytea_output=hex", "-c extra_float_digits=1", "-c lc_monetary=C"),
)


class Unchanged(Enum):
    """Stands for a large value that an update left alone, and which the log does not repeat."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
# A value as PostgreSQL writes it, None for null.
Cell: TypeAlias = str | Unchanged | None
Row: TypeAlias = Sequence[Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataType:
    """A type of columns, by the name that `pg_type` has."""

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
    # The expression of its default, as `pg_get_expr` writes it.
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    schema: str
    name: str
    columns: tuple[Column, ...]
    # The names of the columns of the key, in its own order; empty for that of the columns.
    key: tuple[str, ...] = ()


class Operation(Enum):
    """What became of a row; the value of a member is Debezium's letter."""

    READ = "r"
    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    TRUNCATE = "t"


class Snapshot(Enum):
    """Which row of a snapshot it is; the value of a member is Debezium's word."""

    FIRST = "first"
    FIRST_OF_TABLE = "first_in_data_collection"
    WITHIN = "true"
    LAST_OF_TABLE = "last_in_data_collection"
    LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """Where a change was read: its place in the log, and its transaction."""

    # When the transaction was committed, or the row was read, in microseconds since 1970.
    ts_us: int
    lsn: int
    transaction: int | None
    # The end of the last commit before this transaction; None where there was none.
    last_commit_lsn: int | None = None
    # None for what the log tells.
    snapshot: Snapshot | None = None
    origin: str | None = None
    origin_lsn: int | None = None
