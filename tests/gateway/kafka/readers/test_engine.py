"""Readers of a real broker: records that each gets, and gaps for those that cannot be read."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from gateway.access.grants import names_of
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.producer import TopicWriter
from gateway.kafka.readers.admission import admit
from gateway.kafka.readers.engine import Readers, TooManyReadings
from gateway.kafka.readers.reading import Reading
from gateway.kafka.readers.values import End, Gap, GapReason, Limits, News
from gateway.kafka.values import NewRecord, NewTopic, Place, Position, PositionKind, Record
from tests.fakes.broker_thread import BesideBroker, broker_beside
from tests.fakes.readers import FakeReader, Refused

pytestmark = pytest.mark.slow

BEGINNING = Position(kind=PositionKind.BEGINNING)
END = Position(kind=PositionKind.END)
ADMITTED = admit(FakeReader(), ())
RECORDS = 50
# Records of now, so that no retention takes them.
NOW_MS = time.time_ns() // 1_000_000
# Long enough for any machine; what is waited for comes at once.
WAIT_S = 20.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BesideBroker]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": 3}) as broker:
        for partition in range(3):
            write(broker, "orders", range(RECORDS), partition=partition)
        yield broker


def write(
    broker: BesideBroker, topic: str, numbers: range, *, partition: int = 0, size: int = 1
) -> None:
    producer = TopicWriter(Connection(bootstrap=broker.bootstrap), topic)
    for number in numbers:
        value = b"%d" % number
        producer.send(
            NewRecord(value=value.rjust(size), partition=partition, timestamp_ms=NOW_MS + number)
        )
    producer.flush()


def make(broker: BesideBroker, name: str, **configs: str) -> Place:
    topic = NewTopic(
        name=name, partitions=1, configs={k.replace("_", "."): configs[k] for k in configs}
    )
    Admin(Connection(bootstrap=broker.bootstrap)).create([topic])
    return Place(topic=name, partition=0)


def offset(value: int) -> Position:
    return Position(kind=PositionKind.OFFSET, value=value)


def run(
    broker: BesideBroker,
    read: Callable[[Readers], Awaitable[None]],
    *,
    limits: Limits | None = None,
) -> None:
    async def work() -> None:
        readers = Readers(Connection(bootstrap=broker.bootstrap), limits)
        try:
            async with asyncio.timeout(60):
                await read(readers)
        finally:
            await readers.close()

    asyncio.run(work())


async def take(reading: Reading, wanted: int, *, at_once: int = 1_000) -> list[News]:
    found: list[News] = []
    while len(found) < wanted:
        some = await reading.take(
            max_records=min(at_once, wanted - len(found)), max_bytes=1_000_000, wait_s=WAIT_S
        )
        assert some, f"nothing came after {len(found)}"
        found += some
    return found


def offsets(news: list[News]) -> list[int]:
    return [one.offset for one in news if isinstance(one, Record)]


ORDERS = Place(topic="orders", partition=0)


def test_a_reader_gets_every_record_from_where_it_begins(broker: BesideBroker) -> None:
    async def read(readers: Readers) -> None:
        reading = await readers.open(ADMITTED, {ORDERS: offset(10)})
        news = await take(reading, RECORDS - 10, at_once=7)
        assert offsets(news) == list(range(10, RECORDS))
        assert reading.positions == {ORDERS: RECORDS}
        assert reading.ends == {ORDERS: RECORDS}
        assert await reading.take(max_records=1, max_bytes=1, wait_s=0.01) == []

    run(broker, read)


def test_topic_without_a_right_is_refused(broker: BesideBroker) -> None:
    async def read(readers: Readers) -> None:
        admission = admit(FakeReader(names=lambda: names_of(["payments"])), ())
        with pytest.raises(Refused, match="orders"):
            await readers.open(admission, {ORDERS: BEGINNING})

    run(broker, read)


def test_a_reader_begins_at_a_time(broker: BesideBroker) -> None:
    async def read(readers: Readers) -> None:
        reading = await readers.open(
            ADMITTED, {ORDERS: Position(kind=PositionKind.TIME, value=NOW_MS + 20)}
        )
        assert offsets(await take(reading, 1)) == [20]

    run(broker, read)


def test_partitions_take_turns(broker: BesideBroker) -> None:
    async def read(readers: Readers) -> None:
        places = [Place(topic="orders", partition=index) for index in range(3)]
        reading = await readers.open(ADMITTED, dict.fromkeys(places, BEGINNING))
        news = await take(reading, 3 * RECORDS, at_once=10)
        for place in places:
            own = [
                one for one in news if isinstance(one, Record) and one.partition == place.partition
            ]
            assert offsets(list(own)) == list(range(RECORDS))

    run(broker, read)


def test_what_is_written_later_reaches_all_who_wait(broker: BesideBroker) -> None:
    place = make(broker, "later")

    async def read(readers: Readers) -> None:
        readings = [await readers.open(ADMITTED, {place: END}) for _ in range(20)]
        waiting = [asyncio.create_task(take(reading, 3)) for reading in readings]
        await asyncio.to_thread(write, broker, "later", range(3))
        for task in waiting:
            assert offsets(await task) == [0, 1, 2]

    run(broker, read)


def test_readers_at_many_places_of_a_partition_all_get_everything(broker: BesideBroker) -> None:
    place = make(broker, "many")
    write(broker, "many", range(1_000), size=1_000)
    small = Limits(
        windows_bytes=100_000, min_window_bytes=100_000, turn_bytes=60_000, buffers_bytes=300_000
    )

    async def read(readers: Readers) -> None:
        starts = [0, 900, 17, 500, 0, 999, 300]
        readings = [await readers.open(ADMITTED, {place: offset(start)}) for start in starts]
        tasks = [
            asyncio.create_task(take(reading, 1_000 - start, at_once=31))
            for start, reading in zip(starts, readings, strict=True)
        ]
        for start, task in zip(starts, tasks, strict=True):
            assert offsets(await task) == list(range(start, 1_000))

    run(broker, read, limits=small)


def test_a_reader_that_stands_still_loses_nothing_to_one_that_is_fast(
    broker: BesideBroker,
) -> None:
    place = make(broker, "still")
    write(broker, "still", range(400), size=1_000)
    small = Limits(
        windows_bytes=50_000, min_window_bytes=50_000, turn_bytes=20_000, buffers_bytes=30_000
    )

    async def read(readers: Readers) -> None:
        still = [await readers.open(ADMITTED, {place: BEGINNING}) for _ in range(5)]
        fast = await readers.open(ADMITTED, {place: BEGINNING})
        begun = [await take(reading, 3) for reading in still]
        assert offsets(await take(fast, 400)) == list(range(400))
        for reading, news in zip(still, begun, strict=True):
            rest = await take(reading, 397)
            assert offsets(news + rest) == list(range(400))

    run(broker, read, limits=small)


def test_an_offset_that_was_never_there_is_told_as_a_gap(broker: BesideBroker) -> None:
    async def read(readers: Readers) -> None:
        reading = await readers.open(ADMITTED, {ORDERS: offset(10**12)})
        [gap] = await take(reading, 1)
        assert gap == Gap(place=ORDERS, start=10**12, next=RECORDS, reason=GapReason.CUT)
        assert reading.positions == {ORDERS: RECORDS}

    run(broker, read)


def test_a_topic_that_is_not_there_is_refused(broker: BesideBroker) -> None:
    async def read(readers: Readers) -> None:
        for place in [Place(topic="nowhere", partition=0), Place(topic="orders", partition=7)]:
            with pytest.raises(KafkaFailure) as caught:
                await readers.open(ADMITTED, {place: BEGINNING})
            assert caught.value.name == "UNKNOWN_TOPIC_OR_PARTITION"

    run(broker, read)


def test_a_topic_that_is_deleted_ends_its_readers(broker: BesideBroker) -> None:
    place = make(broker, "short")
    write(broker, "short", range(3))

    async def read(readers: Readers) -> None:
        reading = await readers.open(ADMITTED, {place: BEGINNING})
        behind = await readers.open(ADMITTED, {place: BEGINNING})
        assert offsets(await take(reading, 3)) == [0, 1, 2]
        await asyncio.to_thread(Admin(Connection(bootstrap=broker.bootstrap)).delete, ["short"])
        [end] = await take(reading, 1)
        assert isinstance(end, End)
        assert end.name == "UNKNOWN_TOPIC_OR_PARTITION"
        assert reading.is_over
        *news, end = await take(behind, 4)
        assert offsets(news) == [0, 1, 2]
        assert isinstance(end, End)

    run(broker, read)


def test_what_a_log_has_deleted_is_told_as_a_gap(broker: BesideBroker) -> None:
    place = make(broker, "kept")
    write(broker, "kept", range(30))

    async def read(readers: Readers) -> None:
        await asyncio.to_thread(delete_before, broker, place, 20)
        reading = await readers.open(ADMITTED, {place: offset(3)})
        gap, record = await take(reading, 2)
        assert gap == Gap(place=place, start=3, next=20, reason=GapReason.DELETED)
        assert offsets([record]) == [20]

    run(broker, read)


def test_what_a_log_deletes_before_a_reader_comes_there_is_told_as_a_gap(
    broker: BesideBroker,
) -> None:
    place = make(broker, "kept-later")
    write(broker, "kept-later", range(400), size=1_000)
    small = Limits(
        windows_bytes=50_000, min_window_bytes=50_000, turn_bytes=20_000, buffers_bytes=50_000
    )

    async def read(readers: Readers) -> None:
        slow = await readers.open(ADMITTED, {place: BEGINNING})
        assert offsets(await take(slow, 1)) == [0]
        fast = await readers.open(ADMITTED, {place: BEGINNING})
        await take(fast, 400)
        await asyncio.to_thread(delete_before, broker, place, 300)
        news = await take(slow, 101)
        [gap] = [one for one in news if isinstance(one, Gap)]
        assert (gap.next, gap.reason) == (300, GapReason.DELETED)
        while slow.positions[place] < 400:
            news += await take(slow, 1)
        assert offsets(news) == [*range(1, gap.start), *range(300, 400)]

    run(broker, read, limits=small)


def delete_before(broker: BesideBroker, place: Place, first: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records(
        [TopicPartition(place.topic, place.partition, first)]
    ).values():
        future.result(WAIT_S)


def test_a_slow_reader_of_a_fast_topic_costs_the_same_all_the_time(broker: BesideBroker) -> None:
    """Ten records a second, of a topic that gets hundreds of times as many."""
    place = make(broker, "fast")
    limits = Limits()

    async def read(readers: Readers) -> None:
        slow = await readers.open(ADMITTED, {place: BEGINNING})
        keeps_up = await readers.open(ADMITTED, {place: BEGINNING})
        seen: list[int] = []
        for begin in range(0, 50_000, 5_000):
            numbers = range(begin, begin + 5_000)
            await asyncio.to_thread(write, broker, "fast", numbers, size=1_000)
            assert offsets(await take(keeps_up, 5_000)) == list(numbers)
            seen += offsets(await take(slow, 10))
            assert readers.held_bytes <= limits.max_window_bytes * 2 + limits.turn_bytes * 2
        assert seen == list(range(100))
        assert slow.ends[place] - slow.positions[place] == 49_900
        rest = offsets(await take(slow, 49_900))
        assert seen + rest == list(range(50_000))

    run(broker, read)


def test_readers_are_counted(broker: BesideBroker) -> None:
    async def read(readers: Readers) -> None:
        first = await readers.open(ADMITTED, {ORDERS: END})
        await readers.open(ADMITTED, {ORDERS: END})
        with pytest.raises(TooManyReadings, match="2 places"):
            await readers.open(ADMITTED, {ORDERS: END})
        first.close()
        await readers.open(ADMITTED, {ORDERS: END})
        readers.drain()
        with pytest.raises(TooManyReadings, match="about to end"):
            await readers.open(ADMITTED, {ORDERS: END})

    run(broker, read, limits=Limits(max_cursors=2))
