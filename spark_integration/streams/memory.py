"""Runs a topology in memory, for tests: takes records, and returns the records to write.

One call of `pipe` corresponds to one batch on Spark: the times of earlier batches close windows,
and a row that arrives after its window has closed is dropped and counted. If batches follow each
other without a pause, Spark accepts rows for one batch longer, and closes windows then.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from spark_integration.streams.durations import MICROS_PER_MS
from spark_integration.streams.evaluation import evaluate
from spark_integration.streams.fields import (
    HAPPENED,
    RECORD_KEY,
    RECORD_TIME,
    WINDOW_END,
    WINDOW_START,
    Kind,
    Row,
    Value,
)
from spark_integration.streams.folding import Member, fold
from spark_integration.streams.records import BadRecord, Output, Record, decode, encode
from spark_integration.streams.topology import Grouping, Topology, Where
from spark_integration.streams.windows import Shape, Span, are_one_session, spans_of

GroupKey: TypeAlias = tuple[Value, ...]
BEGINNING: Final = -(2**63)


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counts of records, or of their copies in windows, that are not in the result."""

    records: int = 0
    bad: int = 0
    # Records without a value, which JSON and texts need.
    empty: int = 0
    # Records without a time, which windows need.
    timeless: int = 0
    late: int = 0


@dataclass(slots=True, kw_only=True)
class Pane:
    """One group in one window."""

    span: Span | None
    members: list[Member] = field(default_factory=list)


class MemoryDriver:
    """A topology with its state."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.counts = Counts()
        self.bad_records: list[Record] = []
        # The watermark in microseconds; windows that end by then are closed.
        self.watermark = BEGINNING
        # All rows are kept: tests have few, and recomputing each result is simple.
        self._panes: dict[GroupKey, list[Pane]] = {}

    def pipe(self, *records: Record) -> list[Output]:
        """Process one batch; return the records to write."""
        rows = [(record, row) for record in records for row in self._rows_of(record)]
        grouping = self.topology.grouping
        if grouping is None:
            return [encode(self.topology, row, key=record.key) for record, row in rows]
        touched: dict[tuple[GroupKey, Span | None], None] = {}
        is_session = grouping.window is not None and grouping.window.shape is Shape.SESSION
        latest = self.watermark
        for record, row in rows:
            time = row[HAPPENED]
            assert time is None or isinstance(time, int)
            if time is not None and grouping.window is not None:
                whole_ms = time - time % MICROS_PER_MS
                latest = max(latest, whole_ms - self.topology.source.grace_ms * MICROS_PER_MS)
            place = None if time is None else (time, record.partition, record.offset)
            for span in self._spans_of(grouping, time):
                group = tuple(group_value(kind, row[name]) for name, kind in grouping.fields)
                self._add(group, span, Member(row=row, place=place), is_session=is_session)
                touched[group, span] = None
        told = [] if grouping.is_final else self._told(grouping, touched)
        self.watermark = latest
        closed = self._close(grouping, latest)
        return closed if grouping.is_final else told

    def finish(self) -> list[Output]:
        """Close all windows, like a run over a bounded range; return the records to write."""
        grouping = self.topology.grouping
        if grouping is None or not grouping.is_final:
            return []
        return self._close(grouping, None)

    def _rows_of(self, record: Record) -> Iterator[Row]:
        self.counts.records += 1
        try:
            decoded = decode(self.topology.source.format, record.value)
        except BadRecord:
            self.counts.bad += 1
            self.bad_records.append(record)
            return
        if decoded is None:
            self.counts.empty += 1
            return
        always: Row = {
            RECORD_KEY: record.key,
            RECORD_TIME: record.timestamp_ms * MICROS_PER_MS,
        }
        # The row keeps its time, whether or not a select includes it.
        row: Row = {**always, **decoded}
        happened = row[self.topology.source.time or RECORD_TIME]
        for step in self.topology.steps:
            if isinstance(step, Where):
                if evaluate(step.condition, row) is not True:
                    return
            else:
                row = {**always} | {name: evaluate(term, row) for name, term in step.fields}
        yield {**row, HAPPENED: happened}

    def _spans_of(self, grouping: Grouping, time: int | None) -> Iterator[Span | None]:
        if grouping.window is None:
            yield None
        elif time is None:
            self.counts.timeless += 1
        else:
            for span in spans_of(grouping.window, time):
                if span.end <= self.watermark:
                    self.counts.late += 1
                else:
                    yield span

    def _add(self, group: GroupKey, span: Span | None, member: Member, *, is_session: bool) -> None:
        panes = self._panes.setdefault(group, [])
        if span is None or not is_session:
            pane = next((pane for pane in panes if pane.span == span), None)
            if pane is None:
                pane = Pane(span=span)
                panes.append(pane)
            pane.members.append(member)
            return
        # The new session merges with all sessions that it touches.
        joined, members = span, [member]
        for pane in sorted(panes, key=lambda pane: pane.span or span):
            assert pane.span is not None
            earlier, later = sorted((pane.span, joined))
            if are_one_session(earlier, later):
                joined = Span(start=earlier.start, end=max(earlier.end, later.end))
                members = pane.members + members
                panes.remove(pane)
        panes.append(Pane(span=joined, members=members))

    def _told(
        self, grouping: Grouping, touched: dict[tuple[GroupKey, Span | None], None]
    ) -> list[Output]:
        panes = {(group, pane.span): pane for group, kept in self._panes.items() for pane in kept}
        return [self._output(grouping, group, panes[group, span]) for group, span in touched]

    def _close(self, grouping: Grouping, watermark: int | None) -> list[Output]:
        """Remove windows that end by a time, or all of them; return their results."""
        told = []
        for group, panes in list(self._panes.items()):
            open_ones = []
            for pane in panes:
                is_over = pane.span and (watermark is None or pane.span.end <= watermark)
                if is_over:
                    told.append(self._output(grouping, group, pane))
                else:
                    open_ones.append(pane)
            if open_ones:
                self._panes[group] = open_ones
            else:
                del self._panes[group]
        return told

    def _output(self, grouping: Grouping, group: GroupKey, pane: Pane) -> Output:
        row: dict[str, Value] = {
            name: value for (name, _), value in zip(grouping.fields, group, strict=True)
        }
        if pane.span is not None:
            row |= {WINDOW_START: pane.span.start, WINDOW_END: pane.span.end}
        row |= {name: fold(aggregate, pane.members) for name, aggregate, _ in grouping.aggregates}
        return encode(self.topology, row, key=None)


def group_value(kind: Kind, value: Value) -> Value:
    """Return a value as in a key, with times in milliseconds."""
    if kind is Kind.TIME and value is not None:
        assert isinstance(value, int)
        return value - value % MICROS_PER_MS
    return value
