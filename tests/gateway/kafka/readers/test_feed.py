"""One partition and its readers, over a log that grows, forgets and compacts at random."""

import random
from collections.abc import Callable
from itertools import count

import pytest

from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.readers.buffers import Buffers
from gateway.kafka.readers.cursor import Cursor
from gateway.kafka.readers.feed import Feed, Shared
from gateway.kafka.readers.lane import Arrived
from gateway.kafka.readers.values import End, Gap, GapReason, News
from gateway.kafka.values import Place, Record
from tests import scale

PLACE = Place(topic="t", partition=0)
ROUNDS = scale.count(40, 50, long=3_000)
STEPS = 400


class Log:
    """Which offsets have a record, and from where on."""

    def __init__(self) -> None:
        self.first = 0
        self.end = 0
        self.offsets: list[int] = []

    def append(self, number: int, *, leaving_out: Callable[[], bool]) -> None:
        self.offsets += [
            offset for offset in range(self.end, self.end + number) if not leaving_out()
        ]
        self.end += number

    def forget(self, first: int) -> None:
        self.first = first
        self.offsets = [offset for offset in self.offsets if offset >= first]

    def read(self, offset: int, most: int) -> list[Record]:
        return [record(one) for one in self.offsets if one >= offset][:most]


def record(offset: int) -> Record:
    return Record(topic="t", partition=0, offset=offset, key=None, value=b"x" * (offset % 7 * 100))


class FakeLane:
    """Reads the log as far as it is told to, and only the last order counts."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.order = 0
        self.offset = 0
        self.tell: Callable[[Arrived], None] = lambda _arrived: None

    def read(self, place: Place, offset: int, order: int) -> None:
        self.order, self.offset = order, offset

    def stop(self, place: Place) -> None:
        self.order = 0

    def step(self, most: int) -> None:
        if not self.order:
            return
        order = self.order
        if not self._log.first <= self.offset <= self._log.end:
            self.order = 0
            failed = failure("OFFSET_OUT_OF_RANGE", "t")
            self.tell(Arrived(place=PLACE, order=order, failed=failed))
            return
        records = self._log.read(self.offset, most)
        is_all = len(records) < most
        self.offset = self._log.end if is_all else records[-1].offset + 1
        end = self._log.end if is_all else None
        self.tell(Arrived(place=PLACE, order=order, records=records, end=end))


class Site:
    def __init__(self, *, window: int, turn: int, buffers: int) -> None:
        self.log = Log()
        self.head, self.turns = FakeLane(self.log), FakeLane(self.log)
        self.looks: list[KafkaFailure] = []
        self.buffers = Buffers(buffers)
        self.feed = Feed(
            PLACE,
            topic_id="id",
            shared=Shared(
                head=self.head,
                turns=self.turns,
                buffers=self.buffers,
                look=lambda _feed, failed: self.looks.append(failed),
                next_order=count(1).__next__,
                window_bytes=lambda: window,
                turn_bytes=turn,
            ),
        )
        self.head.tell = self.feed.head_arrived
        self.turns.tell = self.feed.turn_arrived
        self.ready: set[Cursor] = set()

    def open(self, offset: int) -> "Reader":
        cursor = Cursor(PLACE, offset, self.ready.add)
        self.feed.add(cursor, first=self.log.first, end=self.log.end)
        self.ready.add(cursor)
        return Reader(self, cursor)

    def look(self) -> None:
        if self.looks:
            self.looks.clear()
            self.feed.found(self.log.first, self.log.end)


class Reader:
    """Checks that nothing is left out unsaid, and nothing comes twice."""

    def __init__(self, site: Site, cursor: Cursor) -> None:
        self._site = site
        self.cursor = cursor
        self.at = cursor.position
        self.last: End | None = None

    def take(self, most: int) -> list[News]:
        """Take as a reading does: where nothing was said to be there, nothing is asked for."""
        if self.cursor not in self._site.ready:
            return []
        self._site.ready.discard(self.cursor)
        news = self._site.feed.take(self.cursor, most, 2_000, is_first=True)
        if self._site.feed.has_more(self.cursor):
            self._site.ready.add(self.cursor)
        for one in news:
            if isinstance(one, Record):
                assert one.offset == self.at
                self.at += 1
            elif isinstance(one, Gap):
                assert one.start == self.at
                if one.reason is GapReason.NO_RECORD:
                    there = [o for o in self._site.log.offsets if one.start <= o < one.next]
                    assert not there, f"{there} are in {one}"
                self.at = one.next
            elif isinstance(one, End):
                self.last = one
        assert self.at == self.cursor.position
        return news


def settle(site: Site, readers: list[Reader]) -> None:
    for _ in range(8_000):
        site.look()
        site.head.step(20)
        site.turns.step(20)
        for reader in readers:
            reader.take(50)
        if all(reader.at == site.log.end for reader in readers):
            return
    raise AssertionError([reader.at for reader in readers])


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_every_reader_gets_every_offset_once_or_is_told_why_not(seed: int) -> None:
    chance = random.Random(seed)
    site = Site(
        window=chance.choice([2_000, 10_000, 100_000]),
        turn=chance.choice([1_500, 5_000, 20_000]),
        buffers=chance.choice([1_500, 10_000, 100_000]),
    )
    holes = chance.choice([0.0, 0.3])
    readers: list[Reader] = []

    for _ in range(STEPS):
        match chance.randrange(12):
            case 0:
                site.log.append(chance.randrange(60), leaving_out=lambda: chance.random() < holes)
            case 1 if len(readers) < 8:
                readers.append(site.open(chance.randint(0, site.log.end)))
            case 2 if readers and chance.random() < 0.2:
                gone = readers.pop(chance.randrange(len(readers)))
                site.feed.remove(gone.cursor)
                site.ready.discard(gone.cursor)
            case 3 if chance.random() < 0.1:
                site.log.forget(chance.randint(site.log.first, site.log.end))
            case 4 | 5 | 6:
                site.head.step(chance.randint(1, 30))
            case 7 | 8:
                site.turns.step(chance.randint(1, 30))
            case 9:
                site.look()
            case _ if readers:
                chance.choice(readers).take(chance.randint(1, 20))
        waiting = sum(reader.cursor.waiting_bytes for reader in readers)
        assert site.buffers.bytes == waiting

    settle(site, readers)
    for reader in readers:
        site.feed.remove(reader.cursor)
    assert (site.buffers.bytes, site.head.order, site.turns.order) == (0, 0, 0)


def test_a_log_that_was_cut_is_told_and_read_on_from_its_end() -> None:
    site = Site(window=10_000, turn=1_000, buffers=10_000)
    site.log.append(10, leaving_out=lambda: False)
    ahead, behind = site.open(8), site.open(0)
    site.head.step(20)
    ahead.take(20)

    site.log.end, site.log.offsets = 4, [0, 1, 2, 3]
    site.feed.found(0, 4)
    [gap] = ahead.take(5)
    site.log.append(3, leaving_out=lambda: False)
    settle(site, [ahead, behind])

    assert gap == Gap(place=PLACE, start=10, next=4, reason=GapReason.CUT)


def test_readers_of_what_is_gone_get_what_is_there_and_a_last_word() -> None:
    site = Site(window=10_000, turn=1_000, buffers=10_000)
    site.log.append(5, leaving_out=lambda: False)
    reader = site.open(0)
    site.head.step(20)

    site.feed.over("UNKNOWN_TOPIC_OR_PARTITION", "it was deleted")

    assert [one.offset for one in reader.take(3) if isinstance(one, Record)] == [0, 1, 2]
    assert [one.offset for one in reader.take(3) if isinstance(one, Record)] == [3, 4]
    assert [one.name for one in reader.take(3) if isinstance(one, End)] == [
        "UNKNOWN_TOPIC_OR_PARTITION"
    ]
