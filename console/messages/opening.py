"""Prepares a stream: its partitions and their offset ranges, and a plan in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from console.messages.lines import encoded, error_line, gap_line, progress_line
from console.messages.places import Places
from console.messages.question import Mode, Question
from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.pipe import Pipe
from gateway.kafka.readers.progress import Progress
from gateway.kafka.readers.ranges import Range, Source
from gateway.kafka.readers.values import GapReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A question, the location of its records, their source, and the destination."""

    admission: Admission
    question: Question
    places: Places
    source: Source
    pipe: Pipe
    # Receives lines that are not records; by default the browser does, between the records.
    hears: Callable[[bytes], None] | None = None

    def send(self, line: bytes) -> None:
        """Send a line that is not a record."""
        (self.hears or self.pipe.put)(line)

    def report(self, progress: Progress, *, is_search: bool = False) -> None:
        self.send(progress_line(progress, is_search=is_search))


def ranges_of(order: Order) -> list[Range]:
    """Ask the brokers where the question starts and ends in each readable partition."""
    question, source = order.question, order.source
    partitions = order.places.partitions
    if not partitions:
        return []
    bounds = source.bounds(partitions)
    since, until = question.window.since, question.window.until
    starts = {} if since is None else source.at_time(partitions, since)
    ends = {} if until is None else source.at_time(partitions, until)
    return [
        _range(question, index, bounds[index], starts.get(index), ends.get(index))
        for index in partitions
    ]


def _range(
    question: Question, index: int, bounds: tuple[int, int], start: int | None, end: int | None
) -> Range:
    """Return what is left to read of a partition, whose time range is from start to end."""
    log_start, log_end = bounds
    last = log_end if end is None else min(max(end, log_start), log_end)
    first = log_start if start is None else min(max(start, log_start), last)
    # A page after another one continues where that one ended; a partition that the cursor omits was
    # read to its end.
    if question.mode is Mode.NEWEST:
        if question.cursor:
            last = min(last, max(first, question.cursor.get(index, first)))
    elif question.cursor or question.mode is Mode.TAIL:
        first = question.cursor.get(index, last)
    elif question.mode is Mode.OFFSET:
        first = question.start
    return Range(
        partition=index,
        log_start=log_start,
        log_end=log_end,
        first=min(max(first, log_start), last),
        end=last,
    )


def send_start(order: Order, ranges: Sequence[Range], *, plan: str, filter_text: str = "") -> None:
    order.send(
        encoded(
            {
                "type": "start",
                "partitions": [
                    {
                        "partition": one.partition,
                        "start": str(one.log_start),
                        "end": str(one.log_end),
                        "from": str(one.first),
                        "to": str(one.end),
                    }
                    for one in ranges
                ],
                "filter": filter_text,
                "plan": plan,
            }
        )
    )
    for partition, reason in sorted(order.places.dark.items()):
        order.send(
            error_line(
                reason,
                "start the broker, or look at the other partitions",
                partition=partition,
            )
        )


def _send_lost_of_tail(order: Order, one: Range, at: int | None) -> None:
    """Report what a resumed tail does not show: such a partition is followed from its end."""
    if at is None and one.log_start < one.log_end:
        reason = "the tail did not follow this partition before, and begins at its end"
        order.send(gap_line(one.partition, one.log_start, one.log_end, reason))
    elif at is not None and at > one.log_end:
        order.send(
            gap_line(one.partition, one.log_end, at, GapReason.CUT.value, goes_on=one.log_end)
        )


def send_lost(order: Order, ranges: Sequence[Range]) -> None:
    """Report requested offsets that no longer exist."""
    question, asked = order.question, order.question.cursor
    for one in ranges:
        if question.mode is Mode.TAIL and asked:
            _send_lost_of_tail(order, one, asked.get(one.partition))
        wanted = asked.get(one.partition, question.start if question.mode is Mode.OFFSET else None)
        if question.mode is not Mode.NEWEST and wanted is not None and wanted < one.log_start:
            order.send(
                gap_line(
                    one.partition,
                    wanted,
                    one.log_start,
                    "deleted by retention, or on request of a client",
                )
            )
