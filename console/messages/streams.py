"""Serves a page, a search or a tail as lines of JSON."""

from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Final

from console.messages.browse import Page
from console.messages.filter_language import Filter, filter_of
from console.messages.jobs import Job, Means, Visitor
from console.messages.lines import Forms, done_line, error_line
from console.messages.opening import Order
from console.messages.pipe import Pipe, Stopped
from console.messages.question import Mode, Query, Question, question_of
from console.messages.search import Search
from console.messages.tail import Tail
from gateway.kafka.errors import KafkaFailure

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


def _read(means: Means, question: Question, wanted: Filter | None, pipe: Pipe) -> None:
    order = means.order(question, pipe)
    try:
        _reader(means, order, wanted).run()
    except KafkaFailure as failed:
        pipe.put(error_line(str(failed), failed.next_step))
        pipe.put(done_line("failed", f"failed: {failed.message}", None))
    except Stopped as stopped:
        # The browser has left, unless the session or the web server has ended.
        pipe.put_last(done_line("stopped", f"stopped: {stopped}", None))


def _reader(means: Means, order: Order, wanted: Filter | None) -> Page | Search | Tail:
    write = Forms(key=order.question.key, value=order.question.value).line
    if order.question.mode is Mode.TAIL:
        return Tail(order, wanted=wanted, write=write)
    if wanted is None:
        return Page(order, write=write)
    return Search(order, wanted=wanted, ask=means.ask, slots=means.slots, write=write)
