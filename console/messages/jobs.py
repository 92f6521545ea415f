"""Work of a thread for one request, and what it needs: places, sources, brokers."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from brokers.cluster.image import Broker
from brokers.inspection.client import Inspection, InspectionFailed
from brokers.key_files import KeyFile
from console.messages.opening import Order
from console.messages.pipe import Pipe
from console.messages.places import NoSuchTopic, Places, places_of
from console.messages.question import BadQuestion, Question
from console.messages.search import Ask
from console.messages.slots import Slots
from console.messages.source import KafkaSource, Source

FIND_TOPIC: Final = "open the list of topics, and choose one"


class Refusal(Exception):
    """There is no answer, and nothing was put into the pipe: a status of HTTP, and why."""

    def __init__(self, status: int, message: str, next_step: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.next_step = next_step


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who asks, as the audit names them."""

    user_id: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One request that was understood. `work` may raise Refusal before its first piece."""

    cluster: str
    topic: str
    content_type: bytes
    work: Callable[[Pipe], None]
    headers: tuple[tuple[bytes, bytes], ...] = ()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What jobs work with; a test gives others."""

    places_of: Callable[[Question], Places] = places_of
    source_of: Callable[[Places], Source] = KafkaSource
    ask: Ask = field(default_factory=AskBroker)
    slots: Slots = field(default_factory=Slots)

    def order(
        self, question: Question, pipe: Pipe, *, hears: Callable[[bytes], None] | None = None
    ) -> Order:
        """Find out where the records are; Refusal where they are nowhere."""
        try:
            places = self.places_of(question)
        except NoSuchTopic as missing:
            raise Refusal(404, str(missing), FIND_TOPIC) from None
        except BadQuestion as bad:
            raise Refusal(400, bad.message, bad.next_step) from None
        return Order(
            question=question,
            places=places,
            source=self.source_of(places),
            pipe=pipe,
            hears=hears,
        )
