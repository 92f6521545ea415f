"""What a thread does for one request: from a query to pieces in a pipe."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import Any, Final

from django.conf import settings

from brokers.cluster.image import Broker
from brokers.inspection.client import Inspection, InspectionFailed
from brokers.key_files import KeyFile
from console.events.hub import Owner
from console.messages.browse import Page
from console.messages.filter_language import Filter, filter_of
from console.messages.lines import Forms, done_line, error_line
from console.messages.opening import Order
from console.messages.pipe import Pipe, Stopped
from console.messages.places import NoSuchTopic, Places, places_of
from console.messages.question import BadQuestion, Mode, Query, Question, question_of
from console.messages.search import Ask, Search
from console.messages.slots import Slots
from console.messages.source import KafkaSource, Source
from console.messages.tail import Tail
from gateway.kafka.errors import KafkaFailure

NDJSON: Final = b"application/x-ndjson"
FIND_TOPIC: Final = "open the list of topics, and choose one"


class Refusal(Exception):
    """There is no answer, and nothing was put into the pipe: a status of HTTP, and why."""

    def __init__(self, status: int, message: str, next_step: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.next_step = next_step


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One request that was understood. `work` may raise Refusal before its first piece."""

    cluster: str
    topic: str
    work: Callable[[Pipe], None]
    content_type: bytes = NDJSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Jobs:
    """Makes jobs; a test gives other places, sources and brokers."""

    def __init__(
        self,
        *,
        places_of: Callable[[Question], Places] = places_of,
        source_of: Callable[[Places], Source] = KafkaSource,
        ask: Ask | None = None,
    ) -> None:
        self._places_of = places_of
        self._source_of = source_of
        self._ask: Ask = ask or AskBroker()
        self._slots = Slots()

    def stream(self, query: Query, zone: tzinfo, _owner: Owner, _address: str) -> Job:
        question = question_of(query, zone=zone)
        wanted = filter_of(question.filter, zone=zone)
        return Job(
            cluster=question.cluster,
            topic=question.topic,
            work=partial(self._stream, question, wanted),
        )

    def _stream(self, question: Question, wanted: Filter | None, pipe: Pipe) -> None:
        places = self._found(question)
        try:
            self._reader(question, wanted, places, pipe).run()
        except KafkaFailure as failed:
            pipe.put(error_line(str(failed), failed.next_step))
            pipe.put(done_line("failed", f"failed: {failed.message}", None))
        except Stopped as stopped:
            # Nobody listens any more, unless it is the session or the web server that has ended.
            pipe.put_last(done_line("stopped", f"stopped: {stopped}", None))

    def _reader(
        self, question: Question, wanted: Filter | None, places: Places, pipe: Pipe
    ) -> "Page | Search | Tail":
        write = Forms(key=question.key, value=question.value).line
        order = Order(question=question, places=places, source=self._source_of(places), pipe=pipe)
        if question.mode is Mode.TAIL:
            return Tail(order, wanted=wanted, write=write)
        if wanted is None:
            return Page(order, write=write)
        return Search(order, wanted=wanted, ask=self._ask, slots=self._slots, write=write)

    def _found(self, question: Question) -> Places:
        try:
            return self._places_of(question)
        except NoSuchTopic as missing:
            raise Refusal(404, str(missing), FIND_TOPIC) from None
        except BadQuestion as bad:
            raise Refusal(400, bad.message, bad.next_step) from None


class AskBroker:
    """Asks the inspection ports of brokers, with the key that all hosts of a cluster have."""

    def __init__(self) -> None:
        self._keys = KeyFile(settings.SAMSA_SECRETS / "inspection", monotonic=time.monotonic)

    def __call__(
        self,
        broker: Broker,
        question: Mapping[str, Any],
        *,
        on_open: Callable[[Callable[[], None]], None],
    ) -> Iterator[Mapping[str, Any]]:
        if not broker.inspection_port:
            raise InspectionFailed(f"broker {broker.id} has no inspection port")
        key = next(iter(self._keys.keys()), "")
        with Inspection(broker.host, broker.inspection_port, key) as inspection:
            yield from inspection.search(question, on_open=on_open)
