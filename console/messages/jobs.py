"""Defines the work for one request, and its dependencies: places, sources, brokers."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from brokers.cluster.image import Broker
from brokers.inspection.client import Inspection, InspectionFailed
from brokers.key_files import KeyFile
from console.messages.opening import Order
from console.messages.places import NoSuchTopic, Places, places_of
from console.messages.question import BadQuestion, Question
from console.messages.sources import Engines, source_of
from console.messages.tail import Readers
from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.hits import Ask
from gateway.kafka.readers.pipe import Pipe
from gateway.kafka.readers.ranges import Source
from gateway.kafka.readers.slots import Slots

FIND_TOPIC: Final = "open the list of topics, and choose one"


class Refusal(Exception):
    """No answer is possible, and nothing was sent: an HTTP status, and the reason."""

    def __init__(self, status: int, message: str, next_step: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.next_step = next_step


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """The user of a request, for the audit."""

    user_id: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One parsed request.

    `work` runs in a thread, and may raise Refusal before its first piece. What it returns runs on
    the event loop until the stream ends.
    """

    cluster: str
    topic: str
    content_type: bytes
    work: Callable[[Admission, Pipe], Callable[[], Awaitable[None]] | None]
    headers: tuple[tuple[bytes, bytes], ...] = ()


class AskBroker:
    """Calls the inspection ports of brokers, with the key that all hosts of a cluster share."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """The dependencies of jobs, which tests replace."""

    places_of: Callable[[Question], Places] = places_of
    source_of: Callable[[Admission, Places], Source] = source_of
    readers_of: Callable[[Places], AbstractAsyncContextManager[Readers]] = field(
        default_factory=lambda: Engines().of
    )
    ask: Ask = field(default_factory=AskBroker)
    slots: Slots = field(default_factory=Slots)

    def order(
        self,
        admission: Admission,
        question: Question,
        pipe: Pipe,
        *,
        hears: Callable[[bytes], None] | None = None,
    ) -> Order:
        """Locate the records. Raises Refusal if they do not exist."""
        try:
            places = self.places_of(question)
        except NoSuchTopic as missing:
            raise Refusal(404, str(missing), FIND_TOPIC) from None
        except BadQuestion as bad:
            raise Refusal(400, bad.message, bad.next_step) from None
        return Order(
            admission=admission,
            question=question,
            places=places,
            source=self.source_of(admission, places),
            pipe=pipe,
            hears=hears,
        )
