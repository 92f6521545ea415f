"""The tables or the query that a source reads, with the statements of each mode."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from connectors.plugins.postgres.source_settings import Mode, SourceSettings
from connectors.sdk.errors import ConfigError, ConnectorError
from connectors.sdk.records import Place

if TYPE_CHECKING:
    import psycopg

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Rows with the same time are read at once, since no offset between them can be stored.
MAX_TIES: Final = 50_000
# With more tables, the config must name those to read.
MAX_TABLES: Final = 10_000
TABLES: Final = """
    SELECT current_database(), n.nspname, c.relname
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind::text = ANY(%(kinds)s)
        AND NOT c.relispartition
        AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%%'
        AND (%(pattern)s::text IS NULL OR n.nspname LIKE %(pattern)s)
    ORDER BY 2, 3
    LIMIT %(limit)s
"""
COLUMNS: Final = """
    SELECT a.attname, a.attnotnull,
        a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%%', false)
    FROM pg_attribute a
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The position in a feed: a time, a number, or the time of the last full read."""

    time: datetime | None = None
    number: int | None = None
    read_at_ms: int = 0

    @classmethod
    def of(cls, offset: Place | None) -> "Position":
        if offset is None:
            return cls()
        time = None
        if (ms := offset.get("timestamp")) is not None:
            # JDBC's format: the time in milliseconds, and its fraction of a second in nanoseconds.
            micros = offset.get("timestamp_nanos", ms % 1000 * 1_000_000) // 1000
            time = EPOCH + timedelta(seconds=ms // 1000, microseconds=micros)
        return cls(
            time=time,
            number=offset.get("incrementing"),
            read_at_ms=offset.get("read_at_ms", 0),
        )

    def offset(self, mode: Mode) -> Place:
        if mode is Mode.BULK:
            return {"read_at_ms": self.read_at_ms}
        told: dict[str, int] = {}
        if self.time is not None:
            micros = (self.time - EPOCH) // timedelta(microseconds=1)
            told["timestamp"] = micros // 1000
            told["timestamp_nanos"] = micros % 1_000_000 * 1000
        if self.number is not None:
            told["incrementing"] = self.number
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A table, by schema and name; or the query, without a table."""

    table: tuple[str, str] | None
    place: Place
    topic: str
    # The NOT NULL columns of a table, and its incrementing column.
    required: frozenset[str] = frozenset()
    number: str = ""

    @property
    def name(self) -> str:
        return self.table[1] if self.table else "query"

    @property
    def key(self) -> str:
        """Return a text that is unique among the feeds of the task."""
        return ".".join(self.table or ("query",))


def list_feeds(
    connection: "psycopg.Connection[Any]", settings: SourceSettings
) -> tuple[list[Feed], list[str]]:
    """Return the feeds of a task, and a message for each table that is missing."""
    if settings.query:
        feed = Feed(
            table=None,
            place={"query": "query"},
            topic=settings.topic_prefix,
            number=settings.incrementing,
        )
        return [feed], []
    values = {
        "kinds": list(settings.relations),
        "pattern": settings.schema_pattern,
        "limit": MAX_TABLES + 1,
    }
    found = connection.execute(TABLES, values).fetchall()
    if len(found) > MAX_TABLES:
        raise ConfigError(f"there are more than {MAX_TABLES} tables: name some in table.whitelist")
    names = [tuple(map(str, row)) for row in found]
    chosen = [name for name in names if _is_chosen(name, settings)]
    missing = [
        f"there is no table {wanted} to read"
        for wanted in settings.whitelist
        if not any(wanted in _forms(name) for name in names)
    ]
    ours = [name for name in chosen if _is_ours(name, settings)]
    return [_feed(connection, name[1], name[2], settings) for name in ours], missing


def _forms(name: Sequence[str]) -> tuple[str, str, str]:
    """Return the forms in which a config may name the table."""
    return name[2], ".".join(name[1:]), ".".join(name)


def _is_chosen(name: Sequence[str], settings: SourceSettings) -> bool:
    forms = _forms(name)
    if settings.whitelist:
        return any(form in settings.whitelist for form in forms)
    return not any(form in settings.blacklist for form in forms)


def _is_ours(name: Sequence[str], settings: SourceSettings) -> bool:
    """Return whether a table belongs to this task, independent of the other tables."""
    forms = _forms(name)
    if settings.whitelist:
        index = next(at for at, one in enumerate(settings.whitelist) if one in forms)
    else:
        index = crc32(forms[1].encode())
    return index % settings.tasks == settings.task


def _feed(
    connection: "psycopg.Connection[Any]", schema: str, table: str, settings: SourceSettings
) -> Feed:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    quoted = sql.Identifier(schema, table).as_string(connection)
    columns = connection.execute(COLUMNS, (quoted,)).fetchall()
    required = frozenset(name for name, is_required, _ in columns if is_required)
    number = settings.incrementing
    if settings.mode.has_number and not number:
        counting = [name for name, _, is_counting in columns if is_counting]
        if len(counting) != 1:
            raise ConfigError(
                f"{schema}.{table} has {len(counting)} columns with a sequence: name the one to "
                "go by in incrementing.column.name"
            )
        number = counting[0]
    names = [name for name, _, _ in columns]
    used = [number] if settings.mode.has_number else []
    used += settings.timestamps if settings.mode.has_time else []
    for name in used:
        if name not in names:
            raise ConfigError(f"{schema}.{table} has no column {name}; it has {', '.join(names)}")
    # One NOT NULL timestamp column suffices.
    firm = [number] if settings.mode.has_number else []
    if settings.mode.has_time and not required & set(settings.timestamps):
        firm.append(settings.timestamps[0])
    for name in firm if settings.has_null_check else ():
        if name not in required:
            raise ConfigError(
                f"the column {name} of {schema}.{table} may be null, and such rows are not read: "
                "make it NOT NULL, or set validate.non.null=false"
            )
    return Feed(
        table=(schema, table),
        place={"protocol": "1", "table": f"{schema}.{table}"},
        topic=settings.topic_prefix + table,
        required=required,
        number=number,
    )


def statement(feed: Feed, settings: SourceSettings, at: Position) -> tuple[Any, dict[str, Any]]:
    """Return the next SELECT and its parameters; it adds the number and the time as columns."""
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    mode = settings.mode
    source = sql.Identifier(*feed.table) if feed.table else sql.SQL("({}\n)").format(_raw(settings))
    if mode is Mode.BULK:
        return sql.SQL("SELECT t.* FROM {} AS t").format(source), {}
    number = sql.Identifier("t", feed.number) if mode.has_number else sql.SQL("NULL")
    time = sql.SQL("NULL")
    if mode.has_time:
        columns = sql.SQL(", ").join(sql.Identifier("t", name) for name in settings.timestamps)
        time = sql.SQL("coalesce({})").format(columns)  # type: ignore[assignment]
    conditions = _conditions(mode, at)
    query = sql.SQL(
        "SELECT t.*, {number}, ({time})::timestamptz FROM {source} AS t WHERE {conditions} "
        "ORDER BY {order}"
    ).format(
        number=number,
        time=time,
        source=source,
        conditions=sql.SQL(" AND ").join(
            sql.SQL(condition).format(number=number, time=time) for condition in conditions
        ),
        order=sql.SQL(", ").join([time] * mode.has_time + [number] * mode.has_number),
    )
    if mode is Mode.TIMESTAMP:
        query = sql.SQL(
            "SELECT * FROM ({} FETCH FIRST %(rows)s ROWS WITH TIES) AS s LIMIT %(most)s"
        ).format(query)
    else:
        query = sql.SQL("{} LIMIT %(rows)s").format(query)
    values = {
        "rows": settings.max_rows,
        "most": settings.max_rows + MAX_TIES,
        "time": at.time,
        "number": at.number,
        "delay": timedelta(milliseconds=settings.delay_ms),
    }
    return query, values


def _raw(settings: SourceSettings) -> Any:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    # The text also has placeholders for parameters, so percent signs are doubled.
    text: Any = (settings.query or "").replace("%", "%%")
    return sql.SQL(text.replace("{", "{{").replace("}", "}}")).format()


def _conditions(mode: Mode, at: Position) -> list[Any]:
    found = []
    if mode.has_number:
        found.append("{number} IS NOT NULL")
    if mode.has_time:
        found.append("{time} < now() - %(delay)s")
    if mode is Mode.INCREMENTING and at.number is not None:
        found.append("{number} > %(number)s")
    if mode is Mode.TIMESTAMP and at.time is not None:
        found.append("{time} > %(time)s")
    if mode is Mode.BOTH and at.time is not None:
        if at.number is None:
            found.append("{time} > %(time)s")
        else:
            found.append("({time} > %(time)s OR ({time} = %(time)s AND {number} > %(number)s))")
    return found


def whole(value: Any, feed: Feed) -> int:
    """Return the number of a row; ConnectorError if the column has fractions."""
    if not isinstance(value, (int, Decimal)) or int(value) != value:
        raise ConnectorError(
            f"{feed.name}: {feed.number} has", about_record=f" the value {value}, no whole number"
        )
    return int(value)
