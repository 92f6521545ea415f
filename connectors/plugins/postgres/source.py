"""A source of rows: all of a table each time, or rows with a newer number or time.

One statement reads the rows between two stored offsets, so a slice may end after any of them. Of
several rows with the same time, only the last has that time in its offset: after a crash some rows
are read and written again, and none is skipped.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from time import monotonic, time
from typing import TYPE_CHECKING, Any, ClassVar, Final
from zlib import crc32

from connectors.plugins.postgres import feeds, source_settings
from connectors.plugins.postgres.connection import connected, forget, translated
from connectors.plugins.postgres.feeds import MAX_TIES, Feed, Position
from connectors.plugins.postgres.source_settings import TASK, TASKS, Mode, SourceSettings
from connectors.plugins.postgres.types import Layout, layout, use_texts
from connectors.sdk.configs import Definition, Value
from connectors.sdk.connector import Parsed, SourceConnector, SourceContext, SourceTask
from connectors.sdk.errors import ConfigError, ConnectorError
from connectors.sdk.records import Place, SourceRecord

if TYPE_CHECKING:
    import psycopg

KEPT: Final = "postgres.source"
# Columns that a statement adds to those of the table.
ADDED: Final = 2


class Memory:
    """The state between slices: feeds, their due times, and cursors over whole tables."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection
        self.feeds: list[Feed] = []
        self.list_at: float | None = None
        self.due_at: dict[str, float] = {}
        # For each feed, an open cursor and a row read ahead.
        self.cursors: dict[str, tuple[psycopg.ServerCursor[Any], list[Any]]] = {}

    def close(self) -> None:
        cursors, self.cursors = self.cursors, {}
        for cursor, _ in cursors.values():
            close_quietly(cursor)


class PostgresSource(SourceConnector):
    name = "samsa.postgres.source"
    aliases = (
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "io.aiven.connect.jdbc.JdbcSourceConnector",
    )
    title = "Rows of PostgreSQL"
    summary = "New rows of tables, or of a query, become records: by a number, a time, or all."
    refused: ClassVar[Mapping[str, str]] = source_settings.REFUSED
    modules: ClassVar[tuple[str, ...]] = ("psycopg",)

    @classmethod
    def definition(cls) -> Definition:
        return source_settings.definition()

    def validate(self, parsed: Parsed) -> Sequence[Value]:
        return source_settings.problems(parsed)

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        named = parsed[source_settings.WHITELIST]
        count = 1 if parsed[source_settings.QUERY] else min(max_tasks, len(named) or max_tasks)
        return [{TASK: str(number), TASKS: str(count)} for number in range(count)]

    def alter_offsets(self, parsed: Parsed, offsets: Mapping[str, Place | None]) -> None:
        del parsed
        for place, offset in offsets.items():
            for name, value in (offset or {}).items():
                if not isinstance(value, int):
                    raise ConfigError(f"{place}: {name} is a whole number, not {value!r}")

    def task(self) -> SourceTask:
        return PostgresSourceTask()


class PostgresSourceTask(SourceTask):
    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock

    def start(self, context: SourceContext, parsed: Parsed) -> None:
        self._context = context
        self._parsed = parsed
        self._settings = SourceSettings.of(parsed)
        self._at: dict[str, Position] = {}

    def poll(self) -> list[SourceRecord]:
        try:
            with translated():
                memory = self._memory(connected(self._context, self._parsed))
                for feed in self._due(memory):
                    if records := self._read(memory, feed):
                        return records
        except ConnectorError:
            # The next attempt starts afresh, and looks up the tables as well.
            self._forget()
            forget(self._context)
            raise
        return []

    def _memory(self, opened: "psycopg.Connection[Any]") -> Memory:
        kept: Memory | None = self._context.kept.get(KEPT)
        if kept is not None and kept.connection is opened:
            return kept
        self._forget()
        use_texts(opened)
        self._context.kept[KEPT] = made = Memory(opened)
        return made

    def _forget(self) -> None:
        if (kept := self._context.kept.pop(KEPT, None)) is not None:
            kept.close()

    def _due(self, memory: Memory) -> list[Feed]:
        """Return the feeds that are due, those that have waited longest first."""
        now, due_at = self._clock(), memory.due_at
        if memory.list_at is None or memory.list_at <= now:
            memory.feeds, missing = feeds.list_feeds(memory.connection, self._settings)
            for words in missing:
                self._context.log(words)
            memory.list_at = now + self._settings.table_poll_s
        waiting = [feed for feed in memory.feeds if due_at.get(feed.key, now) <= now]
        return sorted(waiting, key=lambda feed: due_at.get(feed.key, 0.0))

    def _read(self, memory: Memory, feed: Feed) -> list[SourceRecord]:
        key = feed.key
        at = self._at.get(key) or self._first(feed)
        if self._settings.mode is Mode.BULK:
            records, at, is_done = self._read_all(memory, feed, at)
        else:
            records, at, is_done = self._read_new(memory, feed, at)
        self._at[key] = at
        # A feed with more to read lets the others go first, and is due at once.
        wait_s = self._settings.poll_s if is_done else 0
        memory.due_at[key] = self._clock() + wait_s
        return records

    def _first(self, feed: Feed) -> Position:
        offset = self._context.offset(feed.place)
        initial = self._settings.timestamp_initial
        if offset is not None or initial is None or not self._settings.mode.has_time:
            return Position.of(offset)
        return Position.of({"timestamp": initial if initial >= 0 else int(time() * 1000)})

    def _read_new(
        self, memory: Memory, feed: Feed, at: Position
    ) -> tuple[list[SourceRecord], Position, bool]:
        settings = self._settings
        query, values = feeds.statement(feed, settings, at)
        cursor = memory.connection.execute(query, values)
        rows = cursor.fetchall()
        if len(rows) >= settings.max_rows + MAX_TIES:
            raise ConnectorError(
                f"{feed.name} has more than {MAX_TIES} rows with the same time, which cannot be "
                "read in parts: use timestamp+incrementing"
            )
        made = layout(
            feed.name, (cursor.description or [])[:-ADDED], feed.required, settings.numeric
        )
        records = []
        for index, row in enumerate(rows):
            reached = self._reached(row, feed)
            if settings.mode is not Mode.TIMESTAMP or _is_last(rows, index):
                at = reached
            records.append(self._record(feed, made, row, at))
        return records, at, len(rows) < settings.max_rows

    def _reached(self, row: Sequence[Any], feed: Feed) -> Position:
        mode = self._settings.mode
        return Position(
            time=row[-1] if mode.has_time else None,
            number=feeds.whole(row[-2], feed) if mode.has_number else None,
        )

    def _read_all(
        self, memory: Memory, feed: Feed, at: Position
    ) -> tuple[list[SourceRecord], Position, bool]:
        """Continue to read all rows; only the last row's offset marks the read as complete."""
        now_ms, key, cursors = int(time() * 1000), feed.key, memory.cursors
        if key not in cursors:
            if now_ms < at.read_at_ms + self._settings.poll_s * 1000:
                return [], at, True
            cursors[key] = self._open_cursor(memory, feed, at)
        cursor, ahead = cursors[key]
        rows = [*ahead, *cursor.fetchmany(self._settings.max_rows)]
        is_done = len(rows) <= self._settings.max_rows
        made = layout(feed.name, cursor.description or [], feed.required, self._settings.numeric)
        if is_done:
            cursor.close()
            del cursors[key]
            done, taken = Position(read_at_ms=now_ms), rows
        else:
            cursors[key] = (cursor, rows[-1:])
            done, taken = at, rows[:-1]
        records = [self._record(feed, made, row, at) for row in taken[:-1]]
        records += [self._record(feed, made, row, done) for row in taken[-1:]]
        return records, done, is_done

    def _open_cursor(
        self, memory: Memory, feed: Feed, at: Position
    ) -> "tuple[psycopg.ServerCursor[Any], list[Any]]":
        name = f"samsa_{crc32(feed.key.encode())}"
        # WITH HOLD, so that other feeds can be read in between.
        cursor = memory.connection.cursor(name=name, withhold=True)
        with ExitStack() as failing:
            # Nothing else closes the cursor.
            failing.callback(close_quietly, cursor)
            cursor.execute(*feeds.statement(feed, self._settings, at))
            first = cursor.fetchmany(1)
            failing.pop_all()
        return cursor, first

    def _record(self, feed: Feed, made: Layout, row: Sequence[Any], at: Position) -> SourceRecord:
        return SourceRecord(
            topic=feed.topic,
            value=made.struct(row),
            value_schema=made.schema,
            source_partition=feed.place,
            source_offset=at.offset(self._settings.mode),
        )


def _is_last(rows: Sequence[Sequence[Any]], index: int) -> bool:
    """Return whether no later row has the same time."""
    return index + 1 == len(rows) or rows[index + 1][-1] != rows[index][-1]


def close_quietly(cursor: "psycopg.ServerCursor[Any]") -> None:
    """Close a cursor, even if its connection is gone."""
    import psycopg  # noqa: PLC0415 - only tasks need it

    with suppress(psycopg.Error):
        cursor.close()
