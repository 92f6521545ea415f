"""Sends records to a browser as they arrive, at its pace and without dropping any.

The engine that all readers of a cluster share fetches them. If the log has deleted records
meanwhile, the stream reports which, and continues after them.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from brokers.protocol.records.reader import Record as Found
from brokers.search.predicate import Matches, condition_of
from console.messages.filter_language import Filter
from console.messages.lines import done_line, error_line, gap_news_line, progress_line
from console.messages.opening import Order, ranges_of, send_lost, send_start
from console.messages.question import written_cursor
from gateway.kafka.errors import failure
from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.pipe import Pipe, Stopped
from gateway.kafka.readers.progress import PROGRESS_SECONDS, Progress, Row
from gateway.kafka.readers.ranges import Range
from gateway.kafka.readers.reading import Reading
from gateway.kafka.readers.values import End, Gap, GapReason, News, content_size
from gateway.kafka.values import Place, Position, PositionKind, Record

Write = Callable[[Record], bytes]
# Formatted at a time, in a thread.
PIECE_RECORDS: Final = 500
PIECE_BYTES: Final = 256 * 1024
# A tail ends if no broker answers for so long.
AWAY_SECONDS: Final = 10.0


class Readers(Protocol):
    """The engine; see `gateway.kafka.readers.engine.Readers`."""

    async def open(self, admission: Admission, starts: Mapping[Place, Position]) -> Reading: ...
    def require_answers(self, within_s: float) -> None: ...


class Tail:
    """One stream: call `begin` in a thread, then `follow` on the event loop."""

    def __init__(
        self,
        admission: Admission,
        pipe: Pipe,
        *,
        wanted: Filter | None,
        write: Write,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admission = admission
        self._pipe = pipe
        self._filter = wanted
        self._write = write
        self._clock = clock
        self._next: dict[int, int] = {}
        self._matches: dict[int, Matches] = {}
        self._progress = Progress([], clock=clock)

    def begin(self, order: Order) -> None:
        """Find the ends of the partitions, and report where the tail starts."""
        ranges = ranges_of(order)
        self._next = {one.partition: one.first for one in ranges}
        self._progress = Progress([_row(one) for one in ranges], clock=self._clock)
        for one in ranges:
            condition = True if self._filter is None else self._filter.of(one.partition)
            if isinstance(condition, bool):
                self._matches[one.partition] = _always if condition else _never
            else:
                self._matches[one.partition] = condition_of(condition).matches
        count = f"{len(ranges):,} partition{'' if len(ranges) == 1 else 's'}"
        plan = f"every record that comes into {count} from now on"
        text = self._filter.text if self._filter else ""
        send_start(order, ranges, plan=plan, filter_text=text)
        send_lost(order, ranges)

    async def follow(self, topic: str, readers: Readers) -> None:
        """Send records until the stream is stopped, or no partition can be read."""
        try:
            if self._next:
                await self._follow(topic, readers)
            done = self._done("failed", "no partition of the topic can be read")
            await self._pipe.send(done)
        except Stopped as stopped:
            self._pipe.put_last(self._done("stopped", f"stopped: {stopped}"))

    async def _follow(self, topic: str, readers: Readers) -> None:
        starts = {
            Place(topic=topic, partition=index): Position(kind=PositionKind.OFFSET, value=offset)
            for index, offset in self._next.items()
        }
        reading = await readers.open(self._admission, starts)
        try:
            while not reading.is_over:
                self._pipe.check()
                news = await reading.take(
                    max_records=PIECE_RECORDS, max_bytes=PIECE_BYTES, wait_s=PROGRESS_SECONDS
                )
                if not news:
                    readers.require_answers(AWAY_SECONDS)
                if piece := await asyncio.to_thread(self._written, news):
                    await self._pipe.send(piece)
                # Only now, so that a stream that ends here resumes with these.
                self._next = {place.partition: at for place, at in reading.positions.items()}
        finally:
            reading.close()

    def _written(self, news: Sequence[News]) -> bytes:
        """Return the lines of news, and of progress if it is due."""
        lines = []
        for one in news:
            if isinstance(one, Record):
                self._count(one)
                if self._matches[one.partition](_found(one)):
                    lines.append(self._write(one))
                    self._progress.hits += 1
            elif isinstance(one, Gap):
                lines.append(gap_news_line(one))
                row = self._progress.rows[one.place.partition]
                row.position = one.next
                row.end = one.next if one.reason is GapReason.CUT else max(row.end, one.next)
            elif isinstance(one, End):
                step = failure(one.name, str(one.place)).next_step
                lines.append(error_line(one.message, step, partition=one.place.partition))
        if self._progress.is_due():
            lines.append(progress_line(self._progress))
        return b"".join(lines)

    def _count(self, record: Record) -> None:
        row = self._progress.rows[record.partition]
        row.records += 1
        row.size += content_size(record)
        row.position = record.offset + 1
        row.end = max(row.end, row.position)

    def _done(self, verdict: str, sentence: str) -> bytes:
        following = {"mode": "tail", "cursor": written_cursor(self._next)}
        return done_line(verdict, sentence, following if self._next else None)


def _row(one: Range) -> Row:
    return Row(partition=one.partition, first=one.first, end=one.end, position=one.first)


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
