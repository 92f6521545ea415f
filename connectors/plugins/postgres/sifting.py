"""Writes rows but those that PostgreSQL refuses, in the transaction of the others.

Rows are written in parts, each behind a savepoint. A part that is refused is divided at the row
that the server names, or in halves if it names none, and what was written stays.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from connectors.plugins.postgres.connection import first_line, is_about_data
from connectors.plugins.postgres.rows import Row
from connectors.plugins.postgres.sink_settings import InsertMode
from connectors.plugins.postgres.tables import Table
from connectors.plugins.postgres.writes import STAGE, Writer, chunks
from connectors.sdk.errors import RecordError

if TYPE_CHECKING:
    import psycopg

# Errors by the place of their record in the batch.
Refused: TypeAlias = dict[int, RecordError]
# The line of COPY at which it failed, and the column. A server that speaks another language than
# English names none, and the part is halved.
AT_LINE: Final = re.compile(r"^COPY .*?, line (\d+)(?:, column (.*?): )?", re.MULTILINE)
# Rows of a part that is copied: a client sends it whole before it hears of a refused row.
PART_ROWS: Final = 50
# The codes of a unique and of an exclusion constraint, which a row breaks together with another.
OF_TWO_ROWS: Final = frozenset({"23505", "23P01"})
# Counts rows on their way from the stage into the table; no rollback resets it.
TURNS: Final = "samsa_turns"
# One statement less for each part than a savepoint of its own.
SAVE: Final = "SAVEPOINT samsa_part"
GO_BACK: Final = "ROLLBACK TO SAVEPOINT samsa_part"
END: Final = "RELEASE SAVEPOINT samsa_part"
GO_ON: Final = f"{END}; {SAVE}"
MAKE_TURNS: Final = f"CREATE TEMPORARY SEQUENCE {TURNS}"
COUNT_TURNS: Final = f"SELECT last_value - 1 + is_called::integer FROM {TURNS}"  # noqa: S608


def is_of_a_row(error: Exception) -> bool:
    """Return whether single rows cause an error."""
    import psycopg  # noqa: PLC0415 - only tasks need it

    if isinstance(error, psycopg.Error):
        return is_about_data(error)
    return isinstance(error, RecordError)


def write_but_refused(writer: Writer, rows: Sequence[Row], refused: Refused) -> bool:
    """Write rows, and add those that PostgreSQL refuses to `refused`.

    Return False if one of them has replaced an earlier row of its key, which is missing now.
    """
    before = len(refused)
    sieve = _Sieve(writer, refused)
    for chunk in writer.chunks(rows):
        sieve.write(chunk)
    sieve.close()
    if len(refused) == before or writer.mode is InsertMode.INSERT:
        return True
    keys = Counter((row.table, row.identity) for row in rows)
    return all(keys[row.table, row.identity] == 1 for row in rows if row.index in refused)


class _Sieve:
    def __init__(self, writer: Writer, refused: Refused) -> None:
        self._writer = writer
        self._connection = writer.connection
        self._refused = refused
        # As many rows as were on their way before the part that is written now.
        self._turns = 0
        self._has_sequence = False

    def close(self) -> None:
        if self._has_sequence:
            self._connection.execute(f"DROP SEQUENCE {TURNS}")

    def write(self, rows: Sequence[Row]) -> None:
        """Write one chunk."""
        writer, first = self._writer, rows[0]
        if first.is_truncation:
            writer.truncate(first.table)
            return
        table = writer.table_for(first)
        if table is None:
            return
        if writer.is_direct(first):
            written = self._sift(
                chunks(rows, PART_ROWS), lambda part: writer.copy(first.table, part, table), _line
            )
            if written:
                writer.warn_of_lacking(first, len(written))
            return
        self._begin_turns()
        writer.stage(first, is_numbered=True)
        staged = self._sift(chunks(rows, PART_ROWS), lambda part: self._copy(part, table), _line)
        # Rows of a chunk have different keys.
        staged.sort(key=lambda row: row.index)
        self._turns = self._count_turns()
        self._sift([staged], self._merge, self._turn)
        writer.drop_stage()

    def _begin_turns(self) -> None:
        # Not for rows that are copied into the table itself: a role may make nothing temporary.
        if not self._has_sequence:
            self._connection.execute(MAKE_TURNS)
            self._has_sequence = True

    def _copy(self, rows: Sequence[Row], table: Table) -> None:
        self._writer.copy((STAGE,), rows, table, is_numbered=True)

    def _merge(self, rows: Sequence[Row]) -> None:
        self._writer.merge(rows[0], between=(rows[0].index, rows[-1].index), turns=TURNS)
        self._turns += len(rows)

    def _sift(
        self,
        parts: Iterable[Sequence[Row]],
        write: Callable[[Sequence[Row]], None],
        place_of: Callable[[Exception, Sequence[Row]], int | None],
    ) -> list[Row]:
        """Write parts in their order, and return the rows that were written."""
        import psycopg  # noqa: PLC0415 - only tasks need it

        written: list[Row] = []
        waiting = [part for part in parts if part]
        waiting.reverse()
        self._connection.execute(SAVE)
        while waiting:
            part = waiting.pop()
            try:
                write(part)
            except (RecordError, psycopg.Error) as error:
                if not is_of_a_row(error):
                    raise
                self._connection.execute(GO_BACK)
                at = place_of(error, part)
                if len(part) == 1:
                    self._refuse(part[0], error)
                elif at is None:
                    middle = len(part) // 2
                    waiting += (part[middle:], part[:middle])
                elif at and _state(error) in OF_TWO_ROWS:
                    # The other one may be refused itself: write those before it first.
                    pieces = (part[at + 1 :], part[at : at + 1], part[:at])
                    waiting += (piece for piece in pieces if piece)
                else:
                    self._refuse(part[at], error)
                    waiting += (piece for piece in (part[at + 1 :], part[:at]) if piece)
            else:
                written += part
                self._connection.execute(GO_ON)
        # Later ones would be within this one, and each costs more the deeper it is.
        self._connection.execute(END)
        return written

    def _turn(self, error: Exception, part: Sequence[Row]) -> int | None:
        """Return the place of the row that was on its way into the table.

        The last one is not blamed, since triggers and foreign keys may fail after it.
        """
        del error
        before, self._turns = self._turns, self._count_turns()
        at = self._turns - before - 1
        return at if 0 <= at < len(part) - 1 and self._writer.is_in_turn(part[0]) else None

    def _count_turns(self) -> int:
        (turns,) = self._connection.execute(COUNT_TURNS).fetchone() or (0,)
        return int(turns)

    def _refuse(self, row: Row, error: Exception) -> None:
        if isinstance(error, RecordError):
            self._refused[error.index] = error
            return
        column, state = _column(error), _state(error)
        index = row.place_of(column)
        about = f"column {column}: " if column else ""
        failed = RecordError(f"PostgreSQL: {about}{first_line(error)} ({state})", index=index)
        failed.__cause__ = error
        self._refused[index] = failed


def _line(error: Exception, part: Sequence[Row]) -> int | None:
    """Return the place of the row at which a COPY failed."""
    if isinstance(error, RecordError):
        places = (row.index == error.index or error.index in row.sources for row in part)
        return next((at for at, is_there in enumerate(places) if is_there), None)
    found = AT_LINE.search(_context(error))
    at = int(found[1]) - 1 if found else -1
    return at if 0 <= at < len(part) else None


def _state(error: Exception) -> str | None:
    state: str | None = getattr(error, "sqlstate", None)
    return state


def _column(error: Exception) -> str:
    found = AT_LINE.search(_context(error))
    return (found[2] if found else None) or ""


def _context(error: Any) -> str:
    diagnostic: psycopg.errors.Diagnostic | None = getattr(error, "diag", None)
    return (diagnostic.context if diagnostic is not None else None) or ""
