"""Reads begin and end at batches, by offset and by time, near the end and far from it."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.protocol.records.batch import TimestampType
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.validation import ProduceRules
from brokers.storage import reads, time_search
from brokers.storage.errors import OffsetOutOfRange
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.reads import FoundRecord
from tests.builders.cleaning import clean_now, compacted, compacted_log, fill_keys
from tests.builders.logs import (
    NOW_MS,
    append,
    at_greatest_time,
    at_time,
    batch,
    content,
    fill,
    marker,
    open_log,
    read,
    spans,
)
from tests.scale import count

CONFIG = LogConfig(segment_bytes=8_000, index_interval_bytes=500)


@pytest.fixture(params=["near the end", "far from the end", "after a restart"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PartitionLog]:
    """Batches of one to five records and all sizes, in many segments."""
    rng = random.Random(11)
    made = open_log(tmp_path / "t-0", CONFIG)
    for _ in range(120):
        append(made, batch(records=rng.randrange(1, 6), size=rng.choice([20, 60, 600])))
    if request.param == "far from the end":
        made._appends.tail.restart()  # noqa: SLF001  # what 4,096 more batches would do
    elif request.param == "after a restart":
        made.close()
        made = open_log(tmp_path / "t-0", CONFIG, is_clean=True)
    yield made
    made.abandon()


def all_spans(log: PartitionLog) -> list[tuple[int, int]]:
    return spans(content(log))


def test_every_offset_is_served_from_the_batch_that_holds_it(log: PartitionLog) -> None:
    for first, last in all_spans(log):
        for offset in range(first, last + 1):
            found = log.read(offset, max_bytes=1)
            assert found.base_offset == first
            assert spans(found.read(log.handles.files)) == [(first, last)]
            found.release()


def test_a_read_ends_at_a_batch_within_its_limits(log: PartitionLog) -> None:
    rng = random.Random(3)
    batches = all_spans(log)
    starts = {first for first, _ in batches}

    for _ in range(count(300, 600, long=12_000)):
        offset = rng.randrange(log.end_offset)
        max_bytes = rng.choice([1, 100, 700, 3_000, 100_000])
        max_offset = rng.choice([None, rng.choice(sorted(starts)), rng.randrange(log.end_offset)])
        data = read(log, offset, max_bytes=max_bytes, max_offset=max_offset)

        bound = log.end_offset if max_offset is None else max_offset
        found = spans(data)
        first, last = next(span for span in batches if span[0] <= offset <= span[1])
        if offset >= bound or last >= bound:
            assert found == []
            continue
        assert found[0] == (first, last)
        assert found == [span for span in batches if first <= span[0] <= found[-1][0]]
        assert found[-1][1] < bound
        assert len(data) <= max_bytes or len(found) == 1


def test_a_reader_who_follows_the_end_of_each_read_sees_everything_once(
    log: PartitionLog,
) -> None:
    for max_bytes, watermark in [(1, None), (900, None), (5_000, 200), (100_000, 301)]:
        offset, seen = 0, []
        while data := read(log, offset, max_bytes=max_bytes, max_offset=watermark):
            seen += spans(data)
            offset = seen[-1][1] + 1
        bound = log.end_offset if watermark is None else watermark
        assert seen == [span for span in all_spans(log) if span[1] < bound]


def test_without_the_one_batch_rule_a_small_limit_gets_nothing(log: PartitionLog) -> None:
    first = read(log, 0, max_bytes=1)

    assert read(log, 0, max_bytes=len(first) - 1, min_one_batch=False) == b""
    assert read(log, 0, max_bytes=len(first), min_one_batch=False) == first


def test_at_the_end_or_the_watermark_there_is_nothing_and_beyond_it_an_error(
    log: PartitionLog,
) -> None:
    end = log.end_offset

    assert read(log, end) == b""
    assert read(log, 50, max_offset=50) == b""
    assert read(log, 60, max_offset=50) == b""
    for offset in (-1, end + 1):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, max_bytes=1)


def test_below_the_log_start_is_an_error_and_at_it_is_not(log: PartitionLog) -> None:
    log.advance_log_start(33)

    with pytest.raises(OffsetOutOfRange, match="32 is outside the log, which holds 33"):
        log.read(32, max_bytes=1)
    first, last = spans(read(log, 33))[0]
    assert first <= 33 <= last


def test_a_slice_keeps_its_file_open_until_it_is_released(log: PartitionLog) -> None:
    found = log.read(0, max_bytes=1)
    again = log.read(0, max_bytes=1)

    assert found.fd >= 0
    assert found.file.pins == 2
    found.release()
    again.release()
    assert found.file.pins == 0


def timed(folder: Path, *times: list[int], **how: Compression) -> PartitionLog:
    """A log with one batch per list of record times, relative to NOW_MS."""
    log = open_log(folder, replace(CONFIG, segment_bytes=400))
    for stamps in times:
        builder = BatchBuilder(**how)  # type: ignore[arg-type]  # the codec only
        for stamp in stamps:
            builder.append(None, b"v" * 30, timestamp=NOW_MS - 9_000 + stamp)
        append(log, memoryview(builder.build()), epoch=2)
    return log


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_the_first_record_that_is_not_older_is_found(tmp_path: Path, codec: Compression) -> None:
    times = [[0, 10, 5], [7, 8], [30, 20], [25], [40, 50], [45]]
    log = timed(tmp_path / "t-0", *times, compression=codec)
    flat = [stamp for stamps in times for stamp in stamps]

    for wanted in range(52):
        found = at_time(log, NOW_MS - 9_000 + wanted)
        expected = next((o for o, stamp in enumerate(flat) if stamp >= wanted), None)
        if expected is None:
            assert found is None
        else:
            stamp = NOW_MS - 9_000 + flat[expected]
            assert found == FoundRecord(offset=expected, timestamp=stamp, leader_epoch=2)


def test_a_record_below_the_log_start_is_not_found_by_its_time(tmp_path: Path) -> None:
    log = timed(tmp_path / "t-0", [0, 10, 20], [30])
    log.advance_log_start(2)

    found = at_time(log, NOW_MS - 9_000)

    assert found is not None
    assert found.offset == 2


def test_the_record_with_the_greatest_time_is_found(tmp_path: Path) -> None:
    log = timed(tmp_path / "t-0", [0, 10], [50, 90, 20], [90], [30])

    found = at_greatest_time(log)

    assert found == FoundRecord(offset=3, timestamp=NOW_MS - 9_000 + 90, leader_epoch=2)


def test_a_log_without_timestamps_has_no_greatest_one(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    assert at_greatest_time(log) is None

    fill(log, 3, timestamp=-1)

    assert at_greatest_time(log) is None
    assert at_time(log, 0) is None


def test_where_the_broker_stamps_all_records_of_a_batch_have_its_time(tmp_path: Path) -> None:
    rules = ProduceRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
    log = open_log(tmp_path / "t-0", replace(CONFIG, rules=rules))
    fill(log, 3, records=4, timestamp=77)

    found = at_time(log, NOW_MS)

    assert found is not None
    assert (found.offset, found.timestamp) == (0, NOW_MS)


def test_aborted_transactions_are_found_across_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", replace(CONFIG, segment_bytes=400))
    for producer in range(6):
        append(log, batch(producer=producer, is_transactional=True))
        append(log, batch())
        append(log, marker(producer, commit=producer % 2 == 0))
    assert len(log.segments) > 3

    aborted = log.aborted_transactions(0, log.end_offset)

    assert [(one.producer_id, one.first_offset, one.last_offset) for one in aborted] == [
        (1, 3, 5),
        (3, 9, 11),
        (5, 15, 17),
    ]
    assert [one.producer_id for one in log.aborted_transactions(6, 11)] == [3]
    assert log.aborted_transactions(6, 9) == []


def test_a_batch_with_too_many_records_to_look_at_is_found_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One hostile batch must not hold whoever asks for an offset by its time."""
    log = timed(tmp_path / "t-0", [0, 10, 20], [30, 40, 35, 50])
    monkeypatch.setattr(time_search, "MAX_SEARCHED_PARTS", 3)

    found = at_time(log, NOW_MS - 9_000 + 40)

    assert found == FoundRecord(offset=3, timestamp=NOW_MS - 9_000 + 50, leader_epoch=2)


@pytest.fixture
def cleaned(tmp_path: Path) -> PartitionLog:
    """Records 19 and 20 behind ten segments of which nothing else is left, and no recent tail."""
    made = compacted_log(tmp_path / "t-0", compacted(segment_bytes=200))
    fill_keys(made, [(b"key", b"v" * 30)] * 21)
    clean_now(made)
    made._appends.tail.restart()  # noqa: SLF001  # what 4,096 more batches would do
    return made


def test_a_read_begins_with_a_batch_that_has_records(cleaned: PartitionLog) -> None:
    for offset in range(cleaned.end_offset):
        found = cleaned.read(offset, max_bytes=1, skips_empty=True)
        assert found.base_offset == max(offset, 19)
        found.release()

    found = cleaned.read(0, max_bytes=1)
    assert found.base_offset == 0, "who copies the log gets all of it"
    found.release()


def test_batches_without_records_are_read_where_nothing_else_is(cleaned: PartitionLog) -> None:
    found = cleaned.read(0, max_bytes=1 << 20, max_offset=18, skips_empty=True)

    assert spans(found.read(cleaned.handles.files)) == [(0, 0)]
    found.release()
    assert cleaned.read(18, max_bytes=1 << 20, max_offset=18, skips_empty=True).length == 0


def test_no_more_than_some_batches_without_records_are_passed_over(
    cleaned: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "MAX_EMPTY", 2)
    found = cleaned.read(0, max_bytes=1 << 20, skips_empty=True)

    ((_first, end),) = spans(found.read(cleaned.handles.files))[:1]
    found.release()

    # Whoever goes on behind it comes to the end, too.
    while end < cleaned.end_offset - 1:
        found = cleaned.read(end + 1, max_bytes=1 << 20, skips_empty=True)
        ((_first, end), *_) = spans(found.read(cleaned.handles.files))[-1:]
        found.release()
