"""Writes rows into tables: COPY into a temporary table, and one statement from there.

COPY takes values as texts for the target's own types, which is fast, and as tolerant as PostgreSQL
itself. Rows keep the order of their records; of rows with a key that replace each other, only the
last one is written. A row that lacks a value, since the log of its source did, leaves that column
alone: where the table has the row, the column keeps its value.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.postgres import tables
from connectors.plugins.postgres.columns import cell_of
from connectors.plugins.postgres.rows import Name, Row, folded
from connectors.plugins.postgres.sink_settings import InsertMode, SinkSettings
from connectors.plugins.postgres.tables import Table
from connectors.sdk.errors import DataError, RecordError

if TYPE_CHECKING:
    import psycopg

STAGE: Final = "samsa_stage"
# A column of the stage: the place of the row's record in the batch.
NUMBER: Final = "samsa_number"


class Writer:
    """Writes within the caller's transaction. `known` caches the tables; `warn` writes a line."""

    def __init__(
        self,
        connection: "psycopg.Connection[Any]",
        settings: SinkSettings,
        known: MutableMapping[Name, Table],
        warn: Callable[[str], None],
    ) -> None:
        self.connection = connection
        self._settings = settings
        self._known = known
        self._warn = warn

    @property
    def mode(self) -> InsertMode:
        return self._settings.insert_mode

    def write(self, rows: Sequence[Row]) -> None:
        for chunk in self.chunks(rows):
            self._write_chunk(chunk)

    def chunks(self, rows: Sequence[Row]) -> Iterator[list[Row]]:
        """Yield rows for one statement each."""
        for run in runs(rows, self.mode):
            yield from chunks(run, self._settings.batch_size)

    def _write_chunk(self, rows: Sequence[Row]) -> None:
        first = rows[0]
        if first.is_truncation:
            self.truncate(first.table)
            return
        table = self.table_for(first)
        if table is None:
            return
        if self.is_direct(first):
            self.copy(first.table, rows, table)
            self.warn_of_lacking(first, len(rows))
            return
        self.stage(first)
        self.copy((STAGE,), rows, table)
        self.merge(first)
        self.drop_stage()

    # --- the steps of a chunk ------------------------------------------------------------------

    def table_for(self, row: Row) -> Table | None:
        """Return the table that a row fits into; None if there is no table to delete from."""
        known = self._known.get(row.table) or tables.find(self.connection, row.table)
        if row.is_delete and known is None and self._settings.can_create:
            return None
        table = self._known[row.table] = tables.fit(self.connection, known, row, self._settings)
        return table

    def is_direct(self, row: Row) -> bool:
        """Return whether rows are copied into the table itself."""
        return not row.is_delete and self.mode is InsertMode.INSERT

    def is_in_turn(self, row: Row) -> bool:
        """Return whether `merge` takes rows from the stage one by one, in their order."""
        return self.mode is InsertMode.UPSERT and not row.is_delete and not row.unavailable

    def stage(self, row: Row, *, is_numbered: bool = False) -> None:
        """Create a temporary table for rows, with the target's types but no constraints."""
        from psycopg import sql  # noqa: PLC0415 - only tasks need it

        number = sql.SQL(", 0 AS {}").format(sql.Identifier(NUMBER))
        self.connection.execute(
            sql.SQL(
                "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {}{} FROM {} WITH NO DATA"
            ).format(
                sql.Identifier(STAGE),
                _names(row.names),
                number if is_numbered else sql.SQL(""),
                sql.Identifier(*row.table),
            )
        )

    def copy(
        self, into: Name, rows: Sequence[Row], table: Table, *, is_numbered: bool = False
    ) -> None:
        from psycopg import sql  # noqa: PLC0415 - only tasks need it

        names = rows[0].names
        arrays = [name in table.arrays for name in names]
        bits = [at for at, name in enumerate(names) if name in table.bits]
        columns = (*names, NUMBER) if is_numbered else names
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(*into), _names(columns)
        )
        with self.connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                cells = _cells(row, names, arrays)
                for at in bits:
                    if isinstance(cells[at], bool):
                        # A capture describes bit(1) as a boolean, as Debezium does.
                        cells[at] = int(cells[at])
                copy.write_row([*cells, row.index] if is_numbered else cells)

    def merge(
        self, row: Row, *, between: tuple[int, int] | None = None, turns: str | None = None
    ) -> None:
        """Write the rows of the stage into the table.

        Or only those with numbers `between`, by number; the sequence `turns` counts them.
        """
        stage = _part(between, turns)
        if row.unavailable and self.mode is InsertMode.UPSERT and not row.is_delete:
            # An insert checks NOT NULL before it looks for a conflict, so it would refuse rows that
            # are there. Update those, and insert the others.
            self.connection.execute(_statement(row, InsertMode.UPDATE, stage))
            new = self.connection.execute(_statement(row, self.mode, stage)).rowcount
            self.warn_of_lacking(row, new)
        else:
            self.connection.execute(_statement(row, self.mode, stage))

    def drop_stage(self) -> None:
        self.connection.execute(f"DROP TABLE {STAGE}")

    def truncate(self, name: Name) -> None:
        """Empty a table; one that the sink may create and that does not exist is empty."""
        from psycopg import sql  # noqa: PLC0415 - only tasks need it

        table = self._known.get(name) or tables.find(self.connection, name)
        if table is None and self._settings.can_create:
            return
        tables.require_writable(name, table)
        self.connection.execute(sql.SQL("TRUNCATE TABLE {}").format(sql.Identifier(*name)))

    def warn_of_lacking(self, row: Row, count: int) -> None:
        """Warn about new rows with columns that the log of their source did not tell."""
        if row.unavailable and count:
            self._warn(
                f"{'.'.join(row.table)}: new rows got the default, or NULL, in"
                f" {', '.join(sorted(row.unavailable))}, since their records hold the placeholder"
                " of an unchanged value and the table had no row with their key: set REPLICA"
                " IDENTITY FULL for the captured table"
            )


def _cells(row: Row, names: Sequence[str], arrays: Sequence[bool]) -> list[Any]:
    cells: list[Any] = []
    try:
        for name, has_array in zip(names, arrays, strict=True):
            cells.append(cell_of(row.value(name), has_array=has_array))
    except DataError as error:
        # The count of cells tells which one it was.
        raise RecordError(str(error), index=row.place_of(names[len(cells)])) from error
    return cells


def runs(rows: Sequence[Row], mode: InsertMode) -> Iterator[list[Row]]:
    """Yield rows for one statement each: of one table, with the same columns, in order.

    No statement has rows from both sides of a truncation.
    """
    for kind, alike in groupby(
        rows, key=lambda row: (row.is_truncation, row.table, tuple(row.key))
    ):
        if kind[0]:
            yield list(alike)
            continue
        if mode is InsertMode.INSERT:
            for _, run in groupby(alike, key=lambda row: (row.is_delete, row.names)):
                yield list(run)
            continue
        for _, run in groupby(alike, key=_shape()):
            yield from _last_of_each_key(run)


def _last_of_each_key(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield deletes, and then the last row of each key, by the columns that they write."""
    last: dict[tuple[Any, ...], Row] = {}
    deletes: list[Row] = []
    for row in rows:
        former = last.get(row.identity)
        if former is not None and former.is_delete:
            # Else the row would get back what was deleted, or an update would find it.
            deletes.append(former)
        elif former is not None and row.unavailable:
            row = folded(former, row)  # noqa: PLW2901 - the row so far
        last[row.identity] = row
    written: dict[tuple[str, ...], list[Row]] = {}
    for row in last.values():
        if row.is_delete:
            deletes.append(row)
        else:
            written.setdefault(row.names, []).append(row)
    yield from filter(None, (deletes, *written.values()))


def chunks(rows: Sequence[Row], size: int) -> Iterator[list[Row]]:
    left = iter(rows)
    while chunk := list(islice(left, size)):
        yield chunk


def _shape() -> Any:
    """Return a function that groups rows by columns; deletes fit to any group."""
    names: tuple[str, ...] = ()

    def shape(row: Row) -> tuple[str, ...]:
        nonlocal names
        if not row.is_delete:
            names = row.fields
        return names

    return shape


def _statement(row: Row, mode: InsertMode, stage: Any) -> Any:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    same = sql.SQL(" AND ").join(
        sql.SQL("t.{0} = s.{0}").format(sql.Identifier(name)) for name in row.key
    )
    parts = {
        "table": sql.Identifier(*row.table),
        "stage": stage,
        "names": _names(row.names),
        "key": _names(tuple(row.key)),
        "same": same,
        "set": _assignments(row, "EXCLUDED" if mode is InsertMode.UPSERT else "s"),
    }
    if row.is_delete:
        return sql.SQL("DELETE FROM {table} t USING {stage} s WHERE {same}").format(**parts)
    if mode is InsertMode.UPDATE:
        return sql.SQL("UPDATE {table} t SET {set} FROM {stage} s WHERE {same}").format(**parts)
    has_rest = len(row.names) > len(row.key)
    action = sql.SQL("DO UPDATE SET {set}" if has_rest else "DO NOTHING").format(**parts)
    new = "WHERE NOT EXISTS (SELECT FROM {table} t WHERE {same})" if row.unavailable else ""
    return sql.SQL(
        "INSERT INTO {table} ({names}) SELECT {names} FROM {stage} s {new}"
        " ON CONFLICT ({key}) {action}"
    ).format(new=sql.SQL(new).format(**parts), action=action, **parts)


def _part(between: tuple[int, int] | None, turns: str | None) -> Any:
    """Return where a statement takes its rows from: the stage, or a part of it in order."""
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    if between is None:
        return sql.Identifier(STAGE)
    # OFFSET keeps the planner from counting before it sorts.
    return sql.SQL(
        "(SELECT * FROM (SELECT * FROM {stage} WHERE {number} BETWEEN {first} AND {last}"
        " ORDER BY {number} OFFSET 0) o WHERE nextval({turns}) > 0 OFFSET 0)"
    ).format(
        stage=sql.Identifier(STAGE),
        number=sql.Identifier(NUMBER),
        first=sql.Literal(between[0]),
        last=sql.Literal(between[1]),
        turns=sql.Literal(turns),
    )


def _assignments(row: Row, source: str) -> Any:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    # If a row has only its key, the update sets the key to itself.
    names = row.names[len(row.key) :] or tuple(row.key)
    return sql.SQL(", ").join(
        sql.SQL("{0} = {1}.{0}").format(sql.Identifier(name), sql.SQL(source)) for name in names
    )


def _names(names: Sequence[str]) -> Any:
    from psycopg import sql  # noqa: PLC0415 - only tasks need it

    return sql.SQL(", ").join(map(sql.Identifier, names))
