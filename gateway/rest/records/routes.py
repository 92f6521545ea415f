"""Declares reads without a consumer, and limits how many run at a time."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Final, Protocol

from gateway.access.callers import Caller
from gateway.kafka.readers.admission import Admission, NothingReadable, admit, admit_by_pattern
from gateway.kafka.readers.engine import Readers, TooManyReadings
from gateway.kafka.readers.following import Follow
from gateway.kafka.topic_pattern import BadPattern, TopicPattern
from gateway.kafka.values import Place
from gateway.rest.calls import JSON, Call
from gateway.rest.codes import ApiError, Code
from gateway.rest.readers import reader_of
from gateway.rest.records import read
from gateway.rest.records.question import MAX_PARTITIONS, Question, bad_request, question_of
from gateway.rest.records.stream import Form, Reason, Stream
from gateway.rest.route import Route
from gateway.rest.seats import Ledger, Seats
from gateway.rest.worker import Worker

# Each buffers the records that it has read, some megabytes at most.
MAX_READS: Final = 100
# Each buffers one piece that is being written.
MAX_STREAMS: Final = 2_000
# Keeps one caller from blocking others.
MAX_READS_EACH: Final = 50
MAX_STREAMS_EACH: Final = 500
# Partitions have a limit too; this one keeps the check of rights fast.
MAX_TOPICS: Final = 50
DRAINING: Final = Reason(name="draining", message="this worker is about to end: connect again")


class Watched(Protocol):
    """Returns within five seconds when a caller may no longer do what it has started."""

    async def watch(self, caller: Caller, holds: Callable[[Caller], bool]) -> ApiError: ...


class Reads:
    """All reads of a worker. Belongs to its loop, and ends with the worker."""

    def __init__(
        self,
        readers: Readers,
        callers: Watched,
        opened: Callable[[str], AbstractContextManager[None]] = lambda _key: nullcontext(),
        *,
        ledger: Ledger | None = None,
    ) -> None:
        self._opened = opened
        self._readers = readers
        self._callers = callers
        self._reads = Seats("reads", most=MAX_READS, each=MAX_READS_EACH, ledger=ledger)
        self._seats = Seats("streams", most=MAX_STREAMS, each=MAX_STREAMS_EACH, ledger=ledger)
        self._streams: set[Stream] = set()

    async def records(self, call: Call) -> None:
        """Answer with records of a topic, as one body or a stream, as the caller accepts."""
        topics = [call.parameters["topic"]]
        form = form_of(call.headers.get("accept", ""))
        await self._answer_topics(call, topics, call.query(), form)

    async def events(self, call: Call) -> None:
        """Answer with a stream of events of the topics in the query."""
        query = call.query()
        if "pattern" in query:
            await self._answer_pattern(call, query)
            return
        topics = query.pop("topics", "").split(",")
        if not all(topics) or len(topics) > MAX_TOPICS:
            raise bad_request(
                f"topics is missing: name up to {MAX_TOPICS}, like topics=orders,payments, or give"
                " a pattern"
            )
        await self._answer_topics(call, topics, query, Form.EVENTS)

    async def _answer_pattern(self, call: Call, query: dict[str, str]) -> None:
        text = query.pop("pattern")
        if both := sorted(query.keys() & {"topics", "partition"}):
            raise bad_request(f"a pattern means all partitions of its topics: leave out {both[0]}")
        reader = reader_of(call.caller, call.cluster_id)
        try:
            admission = admit_by_pattern(reader)
        except NothingReadable:
            raise reader.refusal(text) from None
        try:
            pattern = TopicPattern(text)
        except BadPattern as error:
            raise bad_request(str(error)) from None
        await self._answer(call, admission, (), query, Form.EVENTS, pattern)

    async def _answer_topics(
        self, call: Call, topics: Sequence[str], query: Mapping[str, str], form: Form | None
    ) -> None:
        admission = admit(reader_of(call.caller, call.cluster_id), topics)
        await self._answer(call, admission, topics, query, form)

    async def _answer(
        self,
        call: Call,
        admission: Admission,
        topics: Sequence[str],
        query: Mapping[str, str],
        form: Form | None,
        pattern: TopicPattern | None = None,
    ) -> None:
        last_event_id = "" if form is None else call.headers.get("last-event-id", "")
        question = question_of(
            topics,
            query,
            is_stream=form is not None,
            last_event_id=last_event_id,
            pattern=pattern,
        )
        try:
            if form is None:
                with self._reads.taken(call.caller):
                    await read.answer(call, admission, question, self._readers)
            else:
                with self._seats.taken(call.caller), self._opened(call.caller.key):
                    await self._stream(call, admission, question, form)
        except TooManyReadings as full:
            raise ApiError(Code.TOO_MANY, str(full), retry_after_s=1) from None

    def drain(self) -> None:
        for stream in self._streams:
            stream.end(DRAINING)

    async def close(self) -> None:
        """Do nothing: nothing is left once all streams have ended."""

    async def _stream(
        self, call: Call, admission: Admission, question: Question, form: Form
    ) -> None:
        if question.pattern is None:
            found = await self._readers.partitions(question.topics)
        else:
            found = await self._readers.matching(question.pattern, admission.readable)

        def reserve(_places: Sequence[Place]) -> int:
            return max(0, MAX_PARTITIONS - len(reading.positions))

        # A request that names partitions does not follow new ones.
        follow = None
        if question.partitions is None:
            follow = Follow(topics=question.topics, pattern=question.pattern, reserve=reserve)
        starts = question.starts(found)
        reading = await self._readers.open(admission, starts, follow=follow)
        try:

            def holds(again: Caller) -> bool:
                read = {place.topic for place in reading.positions}
                return admission.renew(reader_of(again, call.cluster_id), read)

            watch = self._callers.watch(call.caller, holds)
            stream = Stream(call, question, reading, form, watch=watch)
            self._streams.add(stream)
            try:
                await stream.run()
            finally:
                self._streams.discard(stream)
        finally:
            reading.close()


class Room:
    """Created with the first call: a worker is created before its loop runs."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @cached_property
    def reads(self) -> Reads:
        return self._worker.held(
            Reads(
                self._worker.readers,
                self._worker.callers,
                self._worker.traffic.opened,
                ledger=self._worker.ledger,
            )
        )

    async def records(self, call: Call) -> None:
        await self.reads.records(call)

    async def events(self, call: Call) -> None:
        await self.reads.events(call)


def form_of(accept: str) -> Form | None:
    """Return the stream format that a caller accepts; None for a complete answer."""
    wanted = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    for form in Form:
        if form.value in wanted:
            return form
    return None


TAG: Final = "Records"
# An addition to the published interfaces. Rows without rights: readers admit their callers.
OUR_ROUTES: Final = (
    Route(
        method="GET",
        path="/topics/{topic}/records",
        room=Room,
        handler=Room.records,
        tag=TAG,
        summary="Read records of a topic without a group: once, or as a stream.",
        says="As JSON in one answer, or, until the caller disconnects, as NDJSON or events, which "
        "continue after `Last-Event-ID`.",
        gives=(JSON, *(form.value for form in Form)),
        query=("partition", "from", "max", "max_bytes", "wait", "format"),
    ),
)
EVENT_ROUTES: Final = (
    Route(
        method="GET",
        path="/",
        room=Room,
        handler=Room.events,
        tag=TAG,
        summary="Stream records of topics as server-sent events, until the caller disconnects.",
        says="`topics` names them, with commas between, or `pattern` selects some of those that "
        "the caller may read; the stream continues after `Last-Event-ID`.",
        gives=(Form.EVENTS.value,),
        query=("topics", "pattern", "from", "max", "wait", "format"),
    ),
)
