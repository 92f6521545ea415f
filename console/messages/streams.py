"""Serves a page, a search or a tail as lines of JSON."""

from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Final

from console.messages.browse import send_page
from console.messages.filter_language import Filter, filter_of
from console.messages.jobs import Job, Means, Run, Visitor
from console.messages.lines import Forms, done_line, error_line
from console.messages.places import Places
from console.messages.question import Mode, Query, Question, question_of
from console.messages.search import send_hits
from console.messages.tail import Tail
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.readers.pipe import Stopped

NDJSON: Final = b"application/x-ndjson"


def stream(means: Means, query: Query, zone: tzinfo, _visitor: Visitor) -> Job:
    now = datetime.now(UTC)
    question = question_of(query, zone=zone, now=now)
    wanted = filter_of(question.filter, zone=zone, now=now)
    return Job(
        cluster=question.cluster,
        topic=question.topic,
        content_type=NDJSON,
        work=partial(_work, means, question, wanted),
    )


async def _work(means: Means, question: Question, wanted: Filter | None, run: Run) -> None:
    send = _tail if question.mode is Mode.TAIL else _read
    try:
        await send(means, question, wanted, run)
    except KafkaFailure as failed:
        run.pipe.put_last(error_line(str(failed), failed.next_step))
        run.pipe.put_last(done_line("failed", f"failed: {failed.message}", None))
    except Stopped as stopped:
        # The browser has left, unless the session or the web server has ended.
        run.pipe.put_last(done_line("stopped", f"stopped: {stopped}", None))


async def _read(means: Means, question: Question, wanted: Filter | None, run: Run) -> None:
    def read() -> None:
        order = means.order(run, question)
        write = _forms(question).line
        if wanted is None:
            send_page(order, write=write)
        else:
            send_hits(order, wanted=wanted, ask=means.ask, slots=means.slots, write=write)

    await run.in_thread(read)


async def _tail(means: Means, question: Question, wanted: Filter | None, run: Run) -> None:
    tail = Tail(run.admission, run.pipe, wanted=wanted, write=_forms(question).line)

    def begin() -> Places:
        # Its source, with a client of its own, is needed no longer than this.
        order = means.order(run, question)
        tail.begin(order)
        return order.places

    places = await run.in_thread(begin)
    async with means.readers_of(places) as readers:
        await tail.follow(places.topic, readers, run.in_thread)


def _forms(question: Question) -> Forms:
    return Forms(key=question.key, value=question.value)
