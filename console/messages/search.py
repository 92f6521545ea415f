"""Searches records by a filter, on the brokers that have them (ADR 0030).

Each partition is searched by its leader, two at a time on a broker, and hits go to the browser as
they are found. The result covers all partitions, and is complete only if every record was examined.
The newest hits are searched backwards in stretches of offsets that grow while hits are rare.
"""

import threading
import time
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from brokers.cluster.image import Broker
from brokers.inspection.client import InspectionFailed
from console.messages.filter_language import Filter
from console.messages.lines import Sizes, done_line, error_line, gap_line
from console.messages.opening import Order, Range, ranges_of, tell_lost, tell_start
from console.messages.pipe import Stopped
from console.messages.question import Mode, written_cursor
from console.messages.slots import PER_BROKER, Slots
from console.messages.tally import Row, Tally
from gateway.kafka.values import Record, TimestampKind

# Partitions that are searched concurrently for one stream, for any number of brokers: each needs a
# thread.
MAX_THREADS: Final = 16
# Bytes of a hit's key, value and headers: four times those of a list, so that most of the cut parts
# can still be checked to be JSON.
SHOWN_BYTES: Final = 64 * 1024
# The most that a broker returns of a hit; a file gets that much.
MOST_SHOWN_BYTES: Final = 1024 * 1024
# Hits of one request to a broker; the most that it returns.
MAX_HITS: Final = 10_000
# Bytes of log files that one request may read: more than five minutes, after which it ends anyway.
MAX_SCAN: Final = 16 * 1024**3
# How often a busy broker is asked for a place, and for how long in total.
BUSY_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 60.0
# The first stretch of offsets in a search for the newest hits, with no more hits than a broker
# returns, and the growth of later ones.
FIRST_STRETCH: Final = MAX_HITS
GROWTH: Final = 10
# Hits of one stretch that wait for its end, for each running search; and the size of each besides
# key and value.
MAX_KEPT_BYTES: Final = 4 * 1024 * 1024
HIT_BYTES: Final = 1024
# How often the search checks whether to report progress.
LOOK_SECONDS: Final = 0.05
BUSY: Final = 429
ELSEWHERE: Final = 404
# Results of a broker after which more is left to search.
STOPPED: Final = {
    "stopped": "a broker ends a search after five minutes",
    "budget": f"{MAX_SCAN // 1024**3} GB of a log were read",
}
LOST: Final = {
    "damaged": "they cannot be read: the log is damaged",
    "removed": "they were deleted during the search",
}

Line = Mapping[str, Any]
Write = Callable[[Record, Sizes | None], bytes]


class Ask(Protocol):
    """Calls a broker; `Inspection.search` of its port."""

    def __call__(
        self,
        broker: Broker,
        question: Mapping[str, Any],
        *,
        on_open: Callable[[Callable[[], None]], None],
    ) -> Iterator[Line]: ...


class Enough(Exception):
    """As many hits as requested were found, or the stream was stopped."""


@dataclass(slots=True, kw_only=True)
class Lane:
    """One partition: [low, high) is not searched yet."""

    range: Range
    tree: Any
    low: int
    high: int
    stretch: int = FIRST_STRETCH  # of offsets, in a search for the newest hits
    # Why it ended early; empty if it did not.
    stopped: str = ""
    is_failed: bool = False
    lost: int = 0  # offsets that could not be read

    @property
    def partition(self) -> int:
        return self.range.partition

    @property
    def is_over(self) -> bool:
        return self.low >= self.high


class Search:
    """One search; call `run` once, in a thread."""

    def __init__(
        self,
        order: Order,
        *,
        wanted: Filter,
        ask: Ask,
        slots: Slots,
        write: Write,
        shown_bytes: int = SHOWN_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._order = order
        self._filter = wanted
        self._ask = ask
        self._slots = slots
        self._write = write
        self._shown_bytes = shown_bytes
        self._clock = clock
        self._is_newest = order.question.mode is Mode.NEWEST
        # Guards the lanes, the tally and the number of hits, which the threads share.
        self._lock = threading.Lock()
        self._is_enough = False
        self._stops: dict[int, Callable[[], None]] = {}
        self._lanes: list[Lane] = []
        self._tally = Tally([], clock=clock)

    def run(self) -> None:
        ranges = self._ranges()
        self._lanes = [lane for one in ranges if (lane := self._lane(one)) is not None]
        self._tally = Tally(
            [
                Row(
                    partition=lane.partition,
                    first=lane.low,
                    end=lane.high,
                    position=lane.high if self._is_newest else lane.low,
                )
                for lane in self._lanes
            ],
            clock=self._clock,
            is_search=True,
        )
        tell_start(self._order, ranges, plan=self._plan(), filter_text=self._filter.text)
        tell_lost(self._order, ranges)
        with self._order.pipe.stopping(self._end):
            self._search_all()
        self._order.pipe.check()
        self._order.tell(self._tally.line())
        self._order.tell(self._done())

    def _ranges(self) -> list[Range]:
        ranges = ranges_of(self._order)
        since, open_ranges = self._filter.since_ms, [one for one in ranges if one.first < one.end]
        if since is None or not open_ranges:
            return ranges
        # Exact, because the first record of that time precedes all later ones.
        starts = self._order.source.at_time([one.partition for one in open_ranges], since)
        return [one.from_offset(starts.get(one.partition, one.first)) for one in ranges]

    def _lane(self, one: Range) -> Lane | None:
        """Return the search of a partition; None if none of its records can match."""
        tree = self._filter.of(one.partition)
        if tree is False:
            return None
        return Lane(range=one, tree=None if tree is True else tree, low=one.first, high=one.end)

    def _plan(self) -> str:
        brokers = len({self._order.places.leaders[lane.partition].id for lane in self._lanes})
        records = sum(lane.high - lane.low for lane in self._lanes)
        order = "from the newest on" if self._is_newest else "from the oldest on"
        on = "1 broker" if brokers == 1 else f"{brokers} brokers"
        of = "1 partition" if len(self._lanes) == 1 else f"{len(self._lanes):,} partitions"
        return (
            f"look through up to {records:,} offsets of {of} on {on},"
            f" {order}, until {self._order.question.limit:,} are found"
        )

    # -- threads ---------------------------------------------------------------------------------

    def _search_all(self) -> None:
        """Give each partition a turn, and unfinished ones another one, until there are enough hits.

        A round ends before the next one starts, so that no partition takes the places of those that
        were not searched yet.
        """
        with ThreadPoolExecutor(MAX_THREADS, "search") as threads:
            try:
                while not self._is_enough and (lines := self._lines_of_a_round()):
                    running = [threads.submit(self._search_line, lanes) for lanes in lines]
                    while wait(running, LOOK_SECONDS).not_done:
                        self._tell_progress()
                    for one in running:
                        one.result()
            finally:
                # The pool waits for its threads, whatever ended this one.
                self._end()

    def _lines_of_a_round(self) -> list[deque[Lane]]:
        """Return the unfinished lanes, once for each thread that takes from them."""
        by_broker: dict[int, deque[Lane]] = {}
        for lane in self._lanes:
            if not lane.is_over and not lane.stopped and not lane.is_failed:
                leader = self._order.places.leaders[lane.partition]
                by_broker.setdefault(leader.id, deque()).append(lane)
        return [lanes for lanes in by_broker.values() for _ in range(min(PER_BROKER, len(lanes)))]

    def _tell_progress(self) -> None:
        with self._lock:
            line = self._tally.due()
        if line is not None:
            # The threads notice a stopped stream by themselves.
            with suppress(Stopped):
                self._order.tell(line)

    def _search_line(self, lanes: deque[Lane]) -> None:
        """Search partitions of one broker, alongside another such thread."""
        with suppress(Enough, Stopped):
            while lanes:
                try:
                    lane = lanes.popleft()
                except IndexError:
                    return  # The other thread took the last one.
                try:
                    self._search_lane(lane)
                except InspectionFailed as failed:
                    self._check()
                    lane.is_failed = True
                    self._order.tell(self._failure(lane, failed))

    def _search_lane(self, lane: Lane) -> None:
        """Take one turn with a partition."""
        self._check_limit()
        broker = self._order.places.leaders[lane.partition]
        row = self._tally.rows[lane.partition]

        def waits(ahead: int) -> None:
            self._check()
            row.waits = f"{ahead} in front" if ahead else ""

        with self._slots.place(f"{broker.host}:{broker.inspection_port}", waits=waits):
            if self._is_newest:
                self._search_backwards(lane, broker)
            else:
                self._search_forwards(lane, broker)

    def _share(self) -> int:
        """Return the hits of one turn: no partition may fill the limit before others had a turn."""
        return -(-self._order.question.limit // len(self._lanes))

    def _search_forwards(self, lane: Lane, broker: Broker) -> None:
        row = self._tally.rows[lane.partition]
        hits, taken = min(self._share(), MAX_HITS), 0
        for line in self._lines(lane, broker, lane.low, lane.high, hits=hits):
            if line["kind"] == "hit":
                self._send(line, lane)
                lane.low, taken = int(line["offset"]) + 1, taken + 1
                if taken < hits:
                    self._check_limit()
                # Otherwise the result follows at once, with the number of examined records.
            elif line["kind"] == "done":
                lane.low = self._end_of(lane, line, lane.high)
            else:
                lane.low = max(lane.low, int(line["next_offset"]))
            row.position, row.looked = lane.low, lane.low - row.first
        self._check_limit()

    def _search_backwards(self, lane: Lane, broker: Broker) -> None:
        row = self._tally.rows[lane.partition]
        records, end = row.records, lane.high
        start = max(lane.low, lane.high - lane.stretch)
        hits, is_cut = self._hits_of(lane, broker, start)
        if lane.stopped:
            return
        for hit in reversed(hits):
            self._send(hit, lane)
            lane.high = int(hit["offset"])
            self._check_limit()
        if is_cut:
            # Records before the kept hits are examined, and counted, once more.
            row.records = min(row.records, records + end - lane.high)
            # Hits are dense here: a long stretch would be searched again for every few hits.
            lane.stretch = FIRST_STRETCH
        else:
            lane.high = start
            lane.stretch *= GROWTH
        row.position, row.looked = lane.high, row.end - lane.high

    def _hits_of(self, lane: Lane, broker: Broker, start: int) -> tuple[deque[Line], bool]:
        """Return the last hits of a stretch, as many as fit; and whether some did not."""
        found: deque[Line] = deque()
        row, position, end = self._tally.rows[lane.partition], start, lane.high
        looked, kept, is_cut = row.looked, 0, False
        while position < end and not lane.stopped:
            for line in self._lines(lane, broker, position, end, hits=MAX_HITS):
                if line["kind"] == "hit":
                    found.append(line)
                    kept += _size(line)
                    while len(found) > 1 and (len(found) > self._share() or kept > MAX_KEPT_BYTES):
                        kept -= _size(found.popleft())
                        is_cut = True
                    continue
                reached = int(line["next_offset"])
                if line["kind"] == "done":
                    reached = position = self._end_of(lane, line, end)
                row.looked = looked + min(reached, end) - start
        return found, is_cut

    def _lines(
        self, lane: Lane, broker: Broker, start: int, end: int, *, hits: int
    ) -> Iterator[Line]:
        """Ask a broker, and retry while other searches keep it busy."""
        question = {
            "topic": self._order.places.topic,
            "partition": lane.partition,
            "from": {"offset": start},
            "to": {"offset": end},
            "where": lane.tree,
            "max_hits": hits,
            "max_bytes": MAX_SCAN,
            "max_shown_bytes": self._shown_bytes,
        }
        until = self._clock() + PATIENCE_SECONDS
        while True:
            try:
                yield from self._asked(lane, broker, question)
            except InspectionFailed as failed:
                self._check()
                if failed.status != BUSY or self._clock() >= until:
                    raise
                self._tally.rows[lane.partition].waits = "the broker searches for others"
                self._order.pipe.rest(BUSY_SECONDS)
            else:
                return

    def _asked(self, lane: Lane, broker: Broker, question: Mapping[str, Any]) -> Iterator[Line]:
        row = self._tally.rows[lane.partition]
        records, size = row.records, row.size
        try:
            for line in self._ask(
                broker, question, on_open=lambda stop: self._opened(lane.partition, stop)
            ):
                row.waits = ""
                if "records" in line:
                    row.records, row.size = records + line["records"], size + line["bytes"]
                yield line
        finally:
            with self._lock:
                self._stops.pop(lane.partition, None)

    # -- ends ------------------------------------------------------------------------------------

    def _opened(self, partition: int, stop: Callable[[], None]) -> None:
        with self._lock:
            self._stops[partition] = stop
            is_late = self._is_enough
        if is_late:
            stop()

    def _end(self) -> None:
        """Stop all running searches, and start none."""
        with self._lock:
            self._is_enough = True
            stops = list(self._stops.values())
        for stop in stops:
            stop()

    def _check(self) -> None:
        self._order.pipe.check()
        if self._is_enough:
            raise Enough

    def _send(self, hit: Line, lane: Lane) -> None:
        with self._lock:
            if self._tally.hits >= self._order.question.limit:
                raise Enough
            self._tally.hits += 1
            self._tally.rows[lane.partition].hits += 1
        self._order.pipe.put(self._write(*record_of(hit, self._order.places.topic, lane.partition)))

    def _check_limit(self) -> None:
        if self._tally.hits >= self._order.question.limit:
            self._end()
            raise Enough

    def _end_of(self, lane: Lane, line: Line, end: int) -> int:
        """Process a broker's result; return the offset that it reached."""
        for kind in ("damaged", "removed"):
            for first, next_offset in line[kind]:
                lane.lost += next_offset - first
                self._order.tell(gap_line(lane.partition, first, next_offset, LOST[kind]))
        verdict, reached = line["verdict"], int(line["next_offset"])
        if verdict in STOPPED:
            lane.stopped = STOPPED[verdict]
        elif verdict != "limit":
            return end
        return reached

    def _failure(self, lane: Lane, failed: InspectionFailed) -> bytes:
        broker = self._order.places.leaders[lane.partition]
        if failed.status == BUSY:
            step = f"wait until a search on broker {broker.id} ends, and search again"
        elif failed.status == ELSEWHERE:
            step = "its leader has moved: search again"
        elif failed.status:
            step = "change the filter, or read without one"
        else:
            step = (
                f"see whether this web server reaches the inspection port of broker {broker.id},"
                f" {broker.host}:{broker.inspection_port}"
            )
        return error_line(str(failed), step, partition=lane.partition)

    def _cursor(self) -> dict[int, int]:
        return {
            lane.partition: lane.high if self._is_newest else lane.low
            for lane in self._lanes
            if not lane.is_over
        }

    def _done(self) -> bytes:
        cursor, tally = self._cursor(), self._tally
        mode = "newest" if self._is_newest else "offset"
        following = {"mode": mode, "cursor": written_cursor(cursor)} if cursor else None
        hits = f"{tally.hits:,} hit{'' if tally.hits == 1 else 's'}"
        found = f"{hits} in {tally.records:,} records"
        failed = sum(lane.is_failed for lane in self._lanes) + len(self._order.places.dark)
        lost = sum(lane.lost for lane in self._lanes)
        if failed:
            total = len(self._lanes) + len(self._order.places.dark)
            sentence = f"{found}; {failed} of {total} partitions could not be searched"
            return done_line("failed", sentence, following)
        if tally.hits >= self._order.question.limit and following:
            return done_line("limit", f"{found}, as many as were asked for", following)
        reasons = {lane.stopped for lane in self._lanes if lane.stopped}
        if reasons:
            sentence = f"stopped at {tally.share} %: {found}; {' and '.join(sorted(reasons))}"
            return done_line("stopped", sentence, following)
        if lost:
            return done_line("failed", f"{found}; {lost:,} offsets could not be read", following)
        return done_line("complete", f"complete: {found}", None)


def record_of(hit: Line, topic: str, partition: int) -> tuple[Record, Sizes]:
    """Return the record of a broker's hit, and the sizes of its parts before the cut."""
    kind = TimestampKind.LOG_APPEND_TIME if hit["is_append_time"] else TimestampKind.CREATE_TIME
    record = Record(
        topic=topic,
        partition=partition,
        offset=hit["offset"],
        key=_bytes(hit["key"]),
        value=_bytes(hit["value"]),
        headers=tuple((name, _bytes(value)) for name, value in hit["headers"]),
        timestamp_ms=hit["timestamp"],
        timestamp_kind=kind,
    )
    sizes = Sizes(key=hit["key_bytes"], value=hit["value_bytes"], headers=hit["header_count"])
    return record, sizes


def _size(hit: Line) -> int:
    """Return roughly how much memory a hit takes."""
    return len(hit["key"] or "") + len(hit["value"] or "") + HIT_BYTES


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
