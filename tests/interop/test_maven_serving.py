"""Folders that we wrote, put in place of an Apache Kafka broker's own: it serves them and goes on.

The broker comes by Maven, so this file is an extra; test_java_segments.py is what every run
compares with.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from brokers.protocol.records.reader import Record
from brokers.storage import names
from brokers.storage.checkpoints import OffsetCheckpoint
from brokers.storage.files import LocalFiles
from brokers.storage.partition_metadata import read_partition_metadata, write_partition_metadata
from tests.builders.logs import at_time
from tests.extras import requires
from tests.interop.stories import (
    ABORTING,
    CONTENTS,
    INDEXES,
    LARGER,
    NOW_MS,
    TOPIC,
    Story,
    batches_of,
    contents_of,
    open_log,
    rows_of,
    segment_paths,
    topic_config,
)
from tests.oracles.confluent_client import Scribe, create_topic, offset_for_time, read_all
from tests.oracles.kafka_broker import KafkaBroker

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    # One worker for all of the file, so that its broker runs once.
    pytest.mark.xdist_group("maven-serving"),
    requires("java", "maven-kafka"),
]

FILES = LocalFiles()
# One folder is left as we closed it; from the other every index was removed.
WHOLE, BARE = PARTITIONS = range(2)
# Before all, of a segment's first batch, between two batches, and of what has been stamped.
TIMES = (0, NOW_MS - 1000, NOW_MS + 120, NOW_MS + 300, NOW_MS + 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the broker made of our folders; all by partition."""

    log_dir: Path
    stories: list[Story]
    files_before: list[dict[str, bytes]]
    visible: list[list[Record]]
    committed: list[list[Record]]
    offsets_by_time: list[list[int]]
    appended: list[Record]  # by a client, to the whole folder
    complaints: list[str]

    def folder(self, partition: int) -> Path:
        return self.log_dir / names.partition_folder(TOPIC, partition)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    kafka = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    with kafka.running() as client:
        create_topic(client, TOPIC, len(PARTITIONS), topic_config(LARGER))
    stories = [put_story_in_place(kafka.log_dir, partition) for partition in PARTITIONS]
    files_before = [contents_of(story.log.folder, names.LOG, *INDEXES) for story in stories]
    for suffix in INDEXES:
        for path in segment_paths(stories[BARE].log.folder, suffix):
            os.unlink(path)
    at, scribe = kafka.bootstrap, Scribe(kafka.bootstrap, TOPIC)
    with kafka.running():
        visible = [read_all(at, TOPIC, partition) for partition in PARTITIONS]
        committed = [
            read_all(at, TOPIC, partition, isolation="read_committed") for partition in PARTITIONS
        ]
        by_time = [
            [offset_for_time(at, TOPIC, partition, time) for time in TIMES]
            for partition in PARTITIONS
        ]
        scribe.write(scribe.producer(), WHOLE, CONTENTS, NOW_MS)
    return Served(
        log_dir=kafka.log_dir,
        stories=stories,
        files_before=files_before,
        visible=visible,
        committed=committed,
        offsets_by_time=by_time,
        appended=scribe.rows(WHOLE),
        complaints=kafka.complaints(),
    )


def put_story_in_place(log_dir: Path, partition: int) -> Story:
    """Replace a stopped broker's partition by one that we wrote, checkpoints included."""
    folder = log_dir / names.partition_folder(TOPIC, partition)
    topic_id = read_partition_metadata(FILES, str(folder))
    assert topic_id is not None
    shutil.rmtree(folder)
    log = open_log(folder)
    story = Story(log)
    # One epoch, the lowest: the broker's own must not lie behind those of the log.
    story.tell_everything(epochs_per_codec=0)
    log.close()
    write_partition_metadata(FILES, str(folder), topic_id)
    for name in (names.RECOVERY_POINTS, names.HIGH_WATERMARKS):
        checkpoint = OffsetCheckpoint(FILES, str(log_dir / name))
        checkpoint.write(checkpoint.read() | {(TOPIC, partition): log.end_offset})
    return story


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_consumer_reads_our_records_from_a_broker(served: Served, partition: int) -> None:
    told = [batch for batch in served.stories[partition].batches if not batch.is_control]

    assert served.visible[partition] == [row for batch in told for row in batch.records]
    kept = [batch for batch in told if batch.producer_id != ABORTING]
    assert served.committed[partition] == [row for batch in kept for row in batch.records]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_broker_finds_the_same_offset_for_a_time_as_we_do(served: Served, partition: int) -> None:
    rows = served.stories[partition].rows
    expected = [next((row.offset for row in rows if row.timestamp >= time), -1) for time in TIMES]

    assert served.offsets_by_time[partition] == expected
    log = open_log(served.folder(partition), is_clean=True)
    found = [at_time(log, time) for time in TIMES]
    log.close()
    assert [-1 if record is None else record.offset for record in found] == expected


def test_a_broker_takes_our_indexes_as_they_are(served: Served) -> None:
    before = served.files_before[WHOLE]
    after = contents_of(served.folder(WHOLE), names.LOG, *INDEXES)
    # It goes on in the newest segment.
    newest = max(before).partition(".")[0]

    assert not any(f"{TOPIC}-{WHOLE}" in line for line in served.complaints)
    rolled = [name for name in before if not name.startswith(newest)]
    assert len(rolled) > 3
    assert [after[name] for name in rolled] == [before[name] for name in rolled]


def test_a_broker_that_must_make_the_indexes_makes_ours(served: Served) -> None:
    after = contents_of(served.folder(BARE), names.LOG, *INDEXES)

    assert any(f"{TOPIC}-{BARE}" in line for line in served.complaints)
    assert after == served.files_before[BARE]


def test_we_go_on_where_a_broker_went_on_in_our_log(served: Served, tmp_path: Path) -> None:
    folder = tmp_path / names.partition_folder(TOPIC, WHOLE)
    shutil.copytree(served.folder(WHOLE), folder)
    ours = served.stories[WHOLE].rows

    log = open_log(folder, is_clean=True)

    assert rows_of(batches_of(log)) == [*ours, *served.appended]
    (_, first), (broker_epoch, second) = log.epochs.entries()
    assert (first, second) == (0, len(ours))
    story = Story(log)
    story.leader_epoch = broker_epoch + 1
    story.append()
    assert rows_of(batches_of(log)) == [*ours, *served.appended, *story.rows]
    log.close()
