"""Records out, from where the caller says, to where it says."""

from collections.abc import Iterator

import pytest

from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.protocol.records.builder import BatchBuilder
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic, Record, Span, TimestampKind
from tests.fakes.broker_thread import broker_beside
from tests.wire import Wire

pytestmark = pytest.mark.slow

PARTITIONS = 3
RECORDS = 20


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(tmp_path_factory.mktemp("broker"), topics={"orders": PARTITIONS}) as broker:
        connection = Connection(bootstrap=broker.bootstrap)
        producer = TopicWriter(connection, "orders")
        for number in range(RECORDS):
            for partition in range(PARTITIONS):
                producer.send(
                    NewRecord(value=b"%d" % number, partition=partition, timestamp_ms=number)
                )
        producer.flush()
        yield connection


def read(
    connection: Connection, *spans: Span, topic: str = "orders", stops_at_end: bool = False
) -> list[Record]:
    with Reader(connection, topic, spans, stops_at_end=stops_at_end) as reader:
        return [record for batch in reader.batches() for record in batch]


def test_a_reader_that_stops_at_the_end_has_read_every_partition(connection: Connection) -> None:
    spans = [Span(partition=index, start=0) for index in range(PARTITIONS)]

    records = read(connection, *spans, stops_at_end=True)

    for partition in range(PARTITIONS):
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == list(range(RECORDS))


def test_a_span_is_read_from_its_start_up_to_its_end(connection: Connection) -> None:
    records = read(connection, Span(partition=1, start=5, end=9))

    assert [record.offset for record in records] == [5, 6, 7, 8]


def test_a_span_that_ends_where_the_log_ends_ends(connection: Connection) -> None:
    records = read(connection, Span(partition=1, start=RECORDS - 1, end=RECORDS))

    assert [record.offset for record in records] == [RECORDS - 1]


def test_spans_without_records_end_at_once(connection: Connection) -> None:
    assert read(connection, Span(partition=0, start=4, end=4)) == []
    assert read(connection, Span(partition=0, start=RECORDS), stops_at_end=True) == []


def test_a_record_carries_its_time_and_who_set_it(connection: Connection) -> None:
    Admin(connection).create(
        [NewTopic(name="stamped", configs={"message.timestamp.type": "LogAppendTime"})]
    )
    producer = TopicWriter(connection, "stamped")
    producer.send(NewRecord(value=b"x", partition=0, timestamp_ms=1))
    producer.flush()

    [ours] = read(connection, Span(partition=0, start=3, end=4))
    [stamped] = read(connection, Span(partition=0, start=0, end=1), topic="stamped")

    assert (ours.timestamp_ms, ours.timestamp_kind) == (3, TimestampKind.CREATE_TIME)
    assert stamped.timestamp_kind is TimestampKind.LOG_APPEND_TIME
    assert stamped.timestamp_ms != 1


def test_a_header_whose_name_is_no_text_ends_no_reading(connection: Connection) -> None:
    Admin(connection).create([NewTopic(name="hostile", partitions=1)])
    batch = BatchBuilder()
    batch.append(b"key", b"first", [(b"\xff", b"x"), (b"good", b"y")])
    batch.append(b"key", b"second", [(b"good", b"y")])
    data = TopicProduceData(
        name="hostile",
        partition_data=[PartitionProduceData(index=0, records=memoryview(batch.build()))],
    )
    with Wire(connection.bootstrap) as wire:
        wire.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)

    first, second = read(connection, Span(partition=0, start=0, end=2), topic="hostile")

    assert (first.value, first.headers, first.has_unread_headers) == (b"first", (), True)
    assert (second.headers, second.has_unread_headers) == ((("good", b"y"),), False)


def test_an_offset_that_a_partition_does_not_hold_is_a_failure(connection: Connection) -> None:
    with pytest.raises(KafkaFailure, match="topic orders, partition 2") as caught:
        read(connection, Span(partition=2, start=999), stops_at_end=True)

    assert caught.value.name == "OFFSET_OUT_OF_RANGE"
    assert caught.value.kind is Kind.NOT_FOUND


def test_a_reader_goes_on_with_what_is_written_later(connection: Connection) -> None:
    Admin(connection).create([NewTopic(name="later", partitions=1)])
    with Reader(connection, "later", [Span(partition=0, start=0)]) as reader:
        batches = reader.batches()
        while not reader.ends:
            assert next(batches) == []

        producer = TopicWriter(connection, "later")
        producer.send(NewRecord(value=b"new"))
        producer.flush()

        found: list[Record] = []
        while not found:
            found = next(batches)
        assert [record.value for record in found] == [b"new"]


def test_a_cluster_that_goes_away_for_good_ends_the_reading(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("short")
    with broker_beside(folder, topics={"orders": 1}) as broker:
        brief = Connection(bootstrap=broker.bootstrap, timeout_s=1)
        reader = Reader(brief, "orders", [Span(partition=0, start=0)])
        batches = reader.batches()
        while not reader.ends:
            next(batches)

    with reader, pytest.raises(KafkaFailure, match="no broker answers there"):
        for _ in batches:
            pass
