"""Follows records until the browser disconnects, at its pace and without dropping any.

A browser that does not read blocks the reading thread, and thereby the client that fetches. If the
log has deleted records meanwhile, the stream reports which, and continues after them.
"""

import time
from collections.abc import Callable
from typing import Final

from brokers.protocol.records.reader import Record as Found
from brokers.search.predicate import Matches, condition_of
from console.messages.filter_language import Filter
from console.messages.lines import done_line, gap_line, size_of
from console.messages.opening import CUT, Order, ranges_of, tell_lost, tell_start
from console.messages.pipe import Stopped
from console.messages.question import written_cursor
from console.messages.tally import Row, Tally
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Record, Span

Write = Callable[[Record], bytes]
OUT_OF_RANGE: Final = "OFFSET_OUT_OF_RANGE"
# Before a tail is restarted: each has a client of its own.
AGAIN_SECONDS: Final = 0.2
DELETED: Final = "deleted before it was read"
# Compaction and transactions look the same to a reader.
NO_RECORD: Final = "no record is there: compacted, or markers of transactions"


class Tail:
    """One stream; call `run` once, in a thread."""

    def __init__(
        self,
        order: Order,
        *,
        wanted: Filter | None,
        write: Write,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order = order
        self._filter = wanted
        self._write = write
        self._clock = clock
        self._next: dict[int, int] = {}
        self._matches: dict[int, Matches] = {}
        self._tally = Tally([], clock=clock)

    def run(self) -> None:
        ranges = ranges_of(self._order)
        self._next = {one.partition: one.first for one in ranges}
        self._tally = Tally(
            [
                Row(partition=one.partition, first=one.first, end=one.end, position=one.first)
                for one in ranges
            ],
            clock=self._clock,
        )
        for one in ranges:
            tree = True if self._filter is None else self._filter.of(one.partition)
            if isinstance(tree, bool):
                self._matches[one.partition] = _always if tree else _never
            else:
                self._matches[one.partition] = condition_of(tree).matches
        count = f"{len(ranges):,} partition{'' if len(ranges) == 1 else 's'}"
        plan = f"every record that comes into {count} from now on"
        text = self._filter.text if self._filter else ""
        tell_start(self._order, ranges, plan=plan, filter_text=text)
        tell_lost(self._order, ranges)
        try:
            while self._next:
                self._follow()
            self._order.tell(self._done("failed", "no partition of the topic can be read"))
        except Stopped as stopped:
            self._order.pipe.put_last(self._done("stopped", f"stopped: {stopped}"))

    def _follow(self) -> None:
        """Read on from each partition's position, until an offset no longer exists."""
        spans = [Span(partition=index, start=offset) for index, offset in self._next.items()]
        try:
            with self._order.source.reading(spans, stops_at_end=False) as reader:
                for batch in reader.batches():
                    self._order.pipe.check()
                    for record in batch:
                        self._take(record)
                    self._progress()
        except KafkaFailure as failed:
            if failed.name != OUT_OF_RANGE:
                raise
            self._find_again()

    def _take(self, record: Record) -> None:
        index, offset = record.partition, record.offset
        if offset > self._next[index]:
            self._order.tell(gap_line(index, self._next[index], offset, NO_RECORD))
        row = self._tally.rows[index]
        row.records += 1
        row.size += size_of(record)
        if self._matches[index](_found(record)):
            self._order.pipe.put(self._write(record))
            self._tally.hits += 1
        # Only now, so that a stream that ends here resumes with this record.
        self._next[index] = row.position = offset + 1
        row.end = max(row.end, row.position)

    def _find_again(self) -> None:
        """Report lost offsets, and continue at the beginning or the end of the log."""
        # A leader that does not know its own end yet refuses repeatedly.
        self._order.pipe.rest(AGAIN_SECONDS)
        for index, (first, end) in self._order.source.bounds(sorted(self._next)).items():
            at = self._next[index]
            if at < first:
                self._order.tell(gap_line(index, at, first, DELETED))
            elif at > end:
                self._order.tell(gap_line(index, end, at, CUT, goes_on=end))
            row = self._tally.rows[index]
            self._next[index] = row.position = min(max(at, first), end)
            row.end = end

    def _progress(self) -> None:
        line = self._tally.due()
        if line is not None:
            self._order.tell(line)

    def _done(self, verdict: str, sentence: str) -> bytes:
        following = {"mode": "tail", "cursor": written_cursor(self._next)}
        return done_line(verdict, sentence, following if self._next else None)


def _found(record: Record) -> Found:
    """Return a record in the form of predicates."""
    return Found(
        record.offset,
        record.timestamp_ms or 0,
        record.key,
        record.value,
        tuple((name.encode("utf-8", "replace"), value) for name, value in record.headers),
    )


def _always(_record: Found) -> bool:
    return True


def _never(_record: Found) -> bool:
    return False
