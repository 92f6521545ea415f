"""A partition that an Apache Kafka broker has compacted, opened by us: a log with gaps.

The broker comes by Maven, so this file is an extra; test_java_segments.py is what every run
compares with.
"""

import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from brokers.protocol.records.reader import Record
from brokers.storage import names
from brokers.storage.epochs import EpochCache
from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from tests.extras import requires
from tests.interop.stories import (
    LARGER,
    NOW_MS,
    TOPIC,
    Content,
    Story,
    batches_of,
    contents_of,
    rows_of,
    topic_config,
)
from tests.oracles.confluent_client import SECONDS, Scribe, create_topic, read_all
from tests.oracles.kafka_broker import KafkaBroker

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    # One worker for all of the file, so that its broker runs once.
    pytest.mark.xdist_group("maven-compacted"),
    requires("java", "maven-kafka"),
]

FILES = LocalFiles()
COMPACTED = replace(LARGER, is_deleted=False, is_compacted=True)
KEYS = 8
FOLDER = names.partition_folder(TOPIC, 0)
INDEXES = (names.OFFSET_INDEX, names.TIME_INDEX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The log dir of the broker after a clean stop, and what it had acknowledged."""

    log_dir: Path
    acknowledged: dict[int, Record]  # by offset
    visible: list[Record]
    committed: list[Record]


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> Cleaned:
    kafka = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    config = topic_config(LARGER) | {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
    }
    scribe = Scribe(kafka.bootstrap, TOPIC)
    with kafka.running() as client:
        create_topic(client, TOPIC, 1, config)
        write_with_few_keys(scribe)
        told = scribe.rows(0)
        visible = told
        # Each read takes the broker a moment, in which its cleaner goes on.
        while len(visible) > len(told) // 2:
            visible = read_all(kafka.bootstrap, TOPIC, 0)
    with kafka.running():
        # Also what was cleaned after the last read.
        visible = read_all(kafka.bootstrap, TOPIC, 0)
        committed = read_all(kafka.bootstrap, TOPIC, 0, isolation="read_committed")
    return Cleaned(
        log_dir=kafka.log_dir,
        acknowledged={row.offset: row for row in told},
        visible=visible,
        committed=committed,
    )


def write_with_few_keys(scribe: Scribe) -> None:
    """Several segments of data, tombstones and transactions, some of them aborted."""
    draw = random.Random(0)
    plain = scribe.producer(compression_type="lz4")
    txns = scribe.producer(compression_type="zstd", transactional_id="txn")
    txns.init_transactions(SECONDS)
    for number in range(48):
        contents: list[Content] = [
            (
                b"key-%d" % draw.randrange(KEYS),
                draw.randbytes(9000) if draw.random() < 0.8 else None,
                (),
            )
            for _ in range(10)
        ]
        if number % 4:
            scribe.write(plain, 0, contents, NOW_MS + 100 * number)
            continue
        txns.begin_transaction()
        scribe.write(txns, 0, contents, NOW_MS + 100 * number)
        (txns.abort_transaction if number % 8 else txns.commit_transaction)(SECONDS)


def opened(cleaned: Cleaned, folder: Path, *, is_clean: bool) -> PartitionLog:
    shutil.copytree(cleaned.log_dir / FOLDER, folder)
    return PartitionLog.open(str(folder), COMPACTED, handles=Handles(FILES), is_clean=is_clean)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "crashed"])
def test_what_compaction_left_is_read_record_by_record(
    cleaned: Cleaned, tmp_path: Path, *, is_clean: bool
) -> None:
    log = opened(cleaned, tmp_path / FOLDER, is_clean=is_clean)

    found = list(batches_of(log))
    aborted = {
        (txn.producer_id, offset)
        for txn in log.aborted_transactions(0, log.end_offset)
        for offset in range(txn.first_offset, txn.last_offset)
    }
    log.close()

    rows = rows_of(batch for batch in found if not batch.is_control)
    kept = rows_of(
        batch
        for batch in found
        if not batch.is_control and (batch.producer_id, batch.base_offset) not in aborted
    )
    assert rows == cleaned.visible
    assert kept == cleaned.committed
    assert all(row == cleaned.acknowledged[row.offset] for row in rows)
    assert {row.key for row in kept} == {b"key-%d" % number for number in range(KEYS)}
    theirs = contents_of(cleaned.log_dir / FOLDER, names.LOG, *INDEXES)
    assert contents_of(tmp_path / FOLDER, names.LOG, *INDEXES) == theirs


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "crashed"])
def test_a_compacted_log_is_appended_to(
    cleaned: Cleaned, tmp_path: Path, *, is_clean: bool
) -> None:
    log = opened(cleaned, tmp_path / FOLDER, is_clean=is_clean)
    story = Story(log)
    story.leader_epoch = log.epochs.latest + 1

    story.append()

    assert rows_of(batches_of(log))[-len(story.rows) :] == story.rows
    assert story.rows[0].offset > max(cleaned.acknowledged)
    log.close()


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "crashed"])
def test_an_epoch_keeps_its_first_offset_though_its_first_records_are_gone(
    cleaned: Cleaned, tmp_path: Path, *, is_clean: bool
) -> None:
    """A follower that asks where the epoch before it ended must not be sent too far."""
    theirs = EpochCache.load(FILES, str(cleaned.log_dir / FOLDER / names.LEADER_EPOCHS))

    log = opened(cleaned, tmp_path / FOLDER, is_clean=is_clean)
    log.close()

    # The broker's second run began an epoch in which nothing was written; Kafka drops it as well.
    assert log.epochs.entries() == theirs.entries()[:1] == [(0, 0)]
