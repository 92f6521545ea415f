"""Sends the hits of a search to a browser, and says in words what is searched and how it ended."""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from brokers.inspection.client import InspectionFailed
from console.messages.filter_language import Filter
from console.messages.lines import done_line, error_line, gap_line
from console.messages.opening import Order, ranges_of, send_lost, send_start
from console.messages.question import Mode, written_cursor
from gateway.kafka.readers.hits import (
    BUSY,
    SHOWN_BYTES,
    Ask,
    Search,
    SearchPartition,
    Sizes,
    Wanted,
)
from gateway.kafka.readers.pipe import Output
from gateway.kafka.readers.ranges import Range
from gateway.kafka.readers.slots import Slots
from gateway.kafka.values import Record

Write = Callable[[Record, Sizes], bytes]
# The status of a broker that does not lead the partition.
ELSEWHERE: Final = 404


def send_hits(
    order: Order,
    *,
    wanted: Filter,
    ask: Ask,
    slots: Slots,
    write: Write,
    shown_bytes: int = SHOWN_BYTES,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Search and send hits, in a thread."""
    ranges = _ranges(order, wanted)
    partitions = [found for one in ranges if (found := _partition(order, wanted, one)) is not None]
    search = Search(
        order.admission,
        Wanted(
            topic=order.places.topic,
            partitions=partitions,
            limit=order.question.limit,
            is_newest=order.question.mode is Mode.NEWEST,
            shown_bytes=shown_bytes,
        ),
        Output(
            pipe=order.pipe,
            write=write,
            report=partial(order.report, is_search=True),
            failed=lambda one, failed: order.send(_failure(one, failed)),
            lost=lambda one, *gap: order.send(gap_line(one.index, *gap)),
        ),
        ask=ask,
        slots=slots,
        clock=clock,
    )
    send_start(order, ranges, plan=_plan(order, search), filter_text=wanted.text)
    send_lost(order, ranges)
    search.run()
    order.report(search.progress, is_search=True)
    order.send(_done(order, search))


def _ranges(order: Order, wanted: Filter) -> list[Range]:
    ranges = ranges_of(order)
    since, open_ranges = wanted.since_ms, [one for one in ranges if one.first < one.end]
    if since is None or not open_ranges:
        return ranges
    # Exact, because the first record of that time precedes all later ones.
    starts = order.source.at_time([one.partition for one in open_ranges], since)
    return [one.from_offset(starts.get(one.partition, one.first)) for one in ranges]


def _partition(order: Order, wanted: Filter, one: Range) -> SearchPartition | None:
    """Return the search of a partition; None if none of its records can match."""
    condition = wanted.of(one.partition)
    if condition is False:
        return None
    return SearchPartition(
        index=one.partition,
        leader=order.places.leaders[one.partition],
        condition=None if condition is True else condition,
        low=one.first,
        high=one.end,
    )


def _plan(order: Order, search: Search) -> str:
    partitions = search.partitions
    brokers = len({one.leader.id for one in partitions})
    records = sum(one.high - one.low for one in partitions)
    newest = order.question.mode is Mode.NEWEST
    first = "from the newest on" if newest else "from the oldest on"
    on = "1 broker" if brokers == 1 else f"{brokers} brokers"
    of = "1 partition" if len(partitions) == 1 else f"{len(partitions):,} partitions"
    return (
        f"look through up to {records:,} offsets of {of} on {on},"
        f" {first}, until {order.question.limit:,} are found"
    )


def _failure(partition: SearchPartition, failed: InspectionFailed) -> bytes:
    broker = partition.leader
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
    return error_line(str(failed), step, partition=partition.index)


def _done(order: Order, search: Search) -> bytes:
    cursor, progress, partitions = search.cursor, search.progress, search.partitions
    mode = "newest" if order.question.mode is Mode.NEWEST else "offset"
    following = {"mode": mode, "cursor": written_cursor(cursor)} if cursor else None
    hits = f"{progress.hits:,} hit{'' if progress.hits == 1 else 's'}"
    found = f"{hits} in {progress.records:,} records"
    failed = sum(one.is_failed for one in partitions) + len(order.places.dark)
    lost = sum(one.lost for one in partitions)
    if failed:
        total = len(partitions) + len(order.places.dark)
        sentence = f"{found}; {failed} of {total} partitions could not be searched"
        return done_line("failed", sentence, following)
    if progress.hits >= order.question.limit and following:
        return done_line("limit", f"{found}, as many as were asked for", following)
    reasons = {one.stopped for one in partitions if one.stopped}
    if reasons:
        sentence = f"stopped at {progress.share} %: {found}; {' and '.join(sorted(reasons))}"
        return done_line("stopped", sentence, following)
    if lost:
        return done_line("failed", f"{found}; {lost:,} offsets could not be read", following)
    return done_line("complete", f"complete: {found}", None)
