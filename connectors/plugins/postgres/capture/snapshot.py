"""Reads all rows of the captured tables, in batches, in one transaction that stays open.

The first snapshot sees exactly the state before the slot's log. If the worker ends meanwhile, a new
transaction reads the unfinished tables again. The slot has kept all changes since its creation,
deletes included, so a consumer that applies the rows and then the changes ends with the state of
the tables.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.postgres.capture.catalog import Captured, Catalog, TableName
from connectors.plugins.postgres.capture.changes import record_of
from connectors.plugins.postgres.capture.events import Events
from connectors.plugins.postgres.capture.positions import Position
from connectors.plugins.postgres.capture.relations import Operation, Row, Snapshot, SourceInfo
from connectors.sdk.errors import RetriableError
from connectors.sdk.records import Place, SourceRecord

if TYPE_CHECKING:
    import psycopg

CURSOR: Final = "samsa_snapshot"
# The first fetch of a table is small, since the size of its rows is unknown.
FIRST_ROWS: Final = 100
# Limit of one fetch of large rows, in bytes of text.
FETCH_BYTES: Final = 8 * 1024 * 1024
# While the cluster accepts no records the transaction stays open, but no longer than this.
IDLE_MS: Final = 600_000


class SnapshotReader:
    """One snapshot, from its first unfinished table."""

    def __init__(
        self,
        connection: "psycopg.Connection[Any]",
        catalog: Catalog,
        events: Events,
        *,
        tables: Sequence[TableName],
        place: Place,
        position: Position,
        fetch_rows: int,
        clock_ns: Callable[[], int],
    ) -> None:
        assert position.is_snapshot, "the stored position is within a snapshot"
        self._connection = connection
        self._catalog = catalog
        self._events = events
        self._tables = list(tables)
        self._place = place
        self.position = position
        self._fetch_rows = fetch_rows
        self._clock_ns = clock_ns
        self._rows = min(FIRST_ROWS, fetch_rows)
        self._captured: Captured | None = None
        self._transaction: int | None = None
        # A row is held until it is known whether it is the last of its table or of the snapshot.
        self._waiting: _Waiting | None = None
        self._is_first_table = position.table is None
        self._number = 0
        self.is_done = False

    def begin(self, exported: str | None) -> None:
        """Begin the transaction: on a slot's exported snapshot, or on the current state."""
        execute = self._connection.execute
        execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if exported is not None:
            # The server returned this name.
            quoted = exported.replace("'", "''")
            execute(f"SET TRANSACTION SNAPSHOT '{quoted}'")
        # Fail instead of leaving out rows that a policy hides.
        execute("SET LOCAL row_security = off")
        execute(f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}")
        row = execute("SELECT txid_snapshot_xmax(txid_current_snapshot())").fetchone()
        self._transaction = row[0] if row else None

    def take(self) -> list[SourceRecord]:
        """Return the next rows as records; none if a table is empty, or the snapshot is done."""
        if self._captured is None and not self._open_next():
            return self._end()
        captured = self._captured
        assert captured is not None, "a table is open"
        rows = self._fetch(captured)
        made: list[SourceRecord] = []
        for row in rows:
            made += self._released(is_same_table=self._number > 0)
            self._number += 1
            self._waiting = _Waiting(
                table=self._tables[0],
                captured=captured,
                row=row,
                is_first=self._number == 1,
                is_in_first_table=self._is_first_table,
            )
        if not rows:
            self._close_table()
        return made

    def close(self) -> None:
        """Close the connection, which nothing else uses."""
        self._connection.close()

    def _open_next(self) -> bool:
        import psycopg  # noqa: PLC0415 - only tasks need it
        from psycopg import sql  # noqa: PLC0415

        if not self._tables:
            return False
        table = self._tables[0]
        self._captured, names = self._catalog.of_table(table)
        # A table without columns can have rows.
        statement = sql.SQL("DECLARE {} NO SCROLL CURSOR FOR SELECT {} FROM {} {}").format(
            sql.Identifier(CURSOR),
            sql.SQL(", ").join(map(sql.Identifier, names)),
            # Child tables are captured on their own.
            sql.SQL("" if table.is_partitioned else "ONLY"),
            sql.Identifier(table.schema, table.name),
        )
        try:
            self._connection.execute(statement)
        except psycopg.errors.UndefinedTable as error:
            # Dropped since the tables were listed; the next attempt lists them again.
            raise RetriableError(f"{table} was dropped before its rows were read") from error
        self._rows, self._number = min(FIRST_ROWS, self._fetch_rows), 0
        return True

    def _fetch(self, captured: Captured) -> list[Row]:
        told = self._connection.execute(f"FETCH {self._rows:d} FROM {CURSOR}").pgresult
        assert told is not None, "a fetch has a result"
        size = 0
        rows: list[Row] = []
        for number in range(told.ntuples):
            cells: list[str | None] = []
            for column in range(captured.width):
                value = told.get_value(number, column)
                size += len(value or b"")
                cells.append(None if value is None else value.decode())
            rows.append(captured.cells(tuple(cells)))
        if rows:
            fit = FETCH_BYTES * len(rows) // max(size, 1)
            self._rows = max(1, min(self._fetch_rows, fit, len(rows) * 4))
        return rows

    def _close_table(self) -> None:
        self._connection.execute(f"CLOSE {CURSOR}")
        self._tables.pop(0)
        self._captured = None
        self._is_first_table = False

    def _end(self) -> list[SourceRecord]:
        """Return the last row, whose offset marks the snapshot as done."""
        if self.is_done:
            return []
        self._connection.execute("COMMIT")
        self.is_done = True
        done = Position(committed=self.position.committed, epoch=self.position.epoch)
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            self.position = done
            return []
        return self._records(waiting, Snapshot.LAST, done)

    def _released(self, *, is_same_table: bool) -> list[SourceRecord]:
        """Return the held row, now that another one follows it."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return []
        done = self.position if is_same_table else replace(self.position, table=str(waiting.table))
        if waiting.is_first and waiting.is_in_first_table:
            return self._records(waiting, Snapshot.FIRST, done)
        if not is_same_table:
            return self._records(waiting, Snapshot.LAST_OF_TABLE, done)
        marker = Snapshot.FIRST_OF_TABLE if waiting.is_first else Snapshot.WITHIN
        return self._records(waiting, marker, done)

    def _records(self, waiting: "_Waiting", marker: Snapshot, done: Position) -> list[SourceRecord]:
        """Return a row as records, with the position after them."""
        now_ns = self._clock_ns()
        source = SourceInfo(
            ts_us=now_ns // 1000, lsn=done.committed, transaction=self._transaction, snapshot=marker
        )
        table, row = waiting.captured.table, waiting.row
        made = self._events.change(
            table, Operation.READ, before=None, after=row, source=source, now_ns=now_ns
        )
        before, self.position = self.position, done
        last = len(made) - 1
        return [
            record_of(event, self._place, done if index == last else before)
            for index, event in enumerate(made)
        ]


def left_of(tables: Sequence[TableName], done: str | None) -> list[TableName]:
    """Return the tables after the finished one; all of them if that was dropped."""
    names = [str(table) for table in tables]
    return list(tables[names.index(done) + 1 :]) if done in names else list(tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    table: TableName
    captured: Captured
    row: Row
    is_first: bool
    is_in_first_table: bool
