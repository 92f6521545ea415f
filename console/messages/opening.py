"""Prepares a stream: its partitions and their offset ranges, and a plan in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from console.messages.lines import encoded, error_line, gap_line
from console.messages.pipe import Pipe
from console.messages.places import Places
from console.messages.question import Mode, Question
from console.messages.source import Source

CUT: Final = "the log ends before the last position: it was truncated, or the topic was recreated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A question, the location of its records, their source, and the destination."""

    question: Question
    places: Places
    source: Source
    pipe: Pipe
    # Receives lines that are not records; by default the browser does, between the records.
    hears: Callable[[bytes], None] | None = None

    def tell(self, line: bytes) -> None:
        """Send a line that is not a record."""
        (self.hears or self.pipe.put)(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The offsets to read from a partition, [first, end), within those that it holds."""

    partition: int
    log_start: int
    log_end: int
    first: int
    end: int

    def from_offset(self, offset: int) -> "Range":
        """Return the rest of the range from an offset on."""
        return replace(self, first=min(max(self.first, offset), self.end))


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


def tell_start(order: Order, ranges: Sequence[Range], *, plan: str, filter_text: str = "") -> None:
    order.tell(
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
        order.tell(
            error_line(
                reason,
                "start the broker, or look at the other partitions",
                partition=partition,
            )
        )


def _tell_lost_of_tail(order: Order, one: Range, at: int | None) -> None:
    """Report what a resumed tail does not show: such a partition is followed from its end."""
    if at is None and one.log_start < one.log_end:
        reason = "it was not followed until now, and is from its end on"
        order.tell(gap_line(one.partition, one.log_start, one.log_end, reason))
    elif at is not None and at > one.log_end:
        order.tell(gap_line(one.partition, one.log_end, at, CUT, goes_on=one.log_end))


def tell_lost(order: Order, ranges: Sequence[Range]) -> None:
    """Report requested offsets that no longer exist."""
    question, asked = order.question, order.question.cursor
    for one in ranges:
        if question.mode is Mode.TAIL and asked:
            _tell_lost_of_tail(order, one, asked.get(one.partition))
        wanted = asked.get(one.partition, question.start if question.mode is Mode.OFFSET else None)
        if question.mode is not Mode.NEWEST and wanted is not None and wanted < one.log_start:
            order.tell(
                gap_line(
                    one.partition,
                    wanted,
                    one.log_start,
                    "deleted by retention, or on request of a client",
                )
            )
