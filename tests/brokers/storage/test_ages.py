"""Retention by time goes by the times of records, whatever the headers of batches say."""

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import NO_TIMESTAMP, TimestampType, batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.reader import PACE, records
from brokers.protocol.records.validation import ProduceRules
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.brokers.protocol.records.samples import seal
from tests.builders.logs import (
    ALL,
    NOW_MS,
    append,
    at_greatest_time,
    at_time,
    batch,
    content,
    expire,
    finished,
    open_log,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RETENTION_MS = 7 * DAY_MS
# Every batch has a segment of its own.
CONFIG = LogConfig(segment_bytes=1_000, retention_ms=RETENTION_MS)
SEED = 22_001
HEADERS, PER_LOG = 1_000, 10


def with_header(times: Sequence[int], size: int = 600, **fields: int) -> memoryview:
    """A batch of records with these times, and other fields in its header than it should have."""
    builder = BatchBuilder()
    for time in times:
        builder.append(None, b"v" * (size // len(times)), timestamp=time)
    return memoryview(seal(builder.build(), None, **fields))


def produce(log: PartitionLog, data: memoryview) -> None:
    append(log, data)


def keep_as_before(log: PartitionLog, data: memoryview) -> None:
    """What earlier releases kept of a produced batch: its header as it came."""
    data = memoryview(seal(bytes(data), base_offset=log.end_offset, leader_epoch=0))
    log.append_replicated(data, now_ms=NOW_MS)


def set_file_times(log: PartitionLog, now_ms: int) -> None:
    for path in Path(log.folder).glob("*.log"):
        os.utime(path, (now_ms / 1_000, now_ms / 1_000))


def newest_record(data: memoryview) -> int:
    (found,) = batches(data)
    return max(record.timestamp for record in records(found, max_bytes=ALL))


def random_header(rng: random.Random) -> memoryview:
    """Records of the last month or without times, under a header that may have any times."""

    def some_time() -> int:
        age = rng.choice([rng.randrange(30 * DAY_MS), rng.randrange(HOUR_MS), RETENTION_MS])
        return rng.choice([NOW_MS - age] * 8 + [0, -1])

    first = some_time()
    times = [first] + [rng.choice([first, some_time()]) for _ in range(rng.randrange(4))]
    wrong = rng.sample(["base_timestamp", "max_timestamp"], rng.randrange(3))
    return with_header(times, **{name: some_time() for name in wrong})


@pytest.mark.parametrize("write", [produce, keep_as_before])
def test_nothing_goes_that_kafka_keeps_under_random_headers(
    tmp_path: Path,
    write: Callable[[PartitionLog, memoryview], None],
    report: Callable[[str], None],
) -> None:
    rng, kept_longer = random.Random(SEED), 0
    for number in range(HEADERS // PER_LOG):
        log = open_log(tmp_path / f"t-{number}", CONFIG)
        newest: list[int] = []
        while len(newest) < PER_LOG:
            data = random_header(rng)
            if newest_record(data) > NOW_MS:
                continue  # refused, or a record that is younger than its file
            newest.append(newest_record(data))
            write(log, data)
        # Files as old as their newest record at least; half of them were written just now.
        set_file_times(log, NOW_MS)
        now_ms = NOW_MS + rng.choice([0, HOUR_MS, RETENTION_MS // 2, RETENTION_MS + 1])
        by_kafka = 0
        for time in newest:
            if now_ms - (NOW_MS if time == NO_TIMESTAMP else time) <= RETENTION_MS:
                break
            by_kafka += 1

        expire(log, now_ms)

        assert log.start_offset <= log.end_offset
        gone = sum(base < log.start_offset for base in _bases(log))
        assert gone <= by_kafka, f"seed {SEED}, log {number}: {gone} gone, by Kafka {by_kafka}"
        kept_longer += by_kafka - gone
        log.abandon()
    report(f"seed {SEED}: of {HEADERS} batches, {kept_longer} are kept longer than by Kafka")
    assert kept_longer <= HEADERS // 4


def _bases(log: PartitionLog) -> list[int]:
    """The base offsets of all segments, deleted or not."""
    return [segment.base_offset for segment in log.segments]


# What the header says, what the records are, and whether retention takes them at NOW_MS.
CASES = {
    "librdkafka's without times": ((-1, 0), [-1, -1], False),
    "no times": ((-1, -1), [-1, -1], False),
    "no greatest time": ((NOW_MS, 0), [NOW_MS, NOW_MS], False),
    "a greatest time that is too old": ((NOW_MS, NOW_MS - 8 * DAY_MS), [NOW_MS, NOW_MS], False),
    "both too old": ((NOW_MS - 9 * DAY_MS, NOW_MS - 8 * DAY_MS), [0, 9 * DAY_MS], False),
    "one record, and a greatest time of now": ((NOW_MS - 30 * DAY_MS, NOW_MS), [0], True),
    "old records": ((NOW_MS - 30 * DAY_MS, NOW_MS - 29 * DAY_MS), [0, DAY_MS], True),
}


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
@pytest.mark.parametrize("case", list(CASES))
def test_retention_takes_what_kafka_takes(tmp_path: Path, case: str, codec: Compression) -> None:
    (base, newest), times, is_taken = CASES[case]
    builder = BatchBuilder(compression=codec)
    for time in times:
        builder.append(None, b"value", timestamp=time)
    data = memoryview(seal(builder.build(), base_timestamp=base, max_timestamp=newest))
    log = open_log(tmp_path / "t-0", CONFIG)

    append(log, data)
    set_file_times(log, NOW_MS)

    assert expire(log, NOW_MS) == is_taken


def test_the_stored_header_has_the_greatest_time_of_the_records(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    append(log, with_header([-1, -1], max_timestamp=0))
    append(log, with_header([NOW_MS - 5, NOW_MS], max_timestamp=0))
    append(log, with_header([NOW_MS], max_timestamp=NOW_MS + 5))
    append(log, with_header([-1, NOW_MS - 7], max_timestamp=0))

    found = list(batches(memoryview(content(log))))

    assert [batch.max_timestamp for batch in found] == [-1, NOW_MS, NOW_MS, NOW_MS - 7]
    for stored in found:
        stored.check_crc()
    assert [segment.max_timestamp for segment in log.segments] == [NOW_MS]


def test_the_time_of_the_broker_needs_no_look_at_the_records(tmp_path: Path) -> None:
    rules = ProduceRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
    log = open_log(tmp_path / "t-0", LogConfig(rules=rules))
    no_records = memoryview(seal(bytes(batch()), b"\xff" * 20, max_timestamp=0))

    append(log, no_records)

    (found,) = batches(memoryview(content(log)))
    assert found.max_timestamp == NOW_MS


def test_records_without_timestamps_are_as_old_as_their_file(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    append(log, batch(timestamp=-1))
    set_file_times(log, NOW_MS)

    assert not expire(log, NOW_MS + RETENTION_MS)
    assert expire(log, NOW_MS + RETENTION_MS + 1)


def test_a_file_that_is_too_old_itself_goes_unread(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    append(log)
    set_file_times(log, NOW_MS)

    assert list(log.inspect_ages(NOW_MS + RETENTION_MS + 1)) == []
    assert log.segments[0].inspected_bytes == 0
    assert log.expire(NOW_MS + RETENTION_MS + 1)


def test_records_are_read_once_and_in_steps(tmp_path: Path) -> None:
    config = replace(CONFIG, segment_bytes=1 << 20)
    log = open_log(tmp_path / "t-0", config)
    for _ in range(10):
        append(log, batch(records=PACE, size=10, timestamp=NOW_MS - 8 * DAY_MS))

    assert not log.expire(NOW_MS), "its records are not read yet"
    assert len(list(log.inspect_ages(NOW_MS))) >= 10

    assert list(log.inspect_ages(NOW_MS)) == []
    append(log, with_header([NOW_MS - 8 * DAY_MS, NOW_MS], max_timestamp=NOW_MS - 8 * DAY_MS))
    assert not expire(log, NOW_MS), "a later record keeps the segment"


def test_a_log_that_is_cut_between_two_steps_is_read_again(tmp_path: Path) -> None:
    config = replace(CONFIG, segment_bytes=1 << 20)
    log = open_log(tmp_path / "t-0", config)
    for _ in range(4):
        append(log, batch(records=PACE, size=10, timestamp=NOW_MS - 8 * DAY_MS))
    steps = log.inspect_ages(NOW_MS)
    next(steps)
    next(steps)

    log.truncate_to(PACE)
    append(log, with_header([NOW_MS - 9 * DAY_MS, NOW_MS], max_timestamp=NOW_MS - 9 * DAY_MS))
    finished(steps)

    assert not expire(log, NOW_MS)
    assert log.segments[0].holes == ()


def test_segments_of_earlier_releases_are_searched_by_the_times_of_their_records(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path / "t-0", replace(CONFIG, segment_bytes=1 << 20))
    keep_as_before(log, with_header([-1, -1], max_timestamp=0))
    keep_as_before(log, with_header([NOW_MS, NOW_MS], max_timestamp=0))
    log.close()
    # As an earlier release left it: the greatest time is 0, that of the first batch.
    (index,) = Path(log.folder).glob("*.timeindex")
    index.write_bytes((0).to_bytes(8, "big") + (1).to_bytes(4, "big"))

    log = open_log(tmp_path / "t-0", CONFIG, is_clean=True)

    greatest = at_greatest_time(log)
    assert greatest is not None
    assert (greatest.offset, greatest.timestamp) == (2, NOW_MS)
    assert at_time(log, NOW_MS - 5) == greatest
    assert not expire(log, NOW_MS)
    assert log.segments[0].inspected_bytes == 0, "its header was enough"


def test_a_batch_that_cannot_be_opened_is_as_old_as_its_file(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    data = seal(bytes(batch(timestamp=NOW_MS - 8 * DAY_MS)), b"\xff" * 20)
    keep_as_before(log, memoryview(data))
    set_file_times(log, NOW_MS)

    assert not expire(log, NOW_MS)
    assert expire(log, NOW_MS + RETENTION_MS + 1)


def test_unreadable_records_under_a_wrong_header_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())

    with pytest.raises(KafkaError, match="at byte 0 of the records"):
        append(log, memoryview(seal(bytes(batch()), b"\xff" * 20, max_timestamp=0)))
