"""Searches records by a filter, on the brokers that have them (ADR 0030).

Each partition is searched by its leader, two at a time on a broker, and hits go out as they are
found. The result covers all partitions, and is complete only if every record was examined. The
newest hits are searched backwards in stretches of offsets that grow while hits are rare.
"""

import threading
import time
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from brokers.cluster.image import Broker
from brokers.inspection.client import InspectionFailed
from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.pipe import Output, Pipe, Stopped
from gateway.kafka.readers.progress import Progress, Row
from gateway.kafka.readers.slots import PER_BROKER, Slots
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
# Results of a broker after which more is left to search.
STOPPED: Final = {
    "stopped": "a broker ends a search after five minutes",
    "budget": f"{MAX_SCAN // 1024**3} GB of a log were read",
}
# Why offsets could not be read, by the field of a broker's result.
LOST: Final = {
    "damaged": "they cannot be read: the log is damaged",
    "removed": "they were deleted during the search",
}

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a record's parts before a broker cut it."""

    key: int
    value: int
    headers: int  # the number


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
class SearchPartition:
    """One partition: [low, high) is not searched yet."""

    index: int
    leader: Broker
    # The condition of the filter in this partition; None matches every record.
    condition: Any
    low: int
    high: int
    stretch: int = FIRST_STRETCH  # of offsets, in a search for the newest hits
    # Why it ended early; empty if it did not.
    stopped: str = ""
    is_failed: bool = False
    lost: int = 0  # offsets that could not be read

    @property
    def is_over(self) -> bool:
        return self.low >= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to search: at most this many hits in the partitions of a topic."""

    topic: str
    partitions: Sequence[SearchPartition]
    limit: int
    is_newest: bool
    # Bytes of a hit's key, value and headers that a broker returns.
    shown_bytes: int = SHOWN_BYTES


class Questions:
    """Asks brokers to search, for one search; `stop` ends all that are being answered."""

    def __init__(
        self, ask: Ask, pipe: Pipe, progress: Progress, *, clock: Callable[[], float]
    ) -> None:
        self._ask = ask
        self._pipe = pipe
        self._progress = progress
        self._clock = clock
        self._lock = threading.Lock()
        self._is_stopped = False
        self._stops: dict[int, Callable[[], None]] = {}

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    def stop(self) -> None:
        """Stop all running searches, and start none."""
        with self._lock:
            self._is_stopped = True
            stops = list(self._stops.values())
        for stop in stops:
            stop()

    def check(self) -> None:
        """Raise Stopped or Enough if no more hits are wanted."""
        self._pipe.check()
        if self._is_stopped:
            raise Enough

    def lines(self, partition: SearchPartition, question: Mapping[str, Any]) -> Iterator[Line]:
        """Ask a partition's leader, and retry while other searches keep it busy."""
        until = self._clock() + PATIENCE_SECONDS
        while True:
            try:
                yield from self._lines_of_one(partition, question)
            except InspectionFailed as failed:
                self.check()
                if failed.status != BUSY or self._clock() >= until:
                    raise
                self._progress.rows[partition.index].waits = "the broker searches for others"
                self._pipe.rest(BUSY_SECONDS)
            else:
                return

    def _lines_of_one(
        self, partition: SearchPartition, question: Mapping[str, Any]
    ) -> Iterator[Line]:
        row = self._progress.rows[partition.index]
        records, size = row.records, row.size
        try:
            for line in self._ask(
                partition.leader,
                question,
                on_open=lambda stop: self._keep_stop(partition.index, stop),
            ):
                row.waits = ""
                if "records" in line:
                    row.records, row.size = records + line["records"], size + line["bytes"]
                yield line
        finally:
            with self._lock:
                self._stops.pop(partition.index, None)

    def _keep_stop(self, index: int, stop: Callable[[], None]) -> None:
        with self._lock:
            self._stops[index] = stop
            is_late = self._is_stopped
        if is_late:
            stop()


class Search:
    """One search; call `run` once, in a thread. It raises Stopped if the pipe is stopped."""

    def __init__(
        self,
        admission: Admission,
        wanted: Wanted,
        output: Output,
        *,
        ask: Ask,
        slots: Slots,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        admission.require([wanted.topic])
        self.partitions = wanted.partitions
        self._wanted = wanted
        self._output = output
        self._pipe = output.pipe
        self._slots = slots
        # Guards the progress and the number of hits, which the threads share.
        self._lock = threading.Lock()
        rows = [
            Row(
                partition=one.index,
                first=one.low,
                end=one.high,
                position=one.high if wanted.is_newest else one.low,
            )
            for one in wanted.partitions
        ]
        self.progress = Progress(rows, clock=clock)
        self._questions = Questions(ask, self._pipe, self.progress, clock=clock)

    def run(self) -> None:
        with self._pipe.stopping(self._questions.stop):
            self._search_all()
        self._pipe.check()

    @property
    def cursor(self) -> dict[int, int]:
        """Return where the next search starts, in partitions that are not searched to their end."""
        return {
            one.index: one.high if self._wanted.is_newest else one.low
            for one in self.partitions
            if not one.is_over
        }

    # -- threads ---------------------------------------------------------------------------------

    def _search_all(self) -> None:
        """Give each partition a turn, and unfinished ones another one, until there are enough hits.

        A round ends before the next one starts, so that no partition takes the places of those that
        were not searched yet.
        """
        with ThreadPoolExecutor(MAX_THREADS, "search") as threads:
            try:
                while not self._questions.is_stopped and (queues := self._queues_of_a_round()):
                    running = [
                        threads.submit(self._search_queue, partitions) for partitions in queues
                    ]
                    while wait(running, LOOK_SECONDS).not_done:
                        self._report_progress()
                    for one in running:
                        one.result()
            finally:
                # The pool waits for its threads, whatever ended this one.
                self._questions.stop()

    def _queues_of_a_round(self) -> list[deque[SearchPartition]]:
        """Return the unfinished partitions, once for each thread that takes from them."""
        by_broker: dict[int, deque[SearchPartition]] = {}
        for partition in self.partitions:
            if not partition.is_over and not partition.stopped and not partition.is_failed:
                by_broker.setdefault(partition.leader.id, deque()).append(partition)
        return [
            partitions
            for partitions in by_broker.values()
            for _ in range(min(PER_BROKER, len(partitions)))
        ]

    def _report_progress(self) -> None:
        with self._lock:
            is_due = self.progress.is_due()
        if is_due:
            # The threads notice a stopped stream by themselves.
            with suppress(Stopped):
                self._output.report(self.progress)

    def _search_queue(self, partitions: deque[SearchPartition]) -> None:
        """Search partitions of one broker, alongside another such thread."""
        with suppress(Enough, Stopped):
            while partitions:
                try:
                    partition = partitions.popleft()
                except IndexError:
                    return  # The other thread took the last one.
                try:
                    self._search_partition(partition)
                except InspectionFailed as failed:
                    self._questions.check()
                    partition.is_failed = True
                    self._output.failed(partition, failed)

    def _search_partition(self, partition: SearchPartition) -> None:
        """Take one turn with a partition."""
        self._check_limit()
        broker = partition.leader
        row = self.progress.rows[partition.index]

        def waits(ahead: int) -> None:
            self._questions.check()
            row.waits = f"{ahead} in front" if ahead else ""

        with self._slots.place(f"{broker.host}:{broker.inspection_port}", waits=waits):
            if self._wanted.is_newest:
                self._search_backwards(partition)
            else:
                self._search_forwards(partition)

    def _share(self) -> int:
        """Return the hits of one turn: no partition may fill the limit before others had a turn."""
        return -(-self._wanted.limit // len(self.partitions))

    def _search_forwards(self, partition: SearchPartition) -> None:
        row = self.progress.rows[partition.index]
        hits, taken = min(self._share(), MAX_HITS), 0
        for line in self._lines(partition, partition.low, partition.high, hits=hits):
            if line["kind"] == "hit":
                self._send(line, partition)
                partition.low, taken = int(line["offset"]) + 1, taken + 1
                if taken < hits:
                    self._check_limit()
                # Otherwise the result follows at once, with the number of examined records.
            elif line["kind"] == "done":
                partition.low = self._end_of(partition, line, partition.high)
            else:
                partition.low = max(partition.low, int(line["next_offset"]))
            row.position, row.examined = partition.low, partition.low - row.first
        self._check_limit()

    def _search_backwards(self, partition: SearchPartition) -> None:
        row = self.progress.rows[partition.index]
        records, end = row.records, partition.high
        start = max(partition.low, partition.high - partition.stretch)
        hits, is_cut = self._hits_of(partition, start)
        if partition.stopped:
            return
        for hit in reversed(hits):
            self._send(hit, partition)
            partition.high = int(hit["offset"])
            self._check_limit()
        if is_cut:
            # Records before the kept hits are examined, and counted, once more.
            row.records = min(row.records, records + end - partition.high)
            # Hits are dense here: a long stretch would be searched again for every few hits.
            partition.stretch = FIRST_STRETCH
        else:
            partition.high = start
            partition.stretch *= GROWTH
        row.position, row.examined = partition.high, row.end - partition.high

    def _hits_of(self, partition: SearchPartition, start: int) -> tuple[deque[Line], bool]:
        """Return the last hits of a stretch, as many as fit; and whether some did not."""
        found: deque[Line] = deque()
        row, position, end = self.progress.rows[partition.index], start, partition.high
        examined, kept, is_cut = row.examined, 0, False
        while position < end and not partition.stopped:
            for line in self._lines(partition, position, end, hits=MAX_HITS):
                if line["kind"] == "hit":
                    found.append(line)
                    kept += _size(line)
                    while len(found) > 1 and (len(found) > self._share() or kept > MAX_KEPT_BYTES):
                        kept -= _size(found.popleft())
                        is_cut = True
                    continue
                reached = int(line["next_offset"])
                if line["kind"] == "done":
                    reached = position = self._end_of(partition, line, end)
                row.examined = examined + min(reached, end) - start
        return found, is_cut

    def _lines(
        self, partition: SearchPartition, start: int, end: int, *, hits: int
    ) -> Iterator[Line]:
        question = {
            "topic": self._wanted.topic,
            "partition": partition.index,
            "from": {"offset": start},
            "to": {"offset": end},
            "where": partition.condition,
            "max_hits": hits,
            "max_bytes": MAX_SCAN,
            "max_shown_bytes": self._wanted.shown_bytes,
        }
        return self._questions.lines(partition, question)

    def _send(self, hit: Line, partition: SearchPartition) -> None:
        with self._lock:
            if self.progress.hits >= self._wanted.limit:
                raise Enough
            self.progress.hits += 1
            self.progress.rows[partition.index].hits += 1
        self._pipe.put(self._output.write(*record_of(hit, self._wanted.topic, partition.index)))

    def _check_limit(self) -> None:
        if self.progress.hits >= self._wanted.limit:
            self._questions.stop()
            raise Enough

    def _end_of(self, partition: SearchPartition, line: Line, end: int) -> int:
        """Process a broker's result; return the offset that it reached."""
        for kind in ("damaged", "removed"):
            for first, next_offset in line[kind]:
                partition.lost += next_offset - first
                self._output.lost(partition, first, next_offset, LOST[kind])
        verdict, reached = line["verdict"], int(line["next_offset"])
        if verdict in STOPPED:
            partition.stopped = STOPPED[verdict]
        elif verdict != "limit":
            return end
        return reached


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
