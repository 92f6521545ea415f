"""Reads a page of records: the newest ones, backwards, or those from a position on.

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

from gateway.kafka.readers.pipe import Output
from gateway.kafka.readers.progress import Progress, Row
from gateway.kafka.readers.ranges import Range, Source
from gateway.kafka.readers.values import content_size
from gateway.kafka.values import Record, Span

# The first window of a partition, and the growth of later ones. Records of 18 MB are not read by
# the dozen if eight were requested.
FIRST_WINDOW: Final = 8
GROWTH: Final = 4
# Formatted records that wait to be put in order, for each page.
MAX_KEPT_BYTES: Final = 16 * 1024 * 1024
TOO_MUCH: Final = f"{MAX_KEPT_BYTES // 1024**2} MB wait for their order"


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
class PagePartition:
    """One partition of a page. `kept` is in the order in which records are sent."""

    range: Range
    position: int  # the offset reached; it decreases in mode newest
    kept: list[Kept] = field(default_factory=list)
    sent: int = 0  # of those kept
    window: int = FIRST_WINDOW
    is_read: bool = False

    @property
    def index(self) -> int:
        return self.range.partition

    @property
    def head(self) -> Kept | None:
        return self.kept[self.sent] if self.sent < len(self.kept) else None


@dataclass(slots=True, kw_only=True)
class Window:
    """The records of a range of offsets; if it is cut, the first ones are missing."""

    kept: deque[Kept] = field(default_factory=deque)
    is_cut: bool = False


class Page:
    """One page; call `run` once, in a thread. It raises Stopped if the pipe is stopped."""

    def __init__(
        self,
        source: Source,
        ranges: Sequence[Range],
        output: Output,
        *,
        limit: int,
        is_newest: bool,
        bounds: Bounds = PAGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._limit = limit
        self._is_newest = is_newest
        self._output = output
        self._pipe = output.pipe
        self._bounds = bounds
        self._kept_bytes = 0
        # Why it has ended early; empty if it has not.
        self.stopped = ""
        # The records of the page.
        self.sent = 0
        starts = [one.end if is_newest else one.first for one in ranges]
        self._partitions = [
            PagePartition(range=one, position=start, is_read=one.first >= one.end)
            for one, start in zip(ranges, starts, strict=True)
        ]
        rows = [
            Row(partition=one.partition, first=one.first, end=one.end, position=start)
            for one, start in zip(ranges, starts, strict=True)
        ]
        self.progress = Progress(rows, clock=clock)

    def run(self) -> None:
        if self._is_newest:
            self._read_backwards()
        else:
            self._read_forwards()

    @property
    def cursor(self) -> dict[int, int]:
        """Return where the next page starts; partitions that are read to their end are left out."""
        cursor = {}
        for partition in self._partitions:
            if self._is_newest:
                position = (
                    partition.kept[partition.sent - 1].offset
                    if partition.sent
                    else partition.range.end
                )
                if partition.head is None:
                    position = partition.position
                has_more = position > partition.range.first
            else:
                position = partition.head.offset if partition.head else partition.position
                has_more = position < partition.range.end
            if has_more:
                cursor[partition.index] = position
        return cursor

    # -- backwards -------------------------------------------------------------------------------

    def _read_backwards(self) -> None:
        wanting = [partition for partition in self._partitions if not partition.is_read]
        while wanting and not self._is_enough():
            windows = {partition.index: self._window(partition) for partition in wanting}
            found = self._read(windows)
            for partition in wanting:
                self._prepend(partition, windows[partition.index], found)
            wanting = self._find_unsettled()
        for partition in _merge(self._partitions, self._limit):
            self._send(partition)

    def _window(self, partition: PagePartition) -> Span:
        start = max(partition.range.first, partition.position - partition.window)
        return Span(partition=partition.index, start=start, end=partition.position)

    def _read(self, windows: Mapping[int, Span]) -> dict[int, Window]:
        """Read windows to their ends; keep the last records of each, as many as a page has."""
        found = {index: Window() for index in windows}
        with self._source.reading(list(windows.values())) as reader:
            for batch in reader.batches():
                self._pipe.check()
                by_partition: dict[int, list[Record]] = {}
                for record in batch:
                    by_partition.setdefault(record.partition, []).append(record)
                for index, records in by_partition.items():
                    self._count(index, records)
                    self._take(found[index], records)
                if self.progress.is_due():
                    self._output.report(self.progress)
                if self.progress.seconds() >= self._bounds.seconds:
                    return {}
        return found

    def _take(self, window: Window, records: Sequence[Record]) -> None:
        """Keep the last records: as many as a page has, and as fit into memory."""
        limit = self._limit
        # A window may be full although earlier ones were nearly empty: records that drop out at its
        # other end are not formatted first.
        window.is_cut = window.is_cut or len(records) > limit
        window.kept.extend(self._keep(record) for record in records[-limit:])
        while len(window.kept) > limit or (window.kept and self._is_too_much(window)):
            self._kept_bytes -= len(window.kept.popleft().line)
            window.is_cut = True
        if records and not window.kept:
            # Even the last record does not fit beside those of others: it is for the next page.
            self.stopped = TOO_MUCH

    def _is_too_much(self, window: Window) -> bool:
        """Tell whether to drop lines; one line is kept, however long it is."""
        is_only = len(window.kept[0].line) == self._kept_bytes
        return self._kept_bytes > MAX_KEPT_BYTES and not is_only

    def _prepend(self, partition: PagePartition, span: Span, found: Mapping[int, Window]) -> None:
        if span.partition not in found:
            return  # The newest records, at its end, were not read.
        window = found[span.partition]
        partition.kept += reversed(window.kept)
        if window.is_cut:
            assert span.end is not None, "the windows of a page have both ends"
            partition.position = window.kept[0].offset if window.kept else span.end
        else:
            partition.position = span.start
        partition.window *= GROWTH
        partition.is_read = partition.position <= partition.range.first
        self.progress.rows[span.partition].position = partition.position

    def _find_unsettled(self) -> list[PagePartition]:
        """Return partitions that may have more of the newest records than were read."""
        turns = _merge(self._partitions, self._limit)
        chosen = Counter(partition.index for partition in turns)
        is_short = len(turns) < self._limit
        return [
            partition
            for partition in self._partitions
            # Nothing after the last chosen record is needed.
            if not partition.is_read
            and (
                is_short
                or (chosen[partition.index] == len(partition.kept) and partition is not turns[-1])
            )
        ]

    # -- forwards --------------------------------------------------------------------------------

    def _read_forwards(self) -> None:
        spans = [
            Span(partition=partition.index, start=partition.position, end=partition.range.end)
            for partition in self._partitions
            if not partition.is_read
        ]
        if not spans:
            return
        partitions = {partition.index: partition for partition in self._partitions}
        with self._source.reading(spans) as reader:
            for batch in reader.batches():
                self._pipe.check()
                for record in batch:
                    self._append(partitions[record.partition], record)
                self._send_ripe()
                if self.sent >= self._limit:
                    return
                if self._is_enough():
                    # Send even records that others may precede: a partition that delivers nothing
                    # for so long would block every page like this one.
                    self._send_ripe(is_last=True)
                    return
                for partition in self._partitions:
                    if len(partition.kept) - partition.sent >= self._limit - self.sent:
                        reader.finish(partition.index)
                if self.progress.is_due():
                    self._output.report(self.progress)
        for partition in self._partitions:
            # A partition that was finished early has enough records to fill the page.
            if len(partition.kept) - partition.sent < self._limit - self.sent:
                partition.is_read, partition.position = True, partition.range.end
                self.progress.rows[partition.index].position = partition.position
        self._send_ripe(is_last=True)

    def _append(self, partition: PagePartition, record: Record) -> None:
        if len(partition.kept) - partition.sent < self._limit - self.sent:
            partition.kept.append(self._keep(record))
            self._count(record.partition, [record])
            partition.position = record.offset + 1
            partition.is_read = partition.position >= partition.range.end
            self.progress.rows[record.partition].position = partition.position

    def _send_ripe(self, *, is_last: bool = False) -> None:
        """Send records that no later one can precede."""
        heads = [
            (partition.head.timestamp_ms, number)
            for number, partition in enumerate(self._partitions)
            if partition.head
        ]
        heapify(heads)
        is_blind = any(
            partition.head is None and not partition.is_read for partition in self._partitions
        )
        while heads and self.sent < self._limit:
            if is_blind and not is_last and self._kept_bytes < MAX_KEPT_BYTES:
                return
            number = heads[0][1]
            partition = self._partitions[number]
            self._send(partition)
            if partition.head:
                heapreplace(heads, (partition.head.timestamp_ms, number))
            else:
                heappop(heads)
                is_blind = is_blind or not partition.is_read

    # -- both ------------------------------------------------------------------------------------

    def _keep(self, record: Record) -> Kept:
        line = self._output.write(record)
        self._kept_bytes += len(line)
        return Kept(record.timestamp_ms or 0, record.offset, line)

    def _count(self, index: int, records: Sequence[Record]) -> None:
        row = self.progress.rows[index]
        row.records += len(records)
        row.size += sum(map(content_size, records))

    def _send(self, partition: PagePartition) -> None:
        kept = partition.kept[partition.sent]
        self._pipe.put(kept.line)
        # Sent lines are no longer needed; their offsets are, for the cursor.
        partition.kept[partition.sent] = kept._replace(line=b"")
        self._kept_bytes -= len(kept.line)
        partition.sent += 1
        self.sent += 1
        self.progress.hits += 1

    def _is_enough(self) -> bool:
        """Whether the page has read so much that it ends here."""
        if self.progress.size >= self._bounds.size:
            self.stopped = f"{self._bounds.size // 1024**2} MB were read"
        elif self.progress.seconds() >= self._bounds.seconds:
            self.stopped = f"{self._bounds.seconds:g} s are over"
        elif self._kept_bytes >= MAX_KEPT_BYTES:
            self.stopped = TOO_MUCH
        return bool(self.stopped)


def _merge(partitions: Sequence[PagePartition], limit: int) -> list[PagePartition]:
    """Return the partitions in the order of their newest records, up to a number of turns."""
    heads = [
        (-partition.kept[0].timestamp_ms, number, 0)
        for number, partition in enumerate(partitions)
        if partition.kept
    ]
    heapify(heads)
    turns: list[PagePartition] = []
    while heads and len(turns) < limit:
        _, number, position = heads[0]
        partition = partitions[number]
        turns.append(partition)
        if position + 1 < len(partition.kept):
            heapreplace(heads, (-partition.kept[position + 1].timestamp_ms, number, position + 1))
        else:
            heappop(heads)
    return turns
