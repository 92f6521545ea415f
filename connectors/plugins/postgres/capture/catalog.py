"""Reads from the catalog of a database what its log does not say about tables.

The log names columns and types of a table at the time of a change. Nullability, defaults and the
key are looked up, so they are the current ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.postgres.capture.filters import Filters
from connectors.plugins.postgres.capture.pgoutput import Relation
from connectors.plugins.postgres.capture.relations import Column, DataType, Row, Table
from connectors.sdk.errors import ConnectorError

if TYPE_CHECKING:
    import psycopg

# A capture checks each table when it begins.
MAX_TABLES: Final = 20_000
# Only tables on disk and in the log: no views, temporary or unlogged tables.
TABLES: Final = """
    SELECT c.oid::bigint, n.nspname, c.relname, c.relkind = 'p' FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relpersistence = 'p' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND CASE WHEN %(by_root)s THEN c.relkind IN ('r', 'p') AND NOT c.relispartition
            ELSE c.relkind = 'r' END
    ORDER BY 2, 3
    LIMIT %(limit)s
"""
COLUMNS: Final = """
    SELECT a.attname, a.atttypid::bigint, a.atttypmod, NOT a.attnotnull,
        pg_get_expr(d.adbin, d.adrelid)
    FROM pg_attribute a
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        AND a.attgenerated = ''
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY a.attnum
"""
# The primary key, or else the first unique index by name.
KEY: Final = """
    SELECT array_agg(a.attname ORDER BY k.place)
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid
    CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (number, place)
    LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0
    WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
        AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
    GROUP BY i.indexrelid, i.indisprimary, c.relname
    ORDER BY i.indisprimary DESC, c.relname
    LIMIT 1
"""
# Columns whose large values the log of an update may lack: those that can be stored beside the row,
# in tables that do not log their whole old row. A partitioned table stores rows in its leaves.
INCOMPLETE: Final = """
    SELECT wanted.oid::bigint, array_agg(DISTINCT a.attname::text)
    FROM unnest(%s::oid[]) AS wanted (oid)
    CROSS JOIN LATERAL (
        SELECT wanted.oid UNION SELECT relid FROM pg_partition_tree(wanted.oid) WHERE isleaf
    ) AS part (oid)
    JOIN pg_class c ON c.oid = part.oid
    JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.reltoastrelid <> 0 AND c.relreplident <> 'f' AND a.attstorage <> 'p'
        AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    GROUP BY 1
"""
TYPE: Final = """
    SELECT t.typname, CASE WHEN t.typcategory = 'A' AND t.typlen = -1 THEN t.typelem::bigint END,
        CASE WHEN t.typtype = 'd' THEN t.typbasetype::bigint END, t.typtypmod,
        (SELECT array_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e
            WHERE e.enumtypid = t.oid)
    FROM pg_type t WHERE t.oid = %s
"""
# Limit for domains of domains; PostgreSQL has none.
MAX_DEPTH: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    oid: int
    schema: str
    name: str
    is_partitioned: bool = False

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A table, and the captured columns of its rows: all if `places` is None."""

    table: Table
    width: int
    places: tuple[int, ...] | None = None

    def cells(self, row: Row) -> Row:
        return row if self.places is None else tuple([row[place] for place in self.places])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """The current catalog entry of a column."""

    type_oid: int
    type_modifier: int
    is_optional: bool
    default_text: str | None


class Catalog:
    """The captured tables of one database."""

    def __init__(
        self, connection: "psycopg.Connection[Any]", filters: Filters, *, by_root: bool
    ) -> None:
        self._connection = connection
        self._filters = filters
        self._by_root = by_root
        self._types: dict[int, DataType] = {}

    def tables(self) -> list[TableName]:
        """Return the captured tables by schema and name."""
        told = {"by_root": self._by_root, "limit": MAX_TABLES + 1}
        rows = self._connection.execute(TABLES, told).fetchall()
        if len(rows) > MAX_TABLES:
            raise ConnectorError(
                f"the database has more than {MAX_TABLES} tables, and the rest would not be"
                " captured: capture a smaller database"
            )
        return [
            TableName(oid=oid, schema=schema, name=name, is_partitioned=is_partitioned)
            for oid, schema, name, is_partitioned in rows
            if self._filters.has_table(schema, name)
        ]

    def incomplete(self, tables: Sequence[TableName]) -> dict[TableName, list[str]]:
        """Return tables with captured columns whose unchanged large values events may lack."""
        rows = self._connection.execute(INCOMPLETE, ([table.oid for table in tables],)).fetchall()
        by_oid = dict(rows)
        found = {
            table: [
                name
                for name in sorted(by_oid.get(table.oid, ()))
                if self._filters.has_column(table.schema, table.name, name)
            ]
            for table in tables
        }
        return {table: names for table, names in found.items() if names}

    def of_relation(self, relation: Relation) -> Captured | None:
        """Return a table as the log describes it; None if it is not captured."""
        if not self._filters.has_table(relation.schema, relation.name):
            return None
        # The log does not report new labels of an enum.
        self._types = {oid: one for oid, one in self._types.items() if one.is_built_in}
        facts, key = self._facts(relation.oid), self._key(relation.oid)
        columns = [
            (column.name, column.type_oid, column.type_modifier, facts.get(column.name))
            for column in relation.columns
        ]
        return self._captured(relation.schema, relation.name, columns, key)

    def of_table(self, table: TableName) -> tuple[Captured, list[str]]:
        """Return the current definition of a table, with the names of its captured columns."""
        facts, key = self._facts(table.oid), self._key(table.oid)
        columns = [(name, fact.type_oid, fact.type_modifier, fact) for name, fact in facts.items()]
        return self._captured(table.schema, table.name, columns, key), list(facts)

    def _captured(
        self,
        schema: str,
        name: str,
        columns: Sequence[tuple[str, int, int, _Fact | None]],
        key: Sequence[str],
    ) -> Captured:
        names = {column for column, *_ in columns}
        key = [one for one in self._filters.key_of(schema, name) if one in names] or key
        places = [
            place
            for place, (column, *_) in enumerate(columns)
            if self._filters.has_column(schema, name, column)
        ]
        made = [
            Column(
                name=columns[place][0],
                type=self._type(columns[place][1]),
                modifier=columns[place][2],
                # A column dropped since may have been nullable.
                is_optional=fact.is_optional if (fact := columns[place][3]) else True,
                default=fact.default_text if fact else None,
                is_key=columns[place][0] in key,
            )
            for place in places
        ]
        return Captured(
            table=Table(schema=schema, name=name, columns=tuple(made), key=tuple(key)),
            width=len(columns),
            places=None if len(places) == len(columns) else tuple(places),
        )

    def _facts(self, oid: int) -> Mapping[str, _Fact]:
        rows = self._connection.execute(COLUMNS, (oid,)).fetchall()
        return {
            name: _Fact(
                type_oid=type_oid, type_modifier=modifier, is_optional=optional, default_text=text
            )
            for name, type_oid, modifier, optional, text in rows
        }

    def _key(self, oid: int) -> Sequence[str]:
        row = self._connection.execute(KEY, (oid,)).fetchone()
        return row[0] if row else ()

    def _type(self, oid: int, depth: int = 0) -> DataType:
        # Labels of an enum can be added; the cache of a connection does not see them.
        if (known := self._types.get(oid)) is not None:
            return known
        row = self._connection.execute(TYPE, (oid,)).fetchone()
        if row is None or depth > MAX_DEPTH:
            # Dropped since the change; its values are handled as those of an unknown type.
            return DataType(oid=oid, name="")
        name, element, base, modifier, labels = row
        made = DataType(
            oid=oid,
            name=name,
            labels=tuple(labels or ()),
            element=None if element is None else self._type(element, depth + 1),
            base=None if base is None else self._type(base, depth + 1),
            base_modifier=modifier,
        )
        self._types[oid] = made
        return made
