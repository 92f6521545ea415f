"""Looks up tables in the database, creates them, and adds columns that records need."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.postgres.columns import Column
from connectors.plugins.postgres.rows import Name, Row
from connectors.plugins.postgres.sink_settings import SinkSettings
from connectors.sdk.errors import ConnectorError

if TYPE_CHECKING:
    import psycopg

# PostgreSQL's limit.
MAX_COLUMNS: Final = 1600
# The columns that identify a table of offsets, whatever its name.
OFFSETS_COLUMNS: Final = frozenset(
    {"connector", "topic", "partition", "next_offset", "task", "epoch", "changed_at"}
)
COLUMNS: Final = """
    SELECT a.attname, t.typcategory = 'A', t.typname IN ('bit', 'varbit')
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The columns of a table, and which of them are arrays or bits."""

    columns: frozenset[str]
    arrays: frozenset[str]
    bits: frozenset[str]


def find(connection: "psycopg.Connection[Any]", name: Name) -> Table | None:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    quoted = sql.Identifier(*name).as_string(connection)
    rows = connection.execute(COLUMNS, (quoted,)).fetchall()
    if not rows:
        return None
    return Table(
        columns=frozenset(name for name, _, _ in rows),
        arrays=frozenset(name for name, is_array, _ in rows if is_array),
        bits=frozenset(name for name, _, is_bits in rows if is_bits),
    )


def fit(
    connection: "psycopg.Connection[Any]", found: Table | None, row: Row, settings: SinkSettings
) -> Table:
    """Create or alter a table to fit a row, if the settings allow it; return the table."""
    if found is None and settings.can_create:
        _create(connection, row)
        found = find(connection, row.table)
    found = require_writable(row.table, found)
    missing = [name for name in row.names if name not in found.columns]
    if not missing:
        return found
    if not settings.can_evolve:
        raise ConnectorError(
            f"the table {'.'.join(row.table)} has no column {missing[0]}: add it, or set"
            " auto.evolve=true"
        )
    _evolve(connection, row, missing)
    return require_writable(row.table, find(connection, row.table))


def require_writable(name: Name, found: Table | None) -> Table:
    """Return a table that records may change; ConnectorError if it is missing or the sink's own."""
    shown = ".".join(name)
    if found is None:
        raise ConnectorError(f"there is no table {shown}: make it, or set auto.create=true")
    if found.columns >= OFFSETS_COLUMNS:
        raise ConnectorError(
            f"the table {shown} has the columns of a table of sink offsets, and records may not go"
            " there: name another table in table.name.format"
        )
    return found


def _create(connection: "psycopg.Connection[Any]", row: Row) -> None:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    columns = [
        _column(column, is_required=is_key or not column.is_optional)
        for column, is_key in row.columns()
    ]
    if row.key:
        names = sql.SQL(", ").join(map(sql.Identifier, row.key))
        columns.append(sql.SQL("PRIMARY KEY ({})").format(names))
    connection.execute(
        sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(
            sql.Identifier(*row.table), sql.SQL(", ").join(columns)
        )
    )


def _evolve(connection: "psycopg.Connection[Any]", row: Row, missing: Iterable[str]) -> None:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    needed = {column.name: (column, is_key) for column, is_key in row.columns()}
    for name in missing:
        column, is_key = needed[name]
        if is_key:
            raise ConnectorError(f"the key's column {name} is missing, and cannot be added to rows")
        is_required = not column.is_optional
        if is_required and column.default is None:
            raise ConnectorError(
                f"the column {name} is missing, and existing rows would have no value for it, since"
                " the field is not optional and has no default: add the column yourself, with a"
                " default or without NOT NULL"
            )
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS {}").format(
                sql.Identifier(*row.table), _column(column, is_required=is_required)
            )
        )


def _column(column: Column, *, is_required: bool) -> Any:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    parts = [sql.Identifier(column.name), sql.SQL(column.type)]
    if is_required:
        parts.append(sql.SQL("NOT NULL"))
    if column.default is not None:
        parts.append(sql.SQL("DEFAULT {}").format(sql.Literal(column.default)))
    return sql.SQL(" ").join(parts)
