"""Exact ranges read from our broker: each record is returned once, or an error says why not."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, cast

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from spark_integration.datasource import fetching
from spark_integration.datasource.errors import CorruptBatch, DataLost
from spark_integration.datasource.fetching import Range, RangeFetch, Reading, read_range
from spark_integration.datasource.wire import messages
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.errors import BrokerError, Refused, Unreachable, WireCorrupt
from spark_integration.datasource.wire.messages import (
    EARLIEST,
    LATEST,
    Aborted,
    Fetched,
    TopicPartition,
)
from spark_integration.datasource.wire.settings import parse_settings
from tests.builders.cleaning import clean_now, rows_of
from tests.builders.spark_batches import packed_batch
from tests.fakes.broker_thread import BesideBroker, broker_beside

pytestmark = pytest.mark.slow

MIB = 2**20
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BesideBroker]:
    with broker_beside(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def cluster(broker: BesideBroker) -> Iterator[Cluster]:
    settings = parse_settings({"bootstrap.servers": broker.bootstrap})
    with Cluster(settings, patience_seconds=20, new_topic_seconds=0.3) as cluster:
        yield cluster


def create(broker: BesideBroker, name: str, **configs: str) -> None:
    # Times of these tests are made up.
    named = {"retention.ms": "-1", **{key.replace("_", "."): configs[key] for key in configs}}
    broker.call(lambda: broker.running.twin.create_topic(name, configs=named))


def fill(broker: BesideBroker, topic: str, count: int) -> None:
    """Write records a millisecond apart, each as a batch of its own."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1})
    for number in range(count):
        producer.produce(topic, key=b"k", value=b"%d" % number, timestamp=1000 + number)
    producer.flush()


def whole(cluster: Cluster, topic: str, *, start: int = 0, end: int | None = None) -> Range:
    where = TopicPartition(topic, 0)
    last = cluster.list_offsets({where: LATEST})[where] if end is None else end
    topic_id = cluster.metadata([topic]).topics[topic].topic_id
    return Range(topic=topic, topic_id=topic_id, partition=0, start=start, end=last)


def rows(cluster: Cluster, wanted: Range, reading: Reading | None = None) -> list[dict[str, Any]]:
    batches = read_range(cluster, wanted, reading or Reading())
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_comes_with_headers_and_nulls(
    broker: BesideBroker, cluster: Cluster, codec: str
) -> None:
    topic = f"codec-{codec}"
    create(broker, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": codec})
    for number in range(2500):
        key = None if number % 3 == 0 else f"{number}"
        value = None if number % 5 == 0 else b"v" * (number % 300)
        headers: dict[str, str | bytes | None] = {"a": b"1", "b": None} if number % 7 == 0 else {}
        producer.produce(topic, key=key, value=value, headers=headers, timestamp=1000 + number)
    producer.flush()

    found = rows(cluster, whole(cluster, topic, start=10, end=2400), Reading(has_headers=True))

    assert [row["offset"] for row in found] == list(range(10, 2400))
    for row in found:
        number = row["offset"]
        assert row["key"] == (None if number % 3 == 0 else str(number).encode())
        assert row["value"] == (None if number % 5 == 0 else b"v" * (number % 300))
        assert row["headers"] == (
            [{"key": "a", "value": b"1"}, {"key": "b", "value": None}] if number % 7 == 0 else None
        )
        assert row["timestamp"].timestamp() == pytest.approx(1 + number / 1000)


def test_a_record_of_18_mb_comes_whole_and_alone(broker: BesideBroker, cluster: Cluster) -> None:
    create(broker, "large", max_message_bytes=str(20 * MIB))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 20 * MIB})
    for size in (10, 18 * MIB, 20):
        producer.produce("large", value=b"x" * size)
        producer.flush()

    batches = list(read_range(cluster, whole(cluster, "large"), Reading(fetch_bytes=MIB)))

    sizes = [len(value) for batch in batches for value in batch.column("value").to_pylist()]
    assert sizes == [10, 18 * MIB, 20]
    assert len(batches) == 2


def test_gaps_of_compaction_are_read_over(broker: BesideBroker, cluster: Cluster) -> None:
    create(broker, "kept", cleanup_policy="compact", segment_bytes=str(MIB))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(8):
        producer.produce("kept", key=b"k" if number else b"first", value=b"x" * (MIB // 2))
        producer.flush()
    log = broker.running.context.replicas.leader("kept", 0).log
    broker.call(lambda: clean_now(log))
    expected = [row.offset for row in broker.call(lambda: rows_of(log))]
    assert expected != list(range(8))

    found = rows(cluster, whole(cluster, "kept"))
    inside = rows(cluster, whole(cluster, "kept", start=1, end=3))

    assert [row["offset"] for row in found] == expected
    assert [row["offset"] for row in inside] == [at for at in expected if 1 <= at < 3]


def test_deleted_ranges_fail_a_read_or_are_skipped_as_configured(
    broker: BesideBroker, cluster: Cluster
) -> None:
    create(broker, "short")
    fill(broker, "short", 10)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([Place("short", 0, 6)])[Place("short", 0)].result()

    with pytest.raises(DataLost, match=r"offsets 2 to 6 of short-0 are gone: .*begins at 6"):
        rows(cluster, whole(cluster, "short", start=2))
    found = rows(cluster, whole(cluster, "short", start=2), Reading(has_to_be_whole=False))
    gone = rows(cluster, whole(cluster, "short", end=5), Reading(has_to_be_whole=False))

    assert [row["offset"] for row in found] == [6, 7, 8, 9]
    assert gone == []


class Scripted(RangeFetch):
    """A fetch whose answers are written down."""

    def __init__(self, wanted: Range, reading: Reading, answers: list[Fetched]) -> None:
        super().__init__(cast("Cluster", None), wanted, reading, pause=self.pauses.append)
        self._answers = answers

    pauses: ClassVar[list[float]] = []

    def _fetch(self) -> Fetched:
        return self._answers.pop(0)

    def _send_ahead(self) -> None:
        return None


def fetched(records: bytes, **fields: Any) -> Fetched:
    told = {"high_watermark": 100, "last_stable_offset": 100, "throttle_ms": 0, "aborted": ()}
    return Fetched(
        error_code=0, log_start_offset=0, records=memoryview(records), **{**told, **fields}
    )


WANTED = Range(topic="t", topic_id=bytes(16), partition=0, start=3, end=50)


def offsets_of(fetch: RangeFetch) -> list[int]:
    return [batch.base_offset for batch in fetch.visible_batches()]


def test_a_batch_that_came_damaged_is_fetched_again_and_then_named() -> None:
    sound = packed_batch(base_offset=3), packed_batch(base_offset=49)
    broken = sound[1][:-2] + b"?" + sound[1][-1:]
    once = Scripted(
        WANTED, Reading(), [fetched(sound[0] + broken), fetched(broken), fetched(sound[1])]
    )
    always = Scripted(WANTED, Reading(), [fetched(sound[0]), fetched(broken), fetched(broken)])

    assert offsets_of(once) == [3, 49]
    with pytest.raises(CorruptBatch, match=r"t-0 cannot be read at offset 4: .*; 2 attempts"):
        offsets_of(always)


def test_response_without_a_whole_batch_is_not_requested_endlessly() -> None:
    cut = packed_batch(base_offset=3)[:-1]
    old = packed_batch(base_offset=1)

    for useless in (cut, old):
        with pytest.raises(CorruptBatch, match="first batch is cut, or ends before"):
            offsets_of(Scripted(WANTED, Reading(), [fetched(useless), fetched(useless)]))


def test_empty_responses_of_a_growing_log_end_the_range() -> None:
    """Compaction may leave nothing behind the last record of a range."""
    answers = [fetched(packed_batch(base_offset=9)), *(fetched(b"") for _ in range(3))]

    assert offsets_of(Scripted(WANTED, Reading(), answers)) == [9]


def test_a_quota_that_leaves_records_out_is_waited_for() -> None:
    late = [fetched(b"", throttle_ms=40) for _ in range(9)]

    fetch = Scripted(WANTED, Reading(), [*late, fetched(packed_batch(base_offset=49))])

    assert offsets_of(fetch) == [49]
    assert set(fetch.pauses) == {0.04}


def test_aborted_records_are_read_or_skipped_as_configured() -> None:
    log = b"".join(
        packed_batch(base_offset=at, producer_id=owner) for at, owner in ((3, 7), (4, 8), (49, 8))
    )
    committed = Reading(is_committed=True)

    for reading, expected in ((Reading(), [3, 4, 49]), (committed, [4, 49])):
        answer = fetched(log, aborted=(Aborted(7, 3),))
        assert offsets_of(Scripted(WANTED, reading, [answer])) == expected


def test_offsets_behind_the_end_are_lost_too(broker: BesideBroker, cluster: Cluster) -> None:
    create(broker, "ended")
    fill(broker, "ended", 3)
    beyond = whole(cluster, "ended", start=7, end=9)
    half = whole(cluster, "ended", start=1, end=9)

    with pytest.raises(DataLost, match="log ends at 3"):
        rows(cluster, beyond)
    with pytest.raises(DataLost, match=r"offsets 3 to 9 .*log ends at 3"):
        rows(cluster, half, Reading(patience_seconds=0.1, wait_ms=50))
    found = rows(cluster, half, Reading(patience_seconds=0.1, wait_ms=50, has_to_be_whole=False))

    assert [row["offset"] for row in found] == [1, 2]


def test_records_deleted_within_a_batch_are_not_read(
    broker: BesideBroker, cluster: Cluster
) -> None:
    create(broker, "within")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1000})
    for number in range(10):
        producer.produce("within", value=b"%d" % number)
    producer.flush()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([Place("within", 0, 6)])[Place("within", 0)].result()

    found = rows(cluster, whole(cluster, "within", start=2), Reading(has_to_be_whole=False))

    assert [row["offset"] for row in found] == [6, 7, 8, 9]


def test_recreated_topic_is_not_read_as_the_old_one(broker: BesideBroker, cluster: Cluster) -> None:
    create(broker, "again")
    fill(broker, "again", 5)
    old = whole(cluster, "again")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["again"])["again"].result()
    create(broker, "again")
    fill(broker, "again", 5)

    with pytest.raises(DataLost, match="topic again was deleted or recreated"):
        rows(cluster, old)
    assert len(rows(cluster, whole(cluster, "again"))) == 5


def test_a_broker_that_goes_in_the_middle_of_a_range_is_asked_again(
    broker: BesideBroker, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker, "cut")
    fill(broker, "cut", 50)
    monkeypatch.setattr(fetching, "ROWS", 1)
    reading = Reading(fetch_bytes=400)
    found = []

    for batch in read_range(cluster, whole(cluster, "cut"), reading):
        found += batch.column("offset").to_pylist()
        if len(found) % 7 == 0:
            for connection in cluster._connections.values():  # noqa: SLF001 (it is cut)
                with suppress(OSError):  # of another address, and cut before
                    connection._socket.shutdown(socket.SHUT_RDWR)  # noqa: SLF001

    assert found == list(range(50))


def test_a_leader_that_moves_in_the_middle_of_a_range_is_looked_for(
    broker: BesideBroker, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(broker, "moved")
    fill(broker, "moved", 20)
    monkeypatch.setattr(fetching, "ROWS", 1)
    read_fetch, codes = messages.read_fetch, iter([0, 6, 0, 74, 5, 0, 3])

    def answered(reader: Any) -> Fetched:
        return replace(read_fetch(reader), error_code=next(codes, 0))

    monkeypatch.setattr(messages, "read_fetch", answered)
    found = rows(cluster, whole(cluster, "moved"), Reading(fetch_bytes=200))

    assert [row["offset"] for row in found] == list(range(20))
    assert next(codes, None) is None


def test_a_batch_that_is_damaged_on_the_disk_fails_a_read_with_its_place(
    broker: BesideBroker, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    create(broker, "damaged")
    fill(broker, "damaged", 3)
    found = tmp_path_factory.getbasetemp().glob("broker*/**/damaged-0/*.log")
    segment = max(found, key=lambda path: path.stat().st_size)
    content = bytearray(segment.read_bytes())
    content[content.rindex(b"2")] ^= 1
    segment.write_bytes(content)

    with pytest.raises(CorruptBatch, match=r"damaged-0 cannot be read at offset \d: .*CRC"):
        rows(cluster, whole(cluster, "damaged"))


def test_offsets_are_found_by_time_and_at_both_ends(broker: BesideBroker, cluster: Cluster) -> None:
    create(broker, "timed")
    fill(broker, "timed", 4)
    where = TopicPartition("timed", 0)

    found = [cluster.list_offsets({where: at})[where] for at in (EARLIEST, LATEST, 1002, 9000)]

    assert found == [0, 4, 2, -1]


def test_a_reader_that_stops_early_leaves_a_cluster_that_works(
    broker: BesideBroker, cluster: Cluster
) -> None:
    create(broker, "halted")
    fill(broker, "halted", 20)
    wanted = whole(cluster, "halted")
    reading = Reading(fetch_bytes=80)

    fetch = RangeFetch(cluster, wanted, reading)
    first = next(fetch.visible_batches())
    fetch.close()

    assert first.base_offset == 0
    assert len(rows(cluster, wanted, reading)) == 20


def test_unknown_topic_is_named(cluster: Cluster) -> None:
    where = TopicPartition("nowhere", 0)

    with pytest.raises(BrokerError, match="nowhere-0: UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.list_offsets({where: LATEST})


class Answering(threading.Thread):
    """Answers the first bytes of the first connection, and ends."""

    def __init__(self, server: socket.socket, answer: bytes) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._answer = answer

    def run(self) -> None:
        connection, _ = self._server.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(self._answer)


def test_brokers_that_are_away_are_named(broker: BesideBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = parse_settings({"bootstrap.servers": f"127.0.0.1:{port}"})

    with Cluster(settings, patience_seconds=0.2) as away, pytest.raises(Unreachable, match="gave"):
        away.metadata(None)


def test_wrong_server_is_recognized_by_its_first_bytes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings = parse_settings({"bootstrap.servers": f"127.0.0.1:{port}"})
        with Cluster(settings) as strange:
            Answering(server, b"HTTP/1.1 400 Bad Request\r\n\r\n").start()
            with pytest.raises(WireCorrupt, match="is it a broker"):
                strange.metadata(None)


def test_an_old_broker_is_refused_by_version() -> None:
    # ApiVersions 0: no error, and Fetch in versions 4 to 11.
    answer = bytes.fromhex("00000010 00000001 0000 00000001 0001 0004 000b")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings = parse_settings({"bootstrap.servers": f"127.0.0.1:{port}"})
        with Cluster(settings) as old:
            Answering(server, answer).start()
            with pytest.raises(Refused, match=r"Kafka 3\.1 or newer"):
                old.metadata(None)
