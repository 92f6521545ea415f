"""The folders of an Apache Kafka broker, after a clean stop and after a crash, opened by us.

The broker comes by Maven, so this file is an extra; test_java_segments.py is what every run
compares with.
"""

import os
import random
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import Batch
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.reader import Record
from brokers.storage import names
from brokers.storage.checkpoints import OffsetCheckpoint
from brokers.storage.clean_shutdown import take_clean_shutdown
from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log import Appended, PartitionLog
from brokers.storage.meta_properties import read_meta_properties
from brokers.storage.partition_metadata import read_partition_metadata
from brokers.storage.txn_index import AbortedTxn
from tests.extras import requires
from tests.interop.stories import (
    CONTENTS,
    INDEXES,
    LARGER,
    NOW_MS,
    TOPIC,
    Content,
    batches_of,
    contents_of,
    rows_of,
    segment_paths,
    topic_config,
)
from tests.oracles.confluent_client import SECONDS, Scribe, create_topic, read_all
from tests.oracles.kafka_broker import CLUSTER_ID, NODE_ID, KafkaBroker

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    # One worker for all of the file, so that its broker runs once.
    pytest.mark.xdist_group("maven-kafka"),
    requires("java", "maven-kafka"),
]

PARTITIONS = range(2)
FILES = LocalFiles()


class CountingFiles(LocalFiles):
    """Notes how much is read."""

    def __init__(self) -> None:
        self.bytes_read = 0

    def pread(self, fd: int, length: int, position: int) -> bytes:
        data = os.pread(fd, length, position)
        self.bytes_read += len(data)
        return data


def bulk(seed: int) -> list[Content]:
    """Some hundred kilobytes that no codec makes smaller."""
    draw = random.Random(seed)
    return [(b"bulk", draw.randbytes(20_000), ()) for _ in range(12)]


def write_with_every_codec(scribe: Scribe) -> None:
    """Partition 0: idempotent producers, several segments. Partition 1: transactions."""
    # All at once, because each takes a while to get its producer id.
    producers = [scribe.producer(compression_type=codec.name.lower()) for codec in Compression]
    for codec, producer in zip(Compression, producers, strict=True):
        timestamp = NOW_MS + 10_000 * codec
        scribe.write(producer, 0, CONTENTS, timestamp)
        for part in range(3):
            scribe.write(producer, 0, bulk(10 * codec + part), timestamp + 100 * part)
        txns = scribe.producer(compression_type=codec.name.lower(), transactional_id=f"txn-{codec}")
        txns.init_transactions(SECONDS)
        for end in (txns.commit_transaction, txns.abort_transaction, txns.commit_transaction):
            txns.begin_transaction()
            scribe.write(txns, 1, CONTENTS, timestamp)
            end(SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a broker left: its log dir after a clean stop, and an image of it while it ran."""

    stopped: Path
    crashed: Path
    acknowledged: list[list[Record]]  # by partition
    committed: list[list[Record]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("kafka")
    kafka = KafkaBroker(folder)
    scribe = Scribe(kafka.bootstrap, TOPIC)
    with kafka.running() as client:
        create_topic(client, TOPIC, len(PARTITIONS), topic_config(LARGER))
        write_with_every_codec(scribe)
        committed = [
            read_all(kafka.bootstrap, TOPIC, partition, isolation="read_committed")
            for partition in PARTITIONS
        ]
        # As a crash would leave them: index files at full length, no snapshot of the end, no mark.
        for partition in PARTITIONS:
            name = names.partition_folder(TOPIC, partition)
            shutil.copytree(kafka.log_dir / name, folder / "crashed" / name)
    return Written(
        stopped=kafka.log_dir,
        crashed=folder / "crashed",
        acknowledged=[scribe.rows(partition) for partition in PARTITIONS],
        committed=committed,
    )


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_partition_of_a_broker_opens_with_us(
    written: Written, tmp_path: Path, partition: int, *, is_clean: bool
) -> None:
    name = names.partition_folder(TOPIC, partition)
    folder = tmp_path / name
    shutil.copytree((written.stopped if is_clean else written.crashed) / name, folder)

    log = opened(folder, is_clean=is_clean)
    found = list(batches_of(log))
    aborted = log.aborted_transactions(0, log.end_offset)
    log.close()

    assert log.damage is None
    assert data_rows(found) == written.acknowledged[partition]
    kept = [batch for batch in found if not is_aborted(batch, aborted)]
    assert data_rows(kept) == written.committed[partition]
    assert log.epochs.entries() == [(found[0].leader_epoch, 0)]
    last = {info.producer_id: info.last_sequence for info in log.producers.active()}
    assert last == last_sequences(found)
    # What Kafka derived from the log is what we derive: after the crash we made all of it anew.
    theirs = contents_of(written.stopped / name, names.LOG, *INDEXES)
    assert contents_of(folder, names.LOG, *INDEXES) == theirs


def test_the_partitions_hold_several_segments_and_aborted_transactions(written: Written) -> None:
    first, second = (names.partition_folder(TOPIC, partition) for partition in PARTITIONS)

    assert len(segment_paths(written.stopped / first)) > 3
    assert len(segment_paths(written.stopped / second, names.TXN_INDEX)) > 0
    assert len(written.committed[1]) == len(written.acknowledged[1]) * 2 // 3


@pytest.mark.parametrize("partition", PARTITIONS)
def test_we_find_the_producers_that_kafka_wrote_into_its_snapshot(
    written: Written, tmp_path: Path, partition: int
) -> None:
    name = names.partition_folder(TOPIC, partition)
    producers = []

    for log_dir in (written.stopped, written.crashed):
        folder = tmp_path / log_dir.name / name
        shutil.copytree(log_dir / name, folder)
        log = opened(folder, is_clean=log_dir == written.stopped)
        producers.append({info.producer_id: info for info in log.producers.active()})
        log.close()

    assert producers[0] == producers[1]
    assert len(producers[0]) == len(Compression)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "crashed"])
def test_a_producer_goes_on_with_us_where_it_left_the_broker(
    written: Written, tmp_path: Path, *, is_clean: bool
) -> None:
    name = names.partition_folder(TOPIC, 0)
    shutil.copytree((written.stopped if is_clean else written.crashed) / name, tmp_path / name)
    log = opened(tmp_path / name, is_clean=is_clean)
    last = {batch.producer_id: batch for batch in batches_of(log)}

    for batch in last.values():
        again = append_like(log, batch, batch.base_sequence)
        following = append_like(log, batch, batch.last_sequence + 1)

        assert again.is_duplicate
        assert (again.base_offset, again.last_offset) == (batch.base_offset, batch.last_offset)
        assert not following.is_duplicate
        with pytest.raises(KafkaError, match="sequence"):
            append_like(log, batch, batch.last_sequence + 2)
    log.close()


def append_like(log: PartitionLog, batch: Batch, base_sequence: int) -> Appended:
    """Append a batch of the same producer and size, as a client would send it."""
    builder = BatchBuilder(
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=base_sequence,
    )
    for _ in range(batch.record_count):
        builder.append(None, b"again", timestamp=NOW_MS)
    return log.append(memoryview(builder.build()), leader_epoch=log.epochs.latest, now_ms=NOW_MS)


def test_what_a_broker_notes_of_its_log_dir_is_what_we_find_in_it(
    written: Written, tmp_path: Path
) -> None:
    log_dir = tmp_path / "data"
    shutil.copytree(written.stopped, log_dir)

    owner = read_meta_properties(FILES, str(log_dir))
    ends = OffsetCheckpoint(FILES, str(log_dir / names.RECOVERY_POINTS)).read()
    marks = OffsetCheckpoint(FILES, str(log_dir / names.HIGH_WATERMARKS)).read()

    assert take_clean_shutdown(FILES, str(log_dir)) is not None
    assert owner is not None
    assert (owner.node_id, owner.cluster_id) == (NODE_ID, CLUSTER_ID)
    assert {topic for topic, _ in ends} == {TOPIC, "__consumer_offsets", "__transaction_state"}
    assert ends == marks
    topic_ids = set()
    for (topic, partition), end_offset in ends.items():
        log = opened(log_dir / names.partition_folder(topic, partition), is_clean=True)
        assert log.end_offset == end_offset
        assert len(rows_of(batches_of(log))) == end_offset
        topic_ids.add(read_partition_metadata(FILES, log.folder))
        log.close()
    assert len(topic_ids - {None}) == 3


def opened(folder: Path, *, is_clean: bool) -> PartitionLog:
    """Open a log, after no more than a look at its indexes if it was closed cleanly."""
    files = CountingFiles()
    log = PartitionLog.open(str(folder), LARGER, handles=Handles(files), is_clean=is_clean)
    if log.size_bytes > LARGER.segment_bytes:
        assert (files.bytes_read < log.size_bytes // 10) == is_clean
    return log


def data_rows(found: Iterable[Batch]) -> list[Record]:
    return rows_of(batch for batch in found if not batch.is_control)


def is_aborted(batch: Batch, aborted: list[AbortedTxn]) -> bool:
    return batch.is_transactional and any(
        txn.producer_id == batch.producer_id
        and txn.first_offset <= batch.base_offset < txn.last_offset
        for txn in aborted
    )


def last_sequences(found: list[Batch]) -> dict[int, int]:
    return {batch.producer_id: batch.last_sequence for batch in found if not batch.is_control}
