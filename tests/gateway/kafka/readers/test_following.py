"""What appears while somebody reads: partitions, topics of a pattern, and what has no room."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from gateway.access.grants import EVERYTHING, names_of
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.readers import engine
from gateway.kafka.readers.admission import admit
from gateway.kafka.readers.engine import Readers, TooManyReadings
from gateway.kafka.readers.following import MAX_MATCHED, Follow, Follower, without_internal
from gateway.kafka.readers.reading import Reading
from gateway.kafka.readers.values import End, Limits, News
from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import BEGINNING, NewRecord, NewTopic, Partition, Place, Record, Topic
from tests.fakes.broker_thread import BesideBroker, broker_beside
from tests.fakes.readers import FakeReader

# A look is due at once, and nothing is believed that was asked for before.
SOON_S = 0.05
WAIT_S = 20.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BesideBroker]:
    with broker_beside(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _looks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WATCH_S", "LIST_S"):
        monkeypatch.setattr(engine, name, SOON_S)
    monkeypatch.setattr(engine, "FRESH_S", 0.0)


@dataclass
class Site:
    readers: Readers
    admin: Admin
    bootstrap: str

    async def make(self, *names: str) -> None:
        topics = [NewTopic(name=name, partitions=1) for name in names]
        await asyncio.to_thread(self.admin.create, topics)

    async def delete(self, name: str) -> None:
        await asyncio.to_thread(self.admin.delete, [name])

    async def widen(self, name: str, partitions: int) -> None:
        await asyncio.to_thread(self.admin.add_partitions, name, partitions)

    async def write(self, place: Place, values: range) -> None:
        def work() -> None:
            producer = TopicWriter(Connection(bootstrap=self.bootstrap), place.topic)
            for value in values:
                producer.send(NewRecord(value=b"%d" % value, partition=place.partition))
            producer.flush()

        await asyncio.to_thread(work)

    async def follow(self, follow: Follow, reader: FakeReader | None = None) -> Reading:
        admission = admit(reader or FakeReader(), follow.topics)
        if follow.pattern is not None:
            found = await self.readers.matching(follow.pattern, admission.readable)
        else:
            found = await self.readers.partitions(follow.topics)
        starts = {
            Place(topic=topic, partition=index): BEGINNING
            for topic, indexes in found.items()
            for index in indexes
        }
        return await self.readers.open(admission, starts, follow=follow)


def run(
    broker: BesideBroker, work: Callable[[Site], Awaitable[None]], limits: Limits | None = None
) -> None:
    async def serve() -> None:
        connection = Connection(bootstrap=broker.bootstrap)
        site = Site(Readers(connection, limits), Admin(connection), broker.bootstrap)
        try:
            async with asyncio.timeout(60):
                await work(site)
        finally:
            await site.readers.close()

    asyncio.run(serve())


async def take(reading: Reading, wanted: int) -> list[News]:
    found: list[News] = []
    while len(found) < wanted:
        some = await reading.take(max_records=wanted - len(found), max_bytes=100_000, wait_s=WAIT_S)
        assert some, f"nothing came after {found}"
        found += some
    return found


def told(news: Sequence[News]) -> list[tuple[str, str, int]]:
    """Return what each is, and of which partition."""
    return [
        (type(one).__name__, one.topic, one.partition)
        if isinstance(one, Record)
        else (type(one).__name__, one.place.topic, one.place.partition)
        for one in news
    ]


def pattern(text: str, most: int = 1_000) -> Follow:
    return Follow(pattern=TopicPattern(text), reserve=lambda _places: most)


@pytest.mark.slow
def test_partitions_that_are_added_are_read_from_their_beginning(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        await site.make("grown")
        reading = await site.follow(Follow(topics=["grown"]))
        await site.widen("grown", 3)
        added = Place(topic="grown", partition=2)
        await site.write(added, range(3))
        news = await take(reading, 5)
        assert told(news[:2]) == [("Begin", "grown", 1), ("Begin", "grown", 2)]
        assert [one.offset for one in news[2:] if isinstance(one, Record)] == [0, 1, 2]
        assert reading.positions[added] == 3

    run(broker, work)


@pytest.mark.slow
def test_topics_that_a_pattern_means_are_read_when_they_come_and_after_they_have_gone(
    broker: BesideBroker,
) -> None:
    async def work(site: Site) -> None:
        reading = await site.follow(pattern("eu-.*"))
        assert reading.positions == {}
        assert not reading.is_over
        await site.make("eu-a", "us-a")
        assert told(await take(reading, 1)) == [("Begin", "eu-a", 0)]
        await site.delete("eu-a")
        assert told(await take(reading, 1)) == [("End", "eu-a", 0)]
        assert not reading.is_over
        await site.make("eu-a")
        await site.write(Place(topic="eu-a", partition=0), range(1))
        assert told(await take(reading, 2)) == [("Begin", "eu-a", 0), ("Record", "eu-a", 0)]
        reading.close()
        assert await reading.take(max_records=1, max_bytes=1, wait_s=WAIT_S) == []

    run(broker, work)


@pytest.mark.slow
def test_a_pattern_means_only_what_may_be_read_at_the_moment(broker: BesideBroker) -> None:
    rights = [names_of(["asia-a*"])]

    async def work(site: Site) -> None:
        await site.make("asia-b", "asia-a1")
        reading = await site.follow(pattern("asia-.*"), FakeReader(names=lambda: rights[-1]))
        assert [place.topic for place in reading.positions] == ["asia-a1"]
        rights.append(names_of(["asia-*"]))
        assert told(await take(reading, 1)) == [("Begin", "asia-b", 0)]
        reading.drop([Place(topic="asia-b", partition=0)])
        await site.make("asia-c")
        assert told(await take(reading, 1)) == [("Begin", "asia-c", 0)]
        assert "asia-b" not in {place.topic for place in reading.positions}

    run(broker, work)


@pytest.mark.slow
def test_what_there_is_no_room_for_is_told_once(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        reading = await site.follow(pattern("few-.*", most=1))
        await site.make("few-a", "few-b")
        begin, end = await take(reading, 2)
        assert told([begin, end]) == [("Begin", "few-a", 0), ("End", "few-b", 0)]
        assert isinstance(end, End)
        assert end.name == "NOT_TAKEN_UP"
        assert await reading.take(max_records=1, max_bytes=1, wait_s=10 * SOON_S) == []

        await site.make("few-c")
        full = await site.follow(Follow(topics=["few-a"]))
        await site.widen("few-a", 2)
        [refused] = await take(full, 1)
        assert isinstance(refused, End)
        assert refused.message == "3 places are read at the same time already"
        with pytest.raises(TooManyReadings, match="1 readers look for topics by a pattern"):
            await site.follow(pattern("none"))

    run(broker, work, Limits(max_cursors=3, max_patterns=1))


@pytest.mark.slow
def test_a_reader_that_takes_nothing_of_anything_takes_nothing_of_what_appears(
    broker: BesideBroker,
) -> None:
    async def work(site: Site) -> None:
        await site.make("held")
        reading = await site.follow(Follow(topics=["held"]))
        reading.pause_all()
        await site.widen("held", 2)
        added = Place(topic="held", partition=1)
        await site.write(added, range(1))
        assert told(await take(reading, 1)) == [("Begin", "held", 1)]
        assert await reading.take(max_records=1, max_bytes=1, wait_s=10 * SOON_S) == []
        reading.resume_all()
        assert told(await take(reading, 1)) == [("Record", "held", 1)]

    run(broker, work)


@pytest.mark.slow
def test_a_reader_is_moved_in_some_partitions_and_goes_on_in_the_others(
    broker: BesideBroker,
) -> None:
    async def work(site: Site) -> None:
        first, second = (Place(topic="moved", partition=index) for index in range(2))
        await site.make("moved")
        await site.widen("moved", 2)
        for place in (first, second):
            await site.write(place, range(5))
        reading = await site.readers.open(
            admit(FakeReader(), ()), {first: BEGINNING, second: BEGINNING}
        )
        await take(reading, 10)
        await site.readers.move(reading, {second: BEGINNING})
        assert reading.positions == {first: 5, second: 0}
        await site.write(first, range(1))
        news = await take(reading, 6)
        assert sorted((one.partition, one.offset) for one in news if isinstance(one, Record)) == [
            (0, 5),
            *((1, offset) for offset in range(5)),
        ]

    run(broker, work)


def follower(follow: Follow) -> Follower:
    reading = Reading(closed=lambda _reading, _places: None)
    return Follower(reading, follow, admit(FakeReader(), ()))


def topic(name: str, partitions: int, topic_id: str = "1") -> Topic:
    return Topic(
        name=name,
        id=topic_id,
        is_internal=False,
        partitions=tuple(
            Partition(index=index, leader=1, replicas=(1,), isr=(1,)) for index in range(partitions)
        ),
    )


def test_a_pattern_means_no_topic_of_kafkas_own_and_a_thousand_at_most() -> None:
    assert without_internal(["__consumer_offsets", "a"]) == {"a"}
    one = follower(pattern(".*"))
    one.match(frozenset(f"t{number:05}" for number in range(MAX_MATCHED + 5)), EVERYTHING)
    assert len(one.topics) == MAX_MATCHED


def test_names_are_matched_again_only_where_rights_have_changed() -> None:
    one = follower(pattern("a.*"))
    one.match(frozenset({"a1", "a2", "b"}), names_of(["*"]))
    assert one.topics == ["a1", "a2"]
    one.match(frozenset({"a2", "a3"}), names_of(["*"]))
    assert one.topics == ["a2", "a3"]
    one.match(frozenset({"a2", "a3"}), names_of(["a3"]))
    assert one.topics == ["a3"]


def test_what_was_refused_is_wanted_again_only_of_a_topic_that_was_made_again() -> None:
    one = follower(Follow(topics=["t"]))
    places = [Place(topic="t", partition=index) for index in range(2)]
    assert list(one.wanted({"t": topic("t", 2)})) == places
    for place in places:
        one.reading.refuse(place, "1", End(place=place, name="NOT_TAKEN_UP", message=""))
    assert not one.wanted({"t": topic("t", 2)})
    assert not one.wanted({})
    assert list(one.wanted({"t": topic("t", 1, topic_id="2")})) == places[:1]


def test_news_that_nobody_takes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.kafka.readers.reading.MAX_SAID", 2)
    reading = Reading(closed=lambda _reading, _places: None, waits=True)
    for index in range(2):
        assert reading.room_to_tell == 2 - index
        place = Place(topic="t", partition=index)
        reading.refuse(place, "1", End(place=place, name="NOT_TAKEN_UP", message=""))
    assert reading.room_to_tell == 0
    assert isinstance(reading.take_now(max_records=1, max_bytes=1)[0], End)
    assert reading.room_to_tell == 1


@pytest.mark.slow
def test_a_look_that_fails_ends_no_other_look(
    broker: BesideBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(site: Site) -> None:
        await site.make("again")
        reading = await site.follow(Follow(topics=["again"]))
        asked = Readers._take_up  # noqa: SLF001 - what fails is a bug that nobody knows
        failed: list[object] = []

        async def fail(*arguments: object) -> None:
            if not failed:
                failed.append(arguments)
                raise AssertionError("a bug")
            await asked(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(Readers, "_take_up", fail)
        await site.widen("again", 2)
        assert told(await take(reading, 1)) == [("Begin", "again", 1)]
        assert failed

    run(broker, work)


@pytest.mark.slow
def test_a_wide_topic_is_told_in_pieces_that_fit(
    broker: BesideBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.kafka.readers.reading.MAX_SAID", 2)

    async def work(site: Site) -> None:
        reading = await site.follow(pattern("wide-.*", most=0))
        await asyncio.to_thread(site.admin.create, [NewTopic(name="wide-a", partitions=5)])
        found: list[News] = []
        while len(found) < 5:
            await reading.wait(WAIT_S)
            some = reading.take_now(max_records=100, max_bytes=100_000)
            assert 1 <= len(some) <= 2
            found += some
        assert sorted(told(found)) == [("End", "wide-a", index) for index in range(5)]

    run(broker, work)


@pytest.mark.slow
def test_nobody_takes_the_patterns_of_others(broker: BesideBroker) -> None:
    async def work(site: Site) -> None:
        one, other = FakeReader(key="token:a"), FakeReader(key="token:b")
        first = await site.follow(pattern("own-.*"), one)
        with pytest.raises(TooManyReadings, match="1 readers of token:a"):
            await site.follow(pattern("own-.*"), one)
        await site.follow(pattern("own-.*"), other)
        first.close()
        await site.follow(pattern("own-.*"), one)

    run(broker, work, Limits(max_patterns_each=1))
