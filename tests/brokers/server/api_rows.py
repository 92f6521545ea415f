"""What a row of the table of answers says, and what its words stand for.

A row is one request in a range of versions with the whole answer that is expected. Answers are
written down as the newest version has them; `as_of` takes away what an older one does not carry. A
value that cannot be known beforehand is one of the placeholders, which equal what they describe.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokers.cluster.image import Topic
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.protocol.schema import Message
from tests.builders.logs import batch
from tests.fakes.broker import RunningBroker
from tests.fakes.listener import ByteClient

# Records of the tests are older than a topic keeps them by default.
KEPT_FOR_EVER = {"retention.ms": "-1"}
RECORDS = 3


class Placeholder:
    """Equals every value that its test accepts."""

    def __init__(self, name: str, accepts: Callable[[Any], bool]) -> None:
        self._name = name
        self._accepts = accepts

    def __eq__(self, other: object) -> bool:
        return self._accepts(other)

    __hash__ = None  # type: ignore[assignment]  # it equals more than one value

    def __repr__(self) -> str:
        return f"<{self._name}>"


# Any, so that one can stand wherever a value is expected.
A_SENTENCE: Any = Placeholder("a sentence", lambda value: isinstance(value, str) and len(value) > 9)
AN_ID: Any = Placeholder("an id", lambda value: len(value) == 16 and any(value))
A_SIZE: Any = Placeholder("a size", lambda value: isinstance(value, int) and value > 0)
A_PRODUCER_ID: Any = Placeholder("a producer id", lambda value: value >= 0)


@dataclass(frozen=True, slots=True)
class World:
    """The broker that is asked, and names that no other row has used."""

    broker: RunningBroker
    client: ByteClient
    folder: Path

    @property
    def broker_id(self) -> int:
        return self.broker.ready.id

    @property
    def cluster_id(self) -> str:
        return self.broker.twin.cluster_id

    @property
    def log_dir(self) -> str:
        return str(self.folder / "data")

    def topic(self, name: str) -> Topic:
        return self.broker.twin.image.topics[name]

    async def create(self, name: str, **configs: str) -> None:
        """Makes a topic of one partition that the broker leads already."""
        self.broker.twin.create_topic(name, configs=KEPT_FOR_EVER | configs)
        await self.broker.context.wait_applied(self.broker.twin.image.version)

    async def fill(self, name: str, *, producer: int = -1) -> None:
        """Makes a topic whose partition holds one batch of three records."""
        await self.create(name)
        data = TopicProduceData(
            name=name,
            partition_data=[
                PartitionProduceData(index=0, records=batch(records=RECORDS, producer=producer))
            ],
        )
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
        answer = await self.client.ask(request, 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """See the module. `error` is the only code in the answer; None: the request is right.

    `is_all_there_is`: also a right request is answered with the error, since the release has none
    of the things asked for. `closes`: what is wrong cannot be said in an answer, so the connection
    ends. The request of such a row is sent with a byte too many.
    """

    key: int
    versions: tuple[int, int]
    request: Callable[[World, int], Message]
    answer: Callable[[World, int], Message] | None = None
    before: Callable[[World, int], Awaitable[None]] | None = None
    error: ErrorCode | None = None
    is_all_there_is: bool = False
    closes: bool = False

    @property
    def is_right(self) -> bool:
        return (self.error is None or self.is_all_there_is) and not self.closes

    def covers(self, version: int) -> bool:
        return self.versions[0] <= version <= self.versions[1]


def name_of(world: World, version: int) -> str:
    """The topic of a row in a version; each API has a broker of its own."""
    return f"topic-{version}"


async def make_topic(world: World, version: int) -> None:
    await world.create(name_of(world, version))


async def make_filled_topic(world: World, version: int) -> None:
    await world.fill(name_of(world, version))


def as_of(message: Message, version: int) -> Message:
    """The message as a version carries it: what it has no place for is at its default."""
    reduced = message.copy()
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if not field.is_in(version):
            value = getattr(type(message)(), field.name)
        elif isinstance(value, list):
            value = [as_of(one, version) if isinstance(one, Message) else one for one in value]
        elif isinstance(value, Message):
            value = as_of(value, version)
        setattr(reduced, field.name, value)
    return reduced


def error_codes(message: Message) -> Iterator[int]:
    """Every error in an answer, wherever it stands."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name.endswith("error_code") and value:
            yield value
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Message):
                yield from error_codes(inner)
