"""Records into many topics, each told."""

from collections.abc import Iterator

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.sender import Sender
from gateway.kafka.values import Delivered, NewRecord, Span
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with broker_beside(
        tmp_path_factory.mktemp("broker"),
        topics={"one": 1, "two": 2},
        defaults={"auto.create.topics.enable": "false"},
    ) as broker:
        yield Connection(bootstrap=broker.bootstrap)


def values(connection: Connection, topic: str, partition: int = 0) -> list[bytes | None]:
    spans = [Span(partition=partition, start=0)]
    with Reader(connection, topic, spans, stops_at_end=True) as reader:
        return [record.value for batch in reader.batches() for record in batch]


def test_records_for_several_topics_are_told_after_a_flush(connection: Connection) -> None:
    sender = Sender(connection)
    told: list[Delivered | KafkaFailure] = []

    sender.send("one", NewRecord(value=b"a"), told.append)
    sender.send("two", NewRecord(value=b"b", partition=1), told.append)
    sender.flush()

    assert all(isinstance(one, Delivered) for one in told)
    assert len(told) == 2
    assert values(connection, "one") == [b"a"]
    assert values(connection, "two", 1) == [b"b"]
    assert not sender.is_broken


def test_a_record_for_a_topic_that_is_not_there_is_told_by_itself(connection: Connection) -> None:
    sender = Sender(connection)
    told: list[Delivered | KafkaFailure] = []

    sender.send("none", NewRecord(value=b"a"), told.append)
    sender.send("two", NewRecord(value=b"b", partition=0), told.append)
    sender.flush()

    assert {type(one) for one in told} == {Delivered, KafkaFailure}


def test_a_name_of_a_header_that_would_end_the_process_is_refused(connection: Connection) -> None:
    sender = Sender(connection)

    with pytest.raises(KafkaFailure, match="INVALID_REQUEST"):
        sender.send("one", NewRecord(value=b"a", headers=(("a\0b", b""),)), lambda _: None)


def test_a_cluster_that_is_away_is_told_within_seconds() -> None:
    sender = Sender(Connection(bootstrap="127.0.0.1:1", timeout_s=5))
    sender.send("one", NewRecord(value=b"a"), lambda _: None)

    with pytest.raises(KafkaFailure, match="BROKER_NOT_AVAILABLE"):
        sender.flush()

    assert sender.is_broken
