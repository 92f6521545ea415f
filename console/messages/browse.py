"""Sends a page of records to a browser, and says in words what is read and how it has ended."""

import time
from collections.abc import Callable, Sequence

from console.messages.lines import done_line
from console.messages.opening import Order, ranges_of, send_lost, send_start
from console.messages.question import Mode, Question, written_cursor
from gateway.kafka.readers.pages import PAGE, Bounds, Page
from gateway.kafka.readers.pipe import Output
from gateway.kafka.readers.ranges import Range
from gateway.kafka.values import Record

Write = Callable[[Record], bytes]


def send_page(
    order: Order,
    *,
    write: Write,
    bounds: Bounds = PAGE,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Read and send one page, in a thread."""
    ranges = ranges_of(order)
    page = Page(
        order.source,
        ranges,
        Output(pipe=order.pipe, write=write, report=order.report),
        limit=order.question.limit,
        is_newest=order.question.mode is Mode.NEWEST,
        bounds=bounds,
        clock=clock,
    )
    send_start(order, ranges, plan=plan_of(order.question, ranges))
    send_lost(order, ranges)
    page.run()
    order.report(page.progress)
    order.send(_done(order, page, len(ranges)))


def _done(order: Order, page: Page, partitions: int) -> bytes:
    cursor = page.cursor
    mode = "newest" if order.question.mode is Mode.NEWEST else "offset"
    next_page = {"mode": mode, "cursor": written_cursor(cursor)} if cursor else None
    dark = len(order.places.dark)
    found = f"{page.sent:,} record{'' if page.sent == 1 else 's'}"
    if dark:
        total = dark + partitions
        sentence = f"{found}; {dark} of {total} partitions could not be read"
        return done_line("failed", sentence, next_page)
    if page.stopped:
        return done_line("stopped", f"stopped after {found}: {page.stopped}", next_page)
    if cursor:
        return done_line("limit", f"{found}, as many as were asked for", next_page)
    within = "" if order.question.window.is_open else " in this time range"
    return done_line("complete", f"complete: {found}, there are no more{within}", None)


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
