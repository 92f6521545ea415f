"""Records of many callers, through one producer, for an event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.delivery import MAX_BYTES, MAX_RECORDS, Deliveries
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Delivered, NewRecord, NewTopic
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow
Told = Delivered | KafkaFailure
# Nothing listens there.
NOWHERE = Connection(bootstrap="127.0.0.1:1")


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"one": 1, "two": 2}) as broker:
        yield Connection(bootstrap=broker.bootstrap)


def on_loop(
    connection: Connection,
    work: Callable[[Deliveries], Awaitable[None]],
    *,
    delivery_s: float = 15.0,
) -> None:
    async def whole() -> None:
        deliveries = Deliveries(connection, delivery_s=delivery_s)
        try:
            await work(deliveries)
        finally:
            await deliveries.close()

    asyncio.run(whole())


async def told_of(deliveries: Deliveries, topic: str, *records: NewRecord) -> list[Told]:
    told: list[Told] = []
    is_over = asyncio.Event()

    def done(each: Told) -> None:
        told.append(each)
        if len(told) == len(records):
            is_over.set()

    for record in records:
        deliveries.send(topic, record, done)
    assert told == [], "nothing is told before `send` returns"
    await is_over.wait()
    return told


def places_of(told: list[Told]) -> list[tuple[int, int]]:
    return [(each.partition, each.offset) for each in told if isinstance(each, Delivered)]


def test_records_of_several_topics_are_told_in_their_order(connection: Connection) -> None:
    async def work(deliveries: Deliveries) -> None:
        assert await deliveries.topics.require("one") == 1
        assert await deliveries.topics.require("two", 1) == 2
        one, two = await asyncio.gather(
            told_of(deliveries, "one", *[NewRecord(value=b"v")] * 500),
            told_of(deliveries, "two", *[NewRecord(value=None, partition=1)] * 500),
        )
        for places, partition in ((places_of(one), 0), (places_of(two), 1)):
            first = places[0][1]
            assert places == [(partition, first + n) for n in range(500)]

    on_loop(connection, work)


def test_the_time_that_a_record_has_is_told(connection: Connection) -> None:
    async def work(deliveries: Deliveries) -> None:
        await deliveries.topics.require("one")
        [told] = await told_of(deliveries, "one", NewRecord(value=b"", timestamp_ms=1_234))
        assert isinstance(told, Delivered)
        assert told.timestamp_ms == 1_234

    on_loop(connection, work)


def test_a_topic_that_is_missing_is_told_and_not_made(connection: Connection) -> None:
    async def work(deliveries: Deliveries) -> None:
        for _ in range(2):
            with pytest.raises(KafkaFailure, match="topic absent") as caught:
                await deliveries.topics.require("absent")
            assert caught.value.name == "UNKNOWN_TOPIC_OR_PARTITION"
        with pytest.raises(KafkaFailure, match="has 2 of them"):
            await deliveries.topics.require("two", 2)

    on_loop(connection, work)

    assert "absent" not in {topic.name for topic in Admin(connection).topics()}


def test_a_topic_that_was_just_made_is_there(connection: Connection) -> None:
    async def work(deliveries: Deliveries) -> None:
        with pytest.raises(KafkaFailure):
            await deliveries.topics.require("new")
        await asyncio.to_thread(Admin(connection).create, [NewTopic(name="new", partitions=1)])
        assert await deliveries.topics.require("new") == 1
        assert places_of(await told_of(deliveries, "new", NewRecord(value=b"x"))) == [(0, 0)]

    on_loop(connection, work)


def test_a_topic_that_was_deleted_is_found_out_by_its_next_record(connection: Connection) -> None:
    Admin(connection).create([NewTopic(name="gone", partitions=1)])

    async def work(deliveries: Deliveries) -> None:
        await deliveries.topics.require("gone")
        assert places_of(await told_of(deliveries, "gone", NewRecord(value=b"x"))) == [(0, 0)]
        await asyncio.to_thread(Admin(connection).delete, ["gone"])
        [told] = await told_of(deliveries, "gone", NewRecord(value=b"x"))
        assert isinstance(told, KafkaFailure)
        assert not deliveries.topics.is_known("gone")

    on_loop(connection, work)

    assert "gone" not in {topic.name for topic in Admin(connection).topics()}


def test_a_client_that_can_send_no_more_is_replaced(connection: Connection) -> None:
    async def work(deliveries: Deliveries) -> None:
        await deliveries.topics.require("one")
        told = await told_of(deliveries, "one", NewRecord(value=b"x"))
        assert deliveries._polled is not None  # noqa: SLF001 - the library offers no way to break it
        deliveries._polled.producer.is_broken = True  # noqa: SLF001 - as above
        told += await told_of(deliveries, "one", NewRecord(value=b"y"))
        assert len(places_of(told)) == 2

    on_loop(connection, work)


def test_a_record_that_is_too_large_fails_alone(connection: Connection) -> None:
    async def work(deliveries: Deliveries) -> None:
        await deliveries.topics.require("one")
        [large] = await told_of(deliveries, "one", NewRecord(value=bytes(2_000_000)))
        [small] = await told_of(deliveries, "one", NewRecord(value=b"x"))
        assert isinstance(large, KafkaFailure)
        assert large.name == "MESSAGE_TOO_LARGE"
        assert isinstance(small, Delivered)

    on_loop(connection, work)


@pytest.mark.parametrize("name", ["\ud800", "a\0b"])
def test_a_header_that_the_library_cannot_take_fails_alone(
    connection: Connection, name: str
) -> None:
    """The first one would end the process, the second would arrive as another name."""

    async def work(deliveries: Deliveries) -> None:
        [told] = await told_of(deliveries, "one", NewRecord(value=b"", headers=((name, b""),)))
        assert isinstance(told, KafkaFailure)
        assert told.name == "INVALID_REQUEST"

    on_loop(connection, work)


def test_brokers_that_are_away_are_told_within_the_time_of_a_delivery() -> None:
    async def work(deliveries: Deliveries) -> None:
        with pytest.raises(KafkaFailure) as caught:
            await deliveries.topics.require("one")
        assert caught.value.name == "BROKER_NOT_AVAILABLE"
        [told] = await told_of(deliveries, "one", NewRecord(value=b"x"))
        assert isinstance(told, KafkaFailure)
        assert told.name == "BROKER_NOT_AVAILABLE"

    on_loop(NOWHERE, work, delivery_s=1.5)


def test_room_is_waited_for_and_comes_back() -> None:
    async def work(deliveries: Deliveries) -> None:
        told: list[Told] = []
        large = NewRecord(value=bytes(MAX_BYTES // 4))
        assert not deliveries.is_full
        for _ in range(4):
            deliveries.send("one", large, told.append)
        assert deliveries.is_full
        await deliveries.room()
        assert len(told) > 0
        assert not deliveries.is_full
        for _ in range(MAX_RECORDS):
            deliveries.send("one", NewRecord(value=None), told.append)
        assert deliveries.is_full
        await deliveries.room()

    on_loop(NOWHERE, work, delivery_s=1.0)
