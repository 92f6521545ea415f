"""What a thread does for one request: from a query to lines in a pipe."""

from collections.abc import Callable
from datetime import tzinfo
from typing import Final

from console.events.hub import Owner
from console.messages.browse import Page
from console.messages.lines import Forms, done_line, error_line, record_line
from console.messages.pipe import Pipe, Stopped
from console.messages.places import NoSuchTopic, Places, places_of
from console.messages.question import BadQuestion, Query, Question, question_of
from console.messages.source import KafkaSource, Source
from gateway.kafka.errors import KafkaFailure

NDJSON: Final = b"application/x-ndjson"
LOCATE_NEXT: Final = "open the list of topics, and choose one"


class Job:
    """One request. `refusal` is set before anything was put: a status, and why."""

    content_type = NDJSON
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __init__(self, cluster: str, topic: str) -> None:
        self.cluster = cluster
        self.topic = topic
        self.refusal: tuple[int, str, str] | None = None

    def run(self, pipe: Pipe) -> None:
        raise NotImplementedError

    def fail(self, pipe: Pipe) -> None:
        """Tell the browser of a failure that nobody expected."""
        try:
            pipe.put(done_line("failed", "the web server failed; its log says why", None))
        except Stopped:
            return


class StreamJob(Job):
    """Lines of a stream."""

    def __init__(self, question: Question, jobs: "Jobs") -> None:
        super().__init__(question.cluster, question.topic)
        self._question = question
        self._jobs = jobs

    def run(self, pipe: Pipe) -> None:
        try:
            places = self._jobs.places_of(self._question)
        except NoSuchTopic as missing:
            self.refusal = (404, str(missing), LOCATE_NEXT)
            return
        except BadQuestion as bad:
            self.refusal = (400, bad.message, bad.next_step)
            return
        try:
            self._read(places, pipe)
        except KafkaFailure as failed:
            pipe.put(error_line(str(failed), failed.next_step))
            pipe.put(done_line("failed", f"failed: {failed.message}", None))
        except Stopped as stopped:
            # Nobody listens any more, but where the session or the web server has ended.
            pipe.put_last(done_line("stopped", f"stopped: {stopped}", None))

    def _read(self, places: Places, pipe: Pipe) -> None:
        question = self._question
        forms = Forms(key=question.key, value=question.value)
        Page(
            question,
            places,
            self._jobs.source_of(places),
            pipe,
            write=lambda record: record_line(record, forms),
        ).run()


class Jobs:
    """Makes jobs; a test gives other places and sources."""

    def __init__(
        self,
        *,
        places_of: Callable[[Question], Places] = places_of,
        source_of: Callable[[Places], Source] = KafkaSource,
    ) -> None:
        self.places_of = places_of
        self.source_of = source_of

    def stream(self, query: Query, zone: tzinfo, _owner: Owner, _address: str) -> Job:
        question = question_of(query, zone=zone)
        return StreamJob(question, self)
