"""Reads a page of records without a filter: the newest ones, or those from a position on.

Partitions are merged by the timestamps of their records, without changing any partition's own
order. The newest records are read backwards in growing windows of offsets, so that a compacted
topic whose last records lie far apart costs a few reads, and none from its beginning.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple

from console.messages.lines import done_line, size_of
from console.messages.opening import Order, Range, ranges_of, tell_lost, tell_start
from console.messages.question import Mode, Question, written_cursor
from console.messages.tally import Row, Tally
from gateway.kafka.values import Record, Span

# The first window of a partition, and the growth of later ones. Records of 18 MB are not read by
# the dozen if eight were requested.
FIRST_WINDOW: Final = 8
GROWTH: Final = 4
# Lines that wait to be put in order, for each open stream.
MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
TOO_MUCH: Final = f"{MAX_KEPT_BYTES // 1024**2} MB wait for their order"

Write = Callable[[Record], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of one answer in bytes and time."""

    size: int
    seconds: float


# A person waits, and can request the next page instead.
PAGE: Final = Bounds(size=256 * 1024 * 1024, seconds=20.0)


class Kept(NamedTuple):
    """A record that was read and formatted, and is not sent yet."""

    timestamp_ms: int
    offset: int
    line: bytes


@dataclass(slots=True, kw_only=True)
class Lane:
    """One partition of a page. `kept` is in the order in which records are sent."""

    range: Range
    position: int  # the offset reached; it decreases in mode newest
    kept: list[Kept] = field(default_factory=list)
    sent: int = 0  # of those kept
    window: int = FIRST_WINDOW
    is_read: bool = False

    @property
    def head(self) -> Kept | None:
        return self.kept[self.sent] if self.sent < len(self.kept) else None


@dataclass(slots=True, kw_only=True)
class Window:
    """The records of a range of offsets; if it is cut, the first ones are missing."""

    kept: deque[Kept] = field(default_factory=deque)
    is_cut: bool = False


class Page:
    """One page; call `run` once, in a thread."""

    def __init__(
        self,
        order: Order,
        *,
        write: Write,
        bounds: Bounds = PAGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order = order
        self._write = write
        self._bounds = bounds
        self._clock = clock
        self._sent = 0
        self._kept_bytes = 0
        self._stopped = ""
        self._lanes: list[Lane] = []
        self._tally = Tally([], clock=clock)

    def run(self) -> None:
        ranges = ranges_of(self._order)
        is_newest = self._order.question.mode is Mode.NEWEST
        self._lanes = [
            Lane(
                range=one,
                position=one.end if is_newest else one.first,
                is_read=one.first >= one.end,
            )
            for one in ranges
        ]
        self._tally = Tally(
            [
                Row(
                    partition=one.partition,
                    first=one.first,
                    end=one.end,
                    position=one.end if is_newest else one.first,
                )
                for one in ranges
            ],
            clock=self._clock,
        )
        tell_start(self._order, ranges, plan=plan_of(self._order.question, ranges))
        tell_lost(self._order, ranges)
        if is_newest:
            self._read_backwards()
        else:
            self._read_forwards()
        self._order.tell(self._tally.line())
        self._order.tell(self._done())

    # -- the newest ------------------------------------------------------------------------------

    def _read_backwards(self) -> None:
        wanting = [lane for lane in self._lanes if not lane.is_read]
        while wanting and not self._is_enough():
            windows = {lane.range.partition: self._window(lane) for lane in wanting}
            found = self._read(windows)
            for lane in wanting:
                self._prepend(lane, windows[lane.range.partition], found)
            wanting = self._unsettled()
        for lane in self._merged(self._order.question.limit):
            self._send(lane)

    def _window(self, lane: Lane) -> Span:
        start = max(lane.range.first, lane.position - lane.window)
        return Span(partition=lane.range.partition, start=start, end=lane.position)

    def _read(self, windows: Mapping[int, Span]) -> dict[int, Window]:
        """Read windows to their ends; keep the last records of each, as many as a page has."""
        found = {index: Window() for index in windows}
        with self._order.source.reading(list(windows.values()), stops_at_end=True) as reader:
            for batch in reader.batches():
                self._order.pipe.check()
                by_partition: dict[int, list[Record]] = {}
                for record in batch:
                    by_partition.setdefault(record.partition, []).append(record)
                for index, records in by_partition.items():
                    self._count(index, records)
                    self._take(found[index], records)
                self._progress()
                if self._tally.seconds() >= self._bounds.seconds:
                    return {}
        return found

    def _take(self, window: Window, records: Sequence[Record]) -> None:
        """Keep the last records: as many as a page has, and as fit into memory."""
        limit = self._order.question.limit
        # A window may be full although earlier ones were nearly empty: records that drop out at its
        # other end are not formatted first.
        window.is_cut = window.is_cut or len(records) > limit
        window.kept.extend(self._keep(record) for record in records[-limit:])
        while len(window.kept) > limit or (window.kept and self._is_too_much(window)):
            self._kept_bytes -= len(window.kept.popleft().line)
            window.is_cut = True
        if records and not window.kept:
            # Even the last record does not fit beside those of others: it is for the next page.
            self._stopped = TOO_MUCH

    def _is_too_much(self, window: Window) -> bool:
        """Tell whether to drop lines; one line is kept, however long it is."""
        is_only = len(window.kept[0].line) == self._kept_bytes
        return self._kept_bytes > MAX_KEPT_BYTES and not is_only

    def _prepend(self, lane: Lane, span: Span, found: Mapping[int, Window]) -> None:
        if span.partition not in found:
            return  # The newest records, at its end, were not read.
        window = found[span.partition]
        lane.kept += reversed(window.kept)
        if window.is_cut:
            assert span.end is not None, "the windows of a page have both ends"
            lane.position = window.kept[0].offset if window.kept else span.end
        else:
            lane.position = span.start
        lane.window *= GROWTH
        lane.is_read = lane.position <= lane.range.first
        self._tally.rows[span.partition].position = lane.position

    def _unsettled(self) -> list[Lane]:
        """Return lanes that may have more of the newest records than were read."""
        turns = self._merged(self._order.question.limit)
        chosen = Counter(lane.range.partition for lane in turns)
        is_short = len(turns) < self._order.question.limit
        return [
            lane
            for lane in self._lanes
            # Nothing after the last chosen record is needed.
            if not lane.is_read
            and (
                is_short
                or (chosen[lane.range.partition] == len(lane.kept) and lane is not turns[-1])
            )
        ]

    def _merged(self, limit: int) -> list[Lane]:
        """Return the lanes in the order of their newest records, up to a number of turns."""
        heads = [
            (-lane.kept[0].timestamp_ms, number, 0)
            for number, lane in enumerate(self._lanes)
            if lane.kept
        ]
        heapify(heads)
        turns: list[Lane] = []
        while heads and len(turns) < limit:
            _, number, place = heads[0]
            lane = self._lanes[number]
            turns.append(lane)
            if place + 1 < len(lane.kept):
                heapreplace(heads, (-lane.kept[place + 1].timestamp_ms, number, place + 1))
            else:
                heappop(heads)
        return turns

    # -- from a place on -------------------------------------------------------------------------

    def _read_forwards(self) -> None:
        spans = [
            Span(partition=lane.range.partition, start=lane.position, end=lane.range.end)
            for lane in self._lanes
            if not lane.is_read
        ]
        if not spans:
            return
        lanes = {lane.range.partition: lane for lane in self._lanes}
        with self._order.source.reading(spans, stops_at_end=True) as reader:
            for batch in reader.batches():
                self._order.pipe.check()
                for record in batch:
                    self._append(lanes[record.partition], record)
                self._send_ripe()
                if self._sent >= self._order.question.limit:
                    return
                if self._is_enough():
                    # Send even records that others may precede: a partition that delivers nothing
                    # for so long would block every page like this one.
                    self._send_ripe(is_last=True)
                    return
                for lane in self._lanes:
                    if len(lane.kept) - lane.sent >= self._order.question.limit - self._sent:
                        reader.finish(lane.range.partition)
                self._progress()
        for lane in self._lanes:
            # A partition that was finished early has enough records to fill the page.
            if len(lane.kept) - lane.sent < self._order.question.limit - self._sent:
                lane.is_read, lane.position = True, lane.range.end
                self._tally.rows[lane.range.partition].position = lane.position
        self._send_ripe(is_last=True)

    def _append(self, lane: Lane, record: Record) -> None:
        if len(lane.kept) - lane.sent < self._order.question.limit - self._sent:
            lane.kept.append(self._keep(record))
            self._count(record.partition, [record])
            lane.position = record.offset + 1
            lane.is_read = lane.position >= lane.range.end
            self._tally.rows[record.partition].position = lane.position

    def _send_ripe(self, *, is_last: bool = False) -> None:
        """Send records that no later one can precede."""
        heads = [
            (lane.head.timestamp_ms, number) for number, lane in enumerate(self._lanes) if lane.head
        ]
        heapify(heads)
        is_blind = any(lane.head is None and not lane.is_read for lane in self._lanes)
        while heads and self._sent < self._order.question.limit:
            if is_blind and not is_last and self._kept_bytes < MAX_KEPT_BYTES:
                return
            number = heads[0][1]
            lane = self._lanes[number]
            self._send(lane)
            if lane.head:
                heapreplace(heads, (lane.head.timestamp_ms, number))
            else:
                heappop(heads)
                is_blind = is_blind or not lane.is_read

    # -- both ------------------------------------------------------------------------------------

    def _keep(self, record: Record) -> Kept:
        line = self._write(record)
        self._kept_bytes += len(line)
        return Kept(record.timestamp_ms or 0, record.offset, line)

    def _count(self, index: int, records: Sequence[Record]) -> None:
        row = self._tally.rows[index]
        row.records += len(records)
        row.size += sum(size_of(record) for record in records)

    def _send(self, lane: Lane) -> None:
        kept = lane.kept[lane.sent]
        self._order.pipe.put(kept.line)
        # Sent lines are no longer needed; their offsets are, for the cursor.
        lane.kept[lane.sent] = kept._replace(line=b"")
        self._kept_bytes -= len(kept.line)
        lane.sent += 1
        self._sent += 1
        self._tally.hits += 1

    def _is_enough(self) -> bool:
        """Whether the page has read so much that it ends here."""
        if self._tally.size >= self._bounds.size:
            self._stopped = f"{self._bounds.size // 1024**2} MB were read"
        elif self._tally.seconds() >= self._bounds.seconds:
            self._stopped = f"{self._bounds.seconds:g} s are over"
        elif self._kept_bytes >= MAX_KEPT_BYTES:
            self._stopped = TOO_MUCH
        return bool(self._stopped)

    def _progress(self) -> None:
        line = self._tally.due()
        if line is not None:
            self._order.tell(line)

    def _cursor(self) -> dict[int, int]:
        """Return where the next page starts; partitions that are read to their end are left out."""
        cursor = {}
        for lane in self._lanes:
            if self._order.question.mode is Mode.NEWEST:
                place = lane.kept[lane.sent - 1].offset if lane.sent else lane.range.end
                if lane.head is None:
                    place = lane.position
                has_more = place > lane.range.first
            else:
                place = lane.head.offset if lane.head else lane.position
                has_more = place < lane.range.end
            if has_more:
                cursor[lane.range.partition] = place
        return cursor

    def _done(self) -> bytes:
        cursor = self._cursor()
        mode = "newest" if self._order.question.mode is Mode.NEWEST else "offset"
        next_page = {"mode": mode, "cursor": written_cursor(cursor)} if cursor else None
        dark = len(self._order.places.dark)
        shown = f"{self._sent:,} record{'' if self._sent == 1 else 's'}"
        if dark:
            total = dark + len(self._lanes)
            sentence = f"{shown}; {dark} of {total} partitions could not be read"
            return done_line("failed", sentence, next_page)
        if self._stopped:
            return done_line("stopped", f"stopped after {shown}: {self._stopped}", next_page)
        if cursor:
            return done_line("limit", f"{shown}, as many as were asked for", next_page)
        within = "" if self._order.question.window.is_open else " in this time range"
        return done_line("complete", f"complete: {shown}, there are no more{within}", None)


def plan_of(question: Question, ranges: Sequence[Range]) -> str:
    partitions = f"{len(ranges):,} partition{'' if len(ranges) == 1 else 's'}"
    within = "" if question.window.is_open else " within a time range"
    match question.mode:
        case Mode.NEWEST | Mode.OLDEST:
            which = question.mode.value
            records = f"the {which} {question.limit:,} records of {partitions}"
            return f"{records}{within}, the {which} first"
        case Mode.OFFSET:
            return f"{question.limit:,} records of {partitions} from an offset on{within}"
        case Mode.TIME | Mode.TAIL:
            raise AssertionError(f"no page is of mode {question.mode.value}")
