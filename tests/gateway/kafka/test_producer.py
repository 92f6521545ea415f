"""Producers: each record is acknowledged, or its failure is reported."""

import gc
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.producer import Producer, TopicWriter
from gateway.kafka.values import Delivered, NewRecord, NewTopic, Record, Span
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(
        tmp_path_factory.mktemp("broker"),
        topics={"one": 1, "four": 4, "one_of_two": 1, "two": 2},
        defaults={"auto.create.topics.enable": "false"},
    ) as broker:
        yield Connection(bootstrap=broker.bootstrap)


def read(connection: Connection, topic: str, partition: int = 0) -> list[Record]:
    spans = [Span(partition=partition, start=0)]
    with Reader(connection, topic, spans, stops_at_end=True) as reader:
        return [record for batch in reader.batches() for record in batch]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_record_arrives_as_it_was_sent(connection: Connection, codec: str) -> None:
    Admin(connection).create([NewTopic(name=codec, partitions=1)])
    sent = [
        NewRecord(value=b"v", key=b"k", headers=(("a", b"1"), ("a", None)), timestamp_ms=5),
        NewRecord(value=None, key=None, timestamp_ms=6),
        NewRecord(value=b"", key=b"", timestamp_ms=7),
        NewRecord(value=bytes(range(256)) * 100, key="schlüssel".encode(), timestamp_ms=8),
    ]

    producer = TopicWriter(connection, codec, codec=codec)
    for record in sent:
        producer.send(record)
    producer.flush()

    assert [
        NewRecord(value=r.value, key=r.key, headers=r.headers, timestamp_ms=r.timestamp_ms)
        for r in read(connection, codec)
    ] == sent


def test_every_acknowledgement_tells_its_place(connection: Connection) -> None:
    told: list[Delivered] = []
    producer = TopicWriter(connection, "four", on_delivery=told.append)

    for _ in range(3):
        producer.send(NewRecord(value=b"x", partition=2))
    producer.flush()

    assert [(each.partition, each.offset) for each in told] == [(2, offset) for offset in range(3)]
    assert all(each.timestamp_ms for each in told)


def test_a_key_goes_where_javas_client_sends_it(connection: Connection) -> None:
    """The numbers are murmur2's: what Kafka's own partitioner says of these keys, modulo 4."""
    told: list[Delivered] = []
    producer = TopicWriter(connection, "four", on_delivery=told.append)

    for key in (b"alice", b"bob"):
        producer.send(NewRecord(value=b"x", key=key))
        producer.flush()

    assert [delivered.partition for delivered in told] == [
        murmur2(key) % 4 for key in (b"alice", b"bob")
    ]


def murmur2(key: bytes) -> int:
    """Kafka's hash of a key, without its sign."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    hashed = 0x9747B28C ^ len(key)
    whole = len(key) & ~3
    for begin in range(0, whole, 4):
        word = int.from_bytes(key[begin : begin + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        hashed = hashed * multiplier & mask ^ word
    if rest := key[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * multiplier & mask
    hashed = (hashed ^ hashed >> 13) * multiplier & mask
    return (hashed ^ hashed >> 15) & 0x7FFFFFFF


def test_a_record_that_is_too_large_is_told_with_its_partition(connection: Connection) -> None:
    producer = TopicWriter(connection, "one")
    producer.send(NewRecord(value=bytes(2_000_000)))

    with pytest.raises(KafkaFailure, match="topic one, partition 0") as caught:
        producer.flush()

    assert caught.value.name == "MESSAGE_TOO_LARGE"
    assert "max.message.bytes" in caught.value.next_step


def test_a_topic_that_does_not_exist_is_told(connection: Connection) -> None:
    impatient = Connection(
        bootstrap=connection.bootstrap, properties={"topic.metadata.propagation.max.ms": "300"}
    )
    producer = TopicWriter(impatient, "nobody")
    producer.send(NewRecord(value=b"x"))

    with pytest.raises(KafkaFailure, match="topic nobody") as caught:
        producer.flush()

    assert caught.value.kind is Kind.NOT_FOUND


def test_a_partition_that_does_not_exist_is_told(connection: Connection) -> None:
    producer = TopicWriter(connection, "one")
    producer.send(NewRecord(value=b"x", partition=9))

    with pytest.raises(KafkaFailure, match="topic one, partition 9") as caught:
        producer.flush()

    assert caught.value.kind is Kind.NOT_FOUND


def test_a_source_faster_than_the_cluster_waits_and_loses_nothing(connection: Connection) -> None:
    Admin(connection).create([NewTopic(name="fast", partitions=1)])
    told: list[Delivered] = []
    # A queue of ten, so that a hundred records fill it again and again.
    small = Connection(
        bootstrap=connection.bootstrap, properties={"queue.buffering.max.messages": "10"}
    )
    producer = TopicWriter(small, "fast", on_delivery=told.append)

    for number in range(100):
        producer.send(NewRecord(value=b"%d" % number))
    producer.flush()

    assert [delivered.offset for delivered in told] == list(range(100))
    assert [record.value for record in read(connection, "fast")] == [b"%d" % n for n in range(100)]


@pytest.mark.parametrize("name", ["\ud800", "a\udfffb", "a\0b"])
def test_a_header_whose_name_the_library_cannot_take_is_refused(
    connection: Connection, name: str
) -> None:
    with pytest.raises(KafkaFailure, match="its name is not plain text"):
        TopicWriter(connection, "one").send(NewRecord(value=b"x", headers=((name, b"1"),)))


def test_records_of_several_topics_are_reported_by_a_flush(connection: Connection) -> None:
    producer = Producer(connection)
    reported: list[Delivered | KafkaFailure] = []

    producer.send("one_of_two", NewRecord(value=b"a"), reported.append)
    producer.send("two", NewRecord(value=b"b", partition=1), reported.append)
    producer.flush()

    assert all(isinstance(one, Delivered) for one in reported)
    assert len(reported) == 2
    assert [r.value for r in read(connection, "one_of_two")] == [b"a"]
    assert [r.value for r in read(connection, "two", 1)] == [b"b"]
    assert not producer.is_broken


def test_missing_topic_fails_its_own_records_only(connection: Connection) -> None:
    producer = Producer(connection)
    reported: list[Delivered | KafkaFailure] = []

    producer.send("missing", NewRecord(value=b"a"), reported.append)
    producer.send("two", NewRecord(value=b"b", partition=0), reported.append)
    producer.flush()

    assert {type(one) for one in reported} == {Delivered, KafkaFailure}


def test_unreachable_cluster_breaks_the_producer() -> None:
    producer = Producer(Connection(bootstrap="127.0.0.1:1", timeout_s=5))
    producer.send("one", NewRecord(value=b"a"), lambda _: None)

    with pytest.raises(KafkaFailure, match="BROKER_NOT_AVAILABLE"):
        producer.flush()

    assert producer.is_broken


def test_a_producer_that_is_closed_leaves_no_thread_behind_whatever_it_could_not_send() -> None:
    with socket.socket() as taken:
        # Bound and not listening: it refuses, and nobody else can take it.
        taken.bind(("127.0.0.1", 0))
        away = Connection(bootstrap=f"127.0.0.1:{taken.getsockname()[1]}")
        client = TopicWriter(away, "one")
        before = threads()
        producer = TopicWriter(away, "one")
        producer.send(NewRecord(value=b"x"))
        assert threads() > before

        producer.close()
        del producer

        end = time.monotonic() + 30
        while threads() > before:
            assert time.monotonic() < end, "its threads are still there"
            gc.collect()
            threading.Event().wait(0.01)
        client.close()


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))
