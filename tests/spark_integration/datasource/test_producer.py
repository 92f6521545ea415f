"""Records reach their partitions in order and once, whatever a broker says on the way."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.values import Record, Span
from spark_integration.datasource import producer as module
from spark_integration.datasource.encode import CODECS, NO_HEADERS, encoded_headers
from spark_integration.datasource.producer import IdempotentProducer, WriteFailed
from spark_integration.datasource.wire import messages
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.errors import Unreachable
from spark_integration.datasource.wire.messages import Produced, TopicPartition
from spark_integration.datasource.wire.settings import parse_settings
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow

TOPICS = ["codecs", "order", "lost", "moved", "split", "anew", "small", "many", "passing", "led"]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker_beside(
        tmp_path_factory.mktemp("broker"),
        topics=dict.fromkeys(TOPICS, 3),
        defaults={"auto.create.topics.enable": "false"},
    ) as broker:
        yield broker.bootstrap


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(parse_settings({"bootstrap.servers": bootstrap})) as made:
        yield made


class Moments:
    """A clock that a pause moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def read(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def producer_of(cluster: Cluster, **changes: Any) -> IdempotentProducer:
    moments = Moments()
    settings = {
        "codec": 0,
        "batch_bytes": 1000,
        "buffer_bytes": 100_000,
        "delivery_seconds": 60.0,
        "clock": moments.read,
        "pause": moments.pause,
    }
    return IdempotentProducer(cluster, **{**settings, **changes})


def read(bootstrap: str, topic: str, partition: int = 0) -> list[Record]:
    spans = [Span(partition=partition, start=0)]
    with Reader(Connection(bootstrap=bootstrap), topic, spans, stops_at_end=True) as reader:
        return [record for batch in reader.batches() for record in batch]


def values(count: int) -> list[tuple[None, bytes, bytes]]:
    return [(None, b"%d" % number, NO_HEADERS) for number in range(count)]


def numbers(records: Sequence[Record]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


@pytest.mark.parametrize("codec", CODECS)
def test_a_foreign_client_reads_what_was_written(
    cluster: Cluster, bootstrap: str, codec: str
) -> None:
    producer = producer_of(cluster, codec=CODECS[codec])
    headers = (("a", b"1"), ("a", None))
    before = len(read(bootstrap, "codecs"))

    producer.append(
        TopicPartition("codecs", 0),
        [(b"k", b"v" * 3000, encoded_headers(headers)), (None, None, NO_HEADERS)],
    )
    producer.flush()

    first, second = read(bootstrap, "codecs")[before:]
    assert (first.key, first.value, first.headers) == (b"k", b"v" * 3000, headers)
    assert (second.key, second.value, second.headers) == (None, None, ())
    assert producer.written == 2


def test_batches_of_many_partitions_keep_their_order(cluster: Cluster, bootstrap: str) -> None:
    producer = producer_of(cluster, buffer_bytes=5000)

    for _ in range(2):
        for partition in range(3):
            producer.append(TopicPartition("order", partition), values(1000))
    producer.flush()

    for partition in range(3):
        assert numbers(read(bootstrap, "order", partition)) == 2 * list(range(1000))
    assert producer.written == 6000


def test_what_waits_is_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    producer = producer_of(cluster, batch_bytes=100_000, buffer_bytes=20_000)
    flush = producer.flush

    def noted() -> None:
        held.append(producer.held_bytes)
        flush()

    monkeypatch.setattr(producer, "flush", noted)

    for partition in range(3):
        producer.append(TopicPartition("small", partition), values(5000))

    assert max(held) < 20_100
    assert len(held) >= 5


def test_an_answer_that_is_lost_writes_nothing_twice(
    cluster: Cluster, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_produce = messages.read_produce
    lost: list[Mapping[TopicPartition, Produced]] = []

    def lose_first(reader: Any) -> Mapping[TopicPartition, Produced]:
        answers = read_produce(reader)
        if len(lost) < 2:
            lost.append(answers)
            raise Unreachable("the answer was lost")
        return answers

    monkeypatch.setattr(messages, "read_produce", lose_first)
    producer = producer_of(cluster)

    producer.append(TopicPartition("lost", 0), values(1000))
    producer.flush()

    assert len(lost) == 2
    assert numbers(read(bootstrap, "lost")) == list(range(1000))


def answering(monkeypatch: pytest.MonkeyPatch, code: int, *, times: int) -> None:
    """Make the broker answer with an error, although it has written the batch."""
    read_produce = messages.read_produce
    left = [times]

    def answer(reader: Any) -> Mapping[TopicPartition, Produced]:
        answers = read_produce(reader)
        if left[0]:
            left[0] -= 1
            return {where: Produced(code, -1, "told by the test") for where in answers}
        return answers

    monkeypatch.setattr(messages, "read_produce", answer)


def test_moved_leader_is_looked_up_again(
    cluster: Cluster, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, 6, times=2)
    producer = producer_of(cluster)

    producer.append(TopicPartition("moved", 1), values(100))
    producer.flush()

    assert numbers(read(bootstrap, "moved", 1)) == list(range(100))


def test_a_partition_without_a_leader_keeps_no_other_back(
    cluster: Cluster, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader_of, away = cluster.leader_of, [TopicPartition("led", 0)]

    def some_leader(where: TopicPartition) -> int:
        node = leader_of(where)
        if where in away:
            cluster.forget_leader(where)
            raise Unreachable(f"{where} has no leader at the moment")
        return node

    monkeypatch.setattr(cluster, "leader_of", some_leader)
    moments = Moments()

    def pause(seconds: float) -> None:
        # By now the other partition has all that it was sent.
        assert numbers(read(bootstrap, "led", 1)) == list(range(100))
        if moments.now > 10:
            away.clear()
        moments.pause(seconds)

    producer = producer_of(cluster, clock=moments.read, pause=pause)
    for partition in (0, 1):
        producer.append(TopicPartition("led", partition), values(100))
    producer.flush()

    assert numbers(read(bootstrap, "led", 0)) == list(range(100))
    assert producer.written == 200


def test_forgotten_producer_continues_under_a_new_id(
    cluster: Cluster, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, 59, times=1)
    producer = producer_of(cluster)

    producer.append(TopicPartition("anew", 0), values(10))
    producer.flush()

    # At least once: the broker had the batch, and forgot who sent it.
    assert numbers(read(bootstrap, "anew")) == 2 * list(range(10))


def test_a_broker_that_always_forgets_ends_the_write(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, 45, times=100)
    producer = producer_of(cluster)
    producer.append(TopicPartition("many", 0), values(1))

    with pytest.raises(WriteFailed, match="for 8 producer ids in a row"):
        producer.flush()


def test_transient_error_is_retried_and_then_reported_with_its_cause(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, 19, times=10_000)
    producer = producer_of(cluster, delivery_seconds=5.0)
    producer.append(TopicPartition("passing", 0), values(1))

    with pytest.raises(WriteFailed, match=r"for 5 s: .*NOT_ENOUGH_REPLICAS.*samsa status"):
        producer.flush()


def test_a_batch_that_a_topic_does_not_allow_is_halved_until_it_fits(
    cluster: Cluster, bootstrap: str
) -> None:
    """Above the limit of the topic: 1,048,588 bytes."""
    producer = producer_of(cluster, batch_bytes=3_000_000, buffer_bytes=10_000_000)
    rows = [(None, b"%07d" % number * 100, NO_HEADERS) for number in range(4000)]

    producer.append(TopicPartition("split", 0), rows)
    producer.flush()
    producer.append(TopicPartition("split", 0), rows[:1])
    producer.flush()

    written = [record.value for record in read(bootstrap, "split")]
    assert written == [value for _, value, _ in [*rows, rows[0]]]


def test_too_large_record_is_reported_with_its_size(cluster: Cluster) -> None:
    producer = producer_of(cluster, codec=CODECS["none"])

    with pytest.raises(WriteFailed, match=r"one record has 2000\d\d\d bytes.*max.message.bytes"):
        producer.append(TopicPartition("split", 2), [(None, bytes(2_000_000), NO_HEADERS)])


def test_deleted_topic_is_reported_within_seconds(cluster: Cluster) -> None:
    moments = Moments()
    producer = producer_of(cluster, clock=moments.read, pause=moments.pause)
    producer.append(TopicPartition("nowhere", 0), values(1))

    with pytest.raises(WriteFailed, match="samsa topics create"):
        producer.flush()

    assert moments.now < 10


def test_a_sequence_begins_again_after_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = module.Lane(next_sequence=module.SEQUENCES - 3)
    lane.sealed.append(module.Sealed(records=b"", count=5, timestamp=0))

    numbered(lane)

    assert lane.sealed[0].sequence == module.SEQUENCES - 3
    assert lane.next_sequence == 2


def numbered(lane: module.Lane) -> bytes:
    producer = IdempotentProducer(
        Cluster(parse_settings({"bootstrap.servers": "nobody:1"})),
        codec=0,
        batch_bytes=1,
        buffer_bytes=1,
        delivery_seconds=1,
    )
    return producer._numbered(lane, messages.Producer(1, 0))  # noqa: SLF001
