"""Serves a page, a search or a tail as lines of JSON."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Final

from console.messages.browse import send_page
from console.messages.filter_language import Filter, filter_of
from console.messages.jobs import Job, Means, Visitor
from console.messages.lines import Forms, done_line, error_line
from console.messages.places import Places
from console.messages.question import Mode, Query, Question, question_of
from console.messages.search import send_hits
from console.messages.tail import Tail
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.pipe import Pipe, Stopped

NDJSON: Final = b"application/x-ndjson"


def stream(means: Means, query: Query, zone: tzinfo, _visitor: Visitor) -> Job:
    now = datetime.now(UTC)
    question = question_of(query, zone=zone, now=now)
    wanted = filter_of(question.filter, zone=zone, now=now)
    return Job(
        cluster=question.cluster,
        topic=question.topic,
        content_type=NDJSON,
        work=partial(_read, means, question, wanted),
    )


def _read(
    means: Means, question: Question, wanted: Filter | None, admission: Admission, pipe: Pipe
) -> Callable[[], Awaitable[None]] | None:
    """Send a page or hits; of a tail, only its begin."""
    order = means.order(admission, question, pipe)
    write = Forms(key=question.key, value=question.value).line
    with _reporting(pipe):
        if question.mode is Mode.TAIL:
            tail = Tail(admission, pipe, wanted=wanted, write=write)
            tail.begin(order)
            # Without the order, whose source has a client of its own.
            return partial(_follow, means, order.places, tail, pipe)
        if wanted is None:
            send_page(order, write=write)
        else:
            send_hits(order, wanted=wanted, ask=means.ask, slots=means.slots, write=write)
    return None


async def _follow(means: Means, places: Places, tail: Tail, pipe: Pipe) -> None:
    with _reporting(pipe):
        async with means.readers_of(places) as readers:
            await tail.follow(places.topic, readers)


@contextmanager
def _reporting(pipe: Pipe) -> Iterator[None]:
    """Send why the block has ended, unless it is complete."""
    try:
        yield
    except KafkaFailure as failed:
        pipe.put_last(error_line(str(failed), failed.next_step))
        pipe.put_last(done_line("failed", f"failed: {failed.message}", None))
    except Stopped as stopped:
        # The browser has left, unless the session or the web server has ended.
        pipe.put_last(done_line("stopped", f"stopped: {stopped}", None))
