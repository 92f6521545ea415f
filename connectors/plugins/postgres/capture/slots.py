"""Finds or creates the publication and the slot of a capture.

A publication is created before its slot, since it cannot decode the log before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.postgres.capture.catalog import TableName
from connectors.plugins.postgres.capture.positions import parse
from connectors.sdk.errors import ConnectorError

if TYPE_CHECKING:
    import psycopg

PLUGIN: Final = "pgoutput"
SLOT: Final = """
    SELECT plugin, database = current_database(), active, confirmed_flush_lsn::text,
        coalesce(wal_status, ''), CASE WHEN NOT pg_is_in_recovery()
            THEN pg_current_wal_lsn()::text END
    FROM pg_replication_slots WHERE slot_name = %s
"""
PUBLICATION: Final = "SELECT puballtables FROM pg_publication WHERE pubname = %s"
PUBLISHED: Final = """
    SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s ORDER BY 1, 2
"""
DROP: Final = """
    SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s
"""


class Autocreate(Enum):
    """What to do without a publication: Debezium's words."""

    ALL_TABLES = "all_tables"
    FILTERED = "filtered"
    DISABLED = "disabled"
    NO_TABLES = "no_tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    is_active: bool
    confirmed: int
    # The end of the server's log; None on a standby.
    written: int | None
    # Whether the server has removed WAL that the slot needs.
    is_lost: bool


def slot_of(connection: "psycopg.Connection[Any]", name: str) -> Slot | None:
    """Return a slot of this database. Raises ConnectorError if it belongs to another one."""
    row = connection.execute(SLOT, (name,)).fetchone()
    if row is None:
        return None
    plugin, is_here, is_active, confirmed, wal_status, written = row
    if plugin != PLUGIN or not is_here:
        what = f"uses the plugin {plugin}" if plugin != PLUGIN else "belongs to another database"
        raise ConnectorError(f"the slot {name} {what}: name another one in slot.name")
    is_lost = wal_status == "lost"
    return Slot(
        is_active=is_active,
        confirmed=parse(confirmed or "0/0"),
        written=None if written is None else parse(written),
        is_lost=is_lost,
    )


def drop_slot(connection: "psycopg.Connection[Any]", name: str) -> None:
    """Drop a slot without a reader, if it exists."""
    connection.execute(DROP, (name,))


def prepare_publication(
    connection: "psycopg.Connection[Any]",
    name: str,
    mode: Autocreate,
    tables: Sequence[TableName],
    *,
    by_root: bool,
) -> list[str]:
    """Create a publication, or set its tables; return what was done, as sentences."""
    found = connection.execute(PUBLICATION, (name,)).fetchone()
    if found is None:
        return [_make(connection, name, mode, tables, by_root=by_root)]
    if mode is not Autocreate.FILTERED or found[0]:
        return []
    published = {tuple(row) for row in connection.execute(PUBLISHED, (name,)).fetchall()}
    if published == {(table.schema, table.name) for table in tables} or not tables:
        return []
    _execute(connection, "ALTER PUBLICATION {} SET TABLE {}", name, tables)
    return [f"set {len(tables)} tables in publication {name}"]


def require_publication(connection: "psycopg.Connection[Any]", name: str) -> None:
    if connection.execute(PUBLICATION, (name,)).fetchone() is None:
        raise ConnectorError(
            f"there is no publication {name}, and publication.autocreate.mode=disabled: create it,"
            f' as with CREATE PUBLICATION "{name}" FOR TABLE …'
        )


def unpublished(
    connection: "psycopg.Connection[Any]", name: str, tables: Sequence[TableName]
) -> list[TableName]:
    """Return the tables that a publication does not contain."""
    published = {tuple(row) for row in connection.execute(PUBLISHED, (name,)).fetchall()}
    return [table for table in tables if (table.schema, table.name) not in published]


def _make(
    connection: "psycopg.Connection[Any]",
    name: str,
    mode: Autocreate,
    tables: Sequence[TableName],
    *,
    by_root: bool,
) -> str:
    root = " WITH (publish_via_partition_root = true)" if by_root else ""
    if mode is Autocreate.DISABLED:
        require_publication(connection, name)
    if mode is Autocreate.ALL_TABLES:
        _execute(connection, "CREATE PUBLICATION {} FOR ALL TABLES" + root, name, ())
        return f"created publication {name} for all tables"
    if mode is Autocreate.NO_TABLES:
        _execute(connection, "CREATE PUBLICATION {}" + root, name, ())
        return f"created publication {name} without tables: add the tables to capture"
    if not tables:
        raise ConnectorError(
            "no table matches table.include.list and the other lists, so there is nothing to"
            " publish (publication.autocreate.mode=filtered): create the tables first, or correct"
            " the lists"
        )
    _execute(connection, "CREATE PUBLICATION {} FOR TABLE {}" + root, name, tables)
    return f"created publication {name} for {len(tables)} tables"


def _execute(
    connection: "psycopg.Connection[Any]", text: str, name: str, tables: Sequence[TableName]
) -> None:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    names = sql.SQL(", ").join(sql.Identifier(one.schema, one.name) for one in tables)
    parts = [sql.Identifier(name), names] if tables else [sql.Identifier(name)]
    # The text is one of those above.
    connection.execute(sql.SQL(text).format(*parts))
