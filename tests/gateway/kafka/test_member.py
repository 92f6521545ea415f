"""A consumer that is driven by calls: what it reads, gives back, commits, and goes on with."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer

from gateway.kafka import member as module
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.group_client import Closed
from gateway.kafka.member import Member, NotAssigned, Reset, Subscription
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic, Place, Position, PositionKind, Record
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow

PARTITIONS = 2
RECORDS = 10
ORDERS = Subscription(topics=("orders",))
MANY_BYTES = 1_000_000
PLACE = Place(topic="orders", partition=0)
PLACED = Subscription(places=(PLACE,))
# How often members and the group hear of each other.
SOON = {
    "group.consumer.heartbeat.interval.ms": "300",
    "group.initial.rebalance.delay.ms": "0",
}
# The group decides within two heartbeats; a machine with much to do takes longer.
WAIT_S = 40


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    folder = tmp_path_factory.mktemp("broker")
    # Without a way from one protocol to the other, a group is of the one that it began with.
    defaults = {"group.consumer.migration.policy": "disabled", **SOON}
    with broker_beside(folder, topics={"orders": PARTITIONS}, defaults=defaults) as broker:
        connection = Connection(bootstrap=broker.bootstrap)
        producer = TopicWriter(connection, "orders")
        for number in range(RECORDS):
            producer.send(
                NewRecord(
                    value=b"%d" % number, partition=number % PARTITIONS, timestamp_ms=1 + number
                )
            )
        producer.flush()
        yield connection


def member(
    connection: Connection,
    group: str,
    *,
    reset: Reset = Reset.EARLIEST,
    commits_itself: bool = True,
) -> Member:
    return Member(connection, group, reset=reset, commits_itself=commits_itself)


def take(reader: Member, *, max_bytes: int = MANY_BYTES, wait_s: float = 1) -> list[Record]:
    return reader.take(max_bytes=max_bytes, min_bytes=-1, wait_s=wait_s)


def all_of(reader: Member, count: int) -> list[Record]:
    found: list[Record] = []
    end = Deadline(WAIT_S)
    while len(found) < count and not end.is_over():
        found += take(reader)
    return found


def numbers(records: list[Record]) -> list[int]:
    return sorted(int(record.value or b"") for record in records)


def test_the_first_records_are_waited_for_however_short_the_wait(connection: Connection) -> None:
    with closing(member(connection, "first")) as reader:
        reader.subscribe(ORDERS)

        assert take(reader, wait_s=0.001)


def test_a_name_that_the_library_takes_for_an_expression_is_no_subscription() -> None:
    with pytest.raises(AssertionError, match="topics are names"):
        Subscription(topics=("orders", "^(a{1,255}){1,255}"))


def test_no_more_is_given_than_fits_and_one_always_is(connection: Connection) -> None:
    with closing(member(connection, "bytes")) as reader:
        reader.subscribe(PLACED)

        sizes = [len(take(reader, max_bytes=limit)) for limit in (1, 2)]

    assert sizes == [1, 2]


def test_what_reached_nobody_comes_again_in_its_order(connection: Connection) -> None:
    with closing(member(connection, "back")) as reader:
        reader.subscribe(PLACED)
        first = take(reader, max_bytes=2)

        reader.give_back(first)

        assert [record.offset for record in all_of(reader, 5)] == list(range(5))


def test_only_what_was_delivered_is_committed(connection: Connection) -> None:
    with closing(member(connection, "delivered")) as reader:
        reader.subscribe(PLACED)
        taken = take(reader, max_bytes=3)
        reader.delivered(taken[:2])
        reader.commit()

        assert reader.committed([PLACE]) == {PLACE: 2}


def test_a_client_that_commits_itself_does_so_when_it_leaves(connection: Connection) -> None:
    with closing(member(connection, "leaves")) as reader:
        reader.subscribe(ORDERS)
        reader.delivered(all_of(reader, RECORDS))

    with closing(member(connection, "leaves")) as other:
        found = other.committed([PLACE])

    assert found == {PLACE: RECORDS // PARTITIONS}


def test_one_that_does_not_commits_nothing(connection: Connection) -> None:
    with closing(member(connection, "by-hand", commits_itself=False)) as reader:
        reader.subscribe(ORDERS)
        reader.delivered(all_of(reader, RECORDS))

    with closing(member(connection, "by-hand")) as other:
        assert other.committed([PLACE]) == {}


@pytest.mark.parametrize(
    ("position", "offsets"),
    [
        (Position(kind=PositionKind.BEGINNING), [0, 1, 2, 3, 4]),
        (Position(kind=PositionKind.OFFSET, value=3), [3, 4]),
        (Position(kind=PositionKind.TIME, value=7), [3, 4]),
        (Position(kind=PositionKind.END), []),
    ],
)
def test_a_client_goes_on_where_it_is_told(
    connection: Connection, position: Position, offsets: list[int]
) -> None:
    with closing(member(connection, "seek")) as reader:
        reader.subscribe(PLACED)
        take(reader, max_bytes=1)

        reader.seek({PLACE: position})

        found = all_of(reader, len(offsets)) if offsets else take(reader, wait_s=0.2)
        assert [record.offset for record in found] == offsets


def test_a_partition_that_is_not_read_takes_no_position(connection: Connection) -> None:
    with closing(member(connection, "seek")) as reader:
        reader.subscribe(PLACED)

        with pytest.raises(NotAssigned, match="partition 1"):
            reader.seek({Place(topic="orders", partition=1): Position(kind=PositionKind.BEGINNING)})


def test_two_of_a_group_divide_the_partitions(connection: Connection) -> None:
    with (
        closing(member(connection, "two")) as one,
        closing(member(connection, "two")) as other,
    ):
        one.subscribe(ORDERS)
        take(one)
        other.subscribe(ORDERS)
        end = Deadline(WAIT_S)
        while not (len(one.assignment()) == len(other.assignment()) == 1) and not end.is_over():
            one.look()
            other.look()

        assert {*one.assignment(), *other.assignment()} == {
            PLACE,
            Place(topic="orders", partition=1),
        }


def test_a_partition_that_is_paused_gives_nothing_and_loses_nothing(
    connection: Connection,
) -> None:
    Admin(connection).create([NewTopic(name="paused", partitions=2)])
    producer = TopicWriter(connection, "paused")
    for number in range(2_000):
        producer.send(NewRecord(value=b"%d" % number, partition=number % 2))
    producer.flush()
    one, other = (Place(topic="paused", partition=index) for index in range(2))
    with closing(member(connection, "paused")) as reader:
        reader.subscribe(Subscription(topics=("paused",)))
        found = take(reader, max_bytes=20)
        reader.pause([one])
        left = [record.offset for record in found if record.partition == 1]
        while len(left) < 1_000:
            some = take(reader, max_bytes=500)
            reader.give_back(some[1:])
            left += [record.offset for record in some[:1] if record.partition == 1]
            assert not [record for record in some if record.partition == 0]
        assert left == list(range(1_000))
        assert reader.ends([one, other])[other] == 1_000
        reader.resume([one])
        offsets = [record.offset for record in found if record.partition == 0]
        offsets += [record.offset for record in all_of(reader, 1_000 - len(offsets))]
        assert offsets == list(range(1_000))


def test_a_partition_is_moved_while_it_is_paused(connection: Connection) -> None:
    with closing(member(connection, "moved")) as reader:
        reader.subscribe(PLACED)
        all_of(reader, 5)
        reader.pause([PLACE])
        reader.seek({PLACE: Position(kind=PositionKind.OFFSET, value=3)})
        assert take(reader, wait_s=0.3) == []
        reader.resume([PLACE])
        assert [record.offset for record in all_of(reader, 2)] == [3, 4]


def test_a_client_that_is_subscribed_to_more_goes_on_with_what_it_read(
    connection: Connection,
) -> None:
    Admin(connection).create([NewTopic(name=name, partitions=1) for name in ("more", "most")])
    with closing(member(connection, "more", reset=Reset.LATEST)) as reader:
        reader.subscribe(Subscription(topics=("more",)))
        take(reader)
        reader.subscribe(Subscription(topics=("more", "most")))
        end = Deadline(WAIT_S)
        while len(reader.assignment()) < 2 and not end.is_over():
            reader.look()
        producer = TopicWriter(connection, "more")
        producer.send(NewRecord(value=b"1"))
        producer.flush()

        assert numbers(all_of(reader, 1)) == [1]

        reader.subscribe(Subscription(topics=("most",)))
        assert [place.topic for place in reader.assignment()] == ["most"]


class Polled:
    """A client of the library that notes how many records it was asked for."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def consume(self, most: int, wait_s: float) -> Any:
        self.asked.append(most)
        return self._client.consume(most, wait_s)


def test_a_client_that_fetches_nothing_stays_in_its_group_with_few_records(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_IDLE_RECORDS", 5)
    with closing(member(connection, "idle")) as reader:
        reader.subscribe(ORDERS)
        end = Deadline(WAIT_S)
        while len(reader._records) < 5 and not end.is_over():  # noqa: SLF001 - kept inside
            reader.look()
        polled = Polled(reader._client.open())  # noqa: SLF001 - as above
        monkeypatch.setattr(reader._client, "_client", polled)  # noqa: SLF001 - as above
        reader.look()

        assert polled.asked == [0]
        assert len(reader._records) == 5  # noqa: SLF001 - as above
        assert len(all_of(reader, RECORDS)) == RECORDS


def test_slow_member_reads_a_few_records_at_a_time_and_rewinds(connection: Connection) -> None:
    with closing(member(connection, "slow", commits_itself=False)) as reader:
        reader.subscribe(ORDERS)
        first: list[Record] = []
        end = Deadline(WAIT_S)
        while len(first) < 3 and not end.is_over():
            some = reader.read(1)
            assert len(some) <= 1
            first += some
        reader.delivered(first)
        reader.seek(dict.fromkeys(reader.assignment(), Position(kind=PositionKind.BEGINNING)))

        again: list[Record] = []
        while len(again) < RECORDS and not end.is_over():
            again += reader.read(100)
        assert numbers(again) == list(range(RECORDS))


def test_a_group_of_the_classic_protocol_is_joined_by_that(connection: Connection) -> None:
    old = Consumer(
        {"bootstrap.servers": connection.bootstrap, "group.id": "old", "heartbeat.interval.ms": 100}
    )
    with closing(old), closing(member(connection, "old")) as reader:
        old.subscribe(["orders"])
        end = Deadline(WAIT_S)
        while not old.assignment() and not end.is_over():
            old.poll(0.1)
        reader.subscribe(ORDERS)
        while not reader.assignment() and not end.is_over():
            reader.look()
            old.poll(0.05)

        assert len(reader.assignment()) == 1


def test_an_end_of_waiting_is_seen_at_once(connection: Connection) -> None:
    with closing(member(connection, "stopped")) as reader:
        reader.subscribe(ORDERS)
        reader.stop()

        assert take(reader, wait_s=WAIT_S) == []


def test_a_client_that_has_left_does_nothing(connection: Connection) -> None:
    reader = member(connection, "left")
    reader.close()

    with pytest.raises(Closed):
        reader.subscribe(ORDERS)


def test_without_a_committed_offset_it_may_be_told_to_fail(connection: Connection) -> None:
    with closing(member(connection, "none", reset=Reset.NONE)) as reader:
        reader.subscribe(ORDERS)

        with pytest.raises(KafkaFailure, match="OFFSET"):
            take(reader)


def test_a_topic_that_comes_later_is_read_then(connection: Connection) -> None:
    with closing(member(connection, "later")) as reader:
        reader.subscribe(Subscription(places=(Place(topic="later", partition=0),)))
        Admin(connection).create([NewTopic(name="later", partitions=1)])
        producer = TopicWriter(connection, "later")
        producer.send(NewRecord(value=b"1"))
        producer.flush()

        assert numbers(all_of(reader, 1)) == [1]


def test_a_cluster_that_is_away_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    with broker_beside(tmp_path_factory.mktemp("short"), topics={"orders": 1}) as broker:
        reader = member(Connection(bootstrap=broker.bootstrap), "away")
        reader.subscribe(PLACED)
        take(reader, wait_s=0.1)

    with closing(reader), pytest.raises(KafkaFailure, match="no broker answers there"):
        reader.take(max_bytes=1, min_bytes=-1, wait_s=WAIT_S)
