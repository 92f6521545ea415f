"""Turns messages of the log into records, each with the offset at which to continue after it.

Pure. The server sends a transaction whole after its commit, and sends it again if a reader stopped
within it; changes already delivered are skipped by their LSN. The last change of a transaction is
held back until its commit is read, so that the offset of its records is past the transaction.
"""

from collections.abc import Callable
from dataclasses import replace

from connectors.plugins.postgres.capture import pgoutput
from connectors.plugins.postgres.capture.catalog import Captured
from connectors.plugins.postgres.capture.events import Events
from connectors.plugins.postgres.capture.pgoutput import (
    BadMessage,
    Begin,
    Change,
    Commit,
    Origin,
    Payload,
    Relation,
    Truncate,
)
from connectors.plugins.postgres.capture.positions import Position, text_of
from connectors.plugins.postgres.capture.relations import Operation, Row, SourceInfo
from connectors.sdk.records import Place, Record, SourceRecord

# The table of a relation message; None if it is not captured.
Describe = Callable[[Relation], Captured | None]


def record_of(event: Record, place: Place, position: Position) -> SourceRecord:
    return SourceRecord(
        topic=event.topic,
        key=event.key,
        key_schema=event.key_schema,
        value=event.value,
        value_schema=event.value_schema,
        headers=event.headers,
        source_partition=place,
        source_offset=position.offset(),
    )


class Changes:
    """The stream of one connection from a position onwards."""

    def __init__(
        self, events: Events, describe: Describe, *, place: Place, position: Position
    ) -> None:
        self._events = events
        self._describe = describe
        self._place = place
        # Delivered before this connection; and with the changes read since.
        self._before = position
        self.position = position
        self._last_commit = position.committed
        self._begin: Begin | None = None
        self._origin: Origin | None = None
        self._tables: dict[int, Captured | None] = {}
        self._held: list[Record] = []
        self._held_at = 0
        # Tables of which a TRUNCATE was skipped.
        self.skipped_truncates: set[str] = set()

    @property
    def is_between(self) -> bool:
        """Whether no transaction is being read."""
        return self._begin is None

    def take(self, payload: Payload, *, now_ns: int) -> list[SourceRecord]:
        """Return the records completed by a message."""
        message = pgoutput.decode(payload.body)
        if isinstance(message, Change | Truncate):
            return self._change(message, payload.lsn, now_ns)
        if isinstance(message, Begin):
            self._begin = message
            self._origin = None
        elif isinstance(message, Origin):
            self._origin = message
        elif isinstance(message, Relation):
            self._tables[message.oid] = self._describe(message)
        elif isinstance(message, Commit):
            return self._commit(message)
        return []

    def passed(self, wal_end: int) -> None:
        """Note that the server has sent everything up to an LSN."""
        if self.is_between and wal_end > self.position.committed:
            self.position = replace(self.position, committed=wal_end)

    def _change(self, message: Change | Truncate, lsn: int, now_ns: int) -> list[SourceRecord]:
        begin = self._begin
        if begin is None:
            raise BadMessage(f"a change at {text_of(lsn)} is outside of a transaction")
        if begin.final_lsn < self._before.committed:
            return []
        if begin.final_lsn == self._before.transaction and lsn < (self._before.change or 0):
            return []
        source = self._source(begin, lsn)
        if isinstance(message, Change):
            events = self._row(message, source, now_ns)
        else:
            events = self._truncated(message, source, now_ns)
        if not events:
            return []
        released = self._release()
        self._held, self._held_at = events, lsn
        return released

    def _row(self, change: Change, source: SourceInfo, now_ns: int) -> list[Record]:
        captured = self._table(change.relation)
        if captured is None:
            return []
        old, new = (self._cells(captured, row) for row in (change.old, change.new))
        return self._events.change(
            captured.table, change.operation, before=old, after=new, source=source, now_ns=now_ns
        )

    def _truncated(self, message: Truncate, source: SourceInfo, now_ns: int) -> list[Record]:
        made: list[Record] = []
        for oid in message.relations:
            if (captured := self._table(oid)) is not None:
                events = self._events.change(
                    captured.table,
                    Operation.TRUNCATE,
                    before=None,
                    after=None,
                    source=source,
                    now_ns=now_ns,
                )
                if not events:
                    self.skipped_truncates.add(f"{captured.table.schema}.{captured.table.name}")
                made += events
        return made

    def _table(self, oid: int) -> Captured | None:
        try:
            return self._tables[oid]
        except KeyError:
            raise BadMessage(f"a change of relation {oid} without a relation message") from None

    def _cells(self, captured: Captured, row: Row | None) -> Row | None:
        if row is None:
            return None
        if len(row) != captured.width:
            table = captured.table
            raise BadMessage(
                f"a row of {table.schema}.{table.name} has {len(row)} columns, and the table has"
                f" {captured.width}"
            )
        return captured.cells(row)

    def _source(self, begin: Begin, lsn: int) -> SourceInfo:
        return SourceInfo(
            ts_us=begin.commit_us,
            lsn=lsn,
            transaction=begin.xid,
            last_commit_lsn=self._last_commit or None,
            origin=self._origin.name if self._origin else None,
            origin_lsn=self._origin.lsn if self._origin else None,
        )

    # --- offsets -------------------------------------------------------------------------------

    def _release(self) -> list[SourceRecord]:
        """Return the held change, now that another one of its transaction follows."""
        if not self._held:
            return []
        assert self._begin is not None, "the held change belongs to the transaction"
        self.position = replace(
            self.position, transaction=self._begin.final_lsn, change=self._held_at
        )
        held, self._held = self._held, []
        return [record_of(event, self._place, self.position) for event in held]

    def _commit(self, commit: Commit) -> list[SourceRecord]:
        begin, self._begin = self._begin, None
        if begin is None:
            raise BadMessage(f"a commit at {text_of(commit.commit_lsn)} ends no transaction")
        within = replace(self.position, transaction=begin.final_lsn, change=self._held_at)
        self.position = Position(
            committed=max(commit.end_lsn, self.position.committed), epoch=self._before.epoch
        )
        self._last_commit = commit.end_lsn
        held, self._held = self._held, []
        last = len(held) - 1
        return [
            record_of(event, self._place, self.position if index == last else within)
            for index, event in enumerate(held)
        ]
