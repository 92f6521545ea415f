"""One capture on open connections: first the rows, then the changes; it lives between slices.

Any failure ends it, and the next one begins at the stored offsets.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.postgres.capture import facts, slots
from connectors.plugins.postgres.capture.catalog import Catalog, TableName
from connectors.plugins.postgres.capture.changes import Changes, record_of
from connectors.plugins.postgres.capture.events import Events
from connectors.plugins.postgres.capture.heartbeats import heartbeat
from connectors.plugins.postgres.capture.pgoutput import BadMessage, Keepalive
from connectors.plugins.postgres.capture.positions import Position
from connectors.plugins.postgres.capture.replication import Replication
from connectors.plugins.postgres.capture.settings import CaptureSettings
from connectors.plugins.postgres.capture.snapshot import SnapshotReader, left_of
from connectors.plugins.postgres.capture.starts import start_of
from connectors.sdk.connector import SourceContext
from connectors.sdk.errors import ConnectorError, DataError, RetriableError
from connectors.sdk.records import Place, Record, SourceRecord

if TYPE_CHECKING:
    import psycopg

# Limits of one call of `poll`: about a second, and this much of the log.
POLL_S: Final = 0.5
POLL_BYTES: Final = 8 * 1024 * 1024
# A server with more to send sends it within this time.
GATHER_S: Final = 0.01
# Check the clock after this many messages.
CLOCK_MESSAGES: Final = 64
# Lines about tables of one kind, so that a thousand tables do not fill the log.
MAX_WARNED: Final = 10
TRUNCATED: Final = (
    "{table} was emptied by a TRUNCATE, which skipped.operations skips, so copies of it keep their"
    " rows: set skipped.operations=none here, and truncate.enabled=true in the sink, to carry the"
    " next one over"
)


def warnings_of(incomplete: Mapping[TableName, Sequence[str]], placeholder: str) -> Iterator[str]:
    """Yield lines about tables whose updates do not log all columns."""
    for table, columns in list(incomplete.items())[:MAX_WARNED]:
        yield (
            f"{table}: an update that leaves a large value of {', '.join(columns)} unchanged"
            f" does not log it, and its event holds {placeholder} instead:"
            f" ALTER TABLE {table} REPLICA IDENTITY FULL logs whole rows"
        )
    if len(incomplete) > MAX_WARNED:
        yield f"the same holds for {len(incomplete) - MAX_WARNED} more tables"


class Session:
    """A capture that is kept between slices."""

    def __init__(
        self,
        settings: CaptureSettings,
        context: SourceContext,
        *,
        clock: Callable[[], float] = time.monotonic,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._clock_ns = clock_ns
        self._connections: list[psycopg.Connection[Any]] = []
        self._events = Events(settings.events)
        self.place: Place = {"server": settings.events.prefix}
        self._replication: Replication | None = None
        self._snapshot: SnapshotReader | None = None
        self._changes: Changes | None = None
        self._position: Position | None = None
        self._stored = Position.of(context.offset(self.place))
        self._told: Position | None = None
        self._stored_at = self._beat_at = clock()
        self._is_asked = False
        self._failure: Exception | None = None
        self._warned: set[str] = set()
        self._epoch = context.epoch
        with ExitStack() as failing:
            # Nothing else closes the connections.
            failing.callback(self.close)
            self._begin(context)
            failing.pop_all()

    def close(self) -> None:
        opened, self._connections = self._connections, []
        for connection in opened:
            with suppress(Exception):
                connection.close()

    def poll(self) -> list[SourceRecord]:
        """Return the available records, in the order in which to write them."""
        if self._failure is not None:
            raise self._failure
        if self._snapshot is None and self._position is None and not self._take_slot():
            return []
        if self._snapshot is not None:
            return self._read_rows(self._snapshot)
        if not self._start.has_stream or not self._is_streaming():
            return []
        return self._read_changes()

    def new_warnings(self) -> list[str]:
        """Return lines about tables whose first TRUNCATE was skipped since the last call."""
        skipped = self._changes.skipped_truncates if self._changes is not None else set()
        fresh = sorted(skipped - self._warned)
        self._warned |= skipped
        return [TRUNCATED.format(table=table) for table in fresh[:MAX_WARNED]]

    def reached(self) -> Position | None:
        """Return a position without a record to store, if one is due."""
        self._told = None
        if self._changes is not None:
            position, is_between = self._changes.position, self._changes.is_between
        elif self._snapshot is None and self._position is not None:
            position, is_between = self._position, True
        else:
            return None
        stored = self._stored
        is_other_phase = stored is None or stored.is_snapshot != position.is_snapshot
        is_due = self._is_asked or self._clock() - self._stored_at >= self._settings.status_s
        is_new = stored is None or position.committed > stored.committed
        if is_between and (is_other_phase or (is_due and is_new)):
            self._told = position
        return self._told

    def stored(self, records: Sequence[SourceRecord]) -> None:
        """Note the stored position, and confirm it to the server."""
        self._stored_at, self._is_asked = self._clock(), False
        if self._told is not None:
            self._stored = self._told
        elif records:
            self._stored = Position.of(records[-1].source_offset)
        self._confirm()

    # --- beginning -----------------------------------------------------------------------------

    def _begin(self, context: SourceContext) -> None:
        settings = self._settings
        self._side = self._connect()
        context.reached()
        self._catalog = Catalog(self._side, settings.filters, by_root=settings.by_root)
        slot = slots.slot_of(self._side, settings.slot)
        self._start = start_of(
            settings.mode, self._stored, slot, name=settings.slot, epoch=self._epoch
        )
        if self._start.words:
            context.log(self._start.words)
        if self._start.has_stream:
            self._prepare(context, slot)
        if self._start.position is not None:
            position = self._start.position
            if self._start.has_rows:
                position = replace(position, epoch=self._epoch)
            self._go_on(position, exported=None)

    def _prepare(self, context: SourceContext, slot: slots.Slot | None) -> None:
        """Create the publication, and request a slot if there is none."""
        settings, tables = self._settings, self._catalog.tables()
        if slot is not None and slot.is_active:
            text = f"another client reads the slot {settings.slot}"
            if context.retries >= settings.slot_retries:
                raise ConnectorError(f"{text}: give each connector its own slot.name")
            raise RetriableError(text, wait_s=settings.slot_delay_s)
        for words in slots.prepare_publication(
            self._side, settings.publication, settings.autocreate, tables, by_root=settings.by_root
        ):
            context.log(words)
        for table in slots.unpublished(self._side, settings.publication, tables)[:MAX_WARNED]:
            context.log(f"changes of {table} are not in publication {settings.publication}")
        for text in warnings_of(self._catalog.incomplete(tables), settings.events.placeholder):
            context.warn(text)
        if self._start.drops_slot:
            slots.drop_slot(self._side, settings.slot)
        if self._start.makes_slot:
            self._replication = Replication(self._connect(replication="database"))
            self._replication.begin_slot(settings.slot)

    def _take_slot(self) -> bool:
        """Continue with the requested slot; return False while it is not created."""
        assert self._replication is not None, "a slot was requested"
        made = self._replication.new_slot()
        if made is None:
            return False
        position = Position(committed=made.lsn, is_snapshot=self._start.has_rows, epoch=self._epoch)
        self._go_on(position, exported=made.snapshot)
        # Its exported snapshot is in use by now.
        self._replication.close()
        self._replication = None
        return True

    def _go_on(self, position: Position, *, exported: str | None) -> None:
        self._position = position
        if not self._start.has_rows:
            return
        tables = [
            table
            for table in self._catalog.tables()
            if self._settings.filters.is_in_snapshot(table.schema, table.name)
        ]
        self._snapshot = SnapshotReader(
            self._connect(),
            self._catalog,
            self._events,
            tables=left_of(tables, position.table),
            place=self.place,
            position=position,
            fetch_rows=self._settings.snapshot_rows,
            clock_ns=self._clock_ns,
        )
        self._snapshot.begin(exported)

    # --- rows and changes ----------------------------------------------------------------------

    def _read_rows(self, snapshot: SnapshotReader) -> list[SourceRecord]:
        until = self._clock() + POLL_S
        records: list[SourceRecord] = []
        while not records and not snapshot.is_done and self._clock() < until:
            records = snapshot.take()
        if snapshot.is_done:
            self._position, self._snapshot = snapshot.position, None
            snapshot.close()
        return records

    def _is_streaming(self) -> bool:
        settings = self._settings
        if self._replication is None:
            assert self._position is not None, "a position is known before the stream"
            self._replication = Replication(self._connect(replication="database"))
            self._replication.begin_stream(
                settings.slot, lsn=self._position.committed, publications=[settings.publication]
            )
            self._changes = Changes(
                self._events,
                self._catalog.of_relation,
                place=self.place,
                position=self._position,
            )
        return self._replication.has_begun()

    def _read_changes(self) -> list[SourceRecord]:
        replication, changes = self._replication, self._changes
        assert replication is not None, "the stream has begun"
        assert changes is not None, "the stream has begun"
        until, size, seen = self._clock() + POLL_S, 0, 0
        records: list[SourceRecord] = []
        while len(records) < self._settings.batch and size < POLL_BYTES:
            frame = replication.take()
            if frame is None:
                # Each batch is a round trip to the cluster, so wait while one still grows.
                if records and self._clock() < until and replication.wait(GATHER_S):
                    continue
                break
            seen += 1
            if isinstance(frame, Keepalive):
                changes.passed(frame.wal_end)
                if frame.wants_reply:
                    # A server that shuts down waits until everything it has sent is confirmed.
                    self._is_asked = True
                    self._confirm()
                continue
            try:
                records += changes.take(frame, now_ns=self._clock_ns())
            except (DataError, BadMessage) as error:
                if not records:
                    raise
                # First deliver the records before it.
                self._failure = error
                break
            size += len(frame.body)
            if seen % CLOCK_MESSAGES == 0 and self._clock() >= until:
                break
        return records + self._beat(changes)

    def _beat(self, changes: Changes) -> list[SourceRecord]:
        """Return a heartbeat if one is due."""
        settings = self._settings
        if not settings.heartbeat_s or self._clock() - self._beat_at < settings.heartbeat_s:
            return []
        self._beat_at = self._clock()
        if settings.heartbeat_query:
            # The author of the config wrote this statement; it runs as the config's role.
            self._side.execute(settings.heartbeat_query.encode())
        now_ms = self._clock_ns() // 1_000_000
        made: Record = heartbeat(settings.heartbeat_topic, settings.events.prefix, now_ms=now_ms)
        return [record_of(made, self.place, changes.position)]

    def _confirm(self) -> None:
        replication, stored = self._replication, self._stored
        if replication is not None and replication.is_streaming and stored is not None:
            replication.confirm(stored.committed)

    # --- connections ---------------------------------------------------------------------------

    def _connect(self, **more: Any) -> "psycopg.Connection[Any]":
        opened = facts.connect(self._settings, **more)
        self._connections.append(opened)
        return opened
