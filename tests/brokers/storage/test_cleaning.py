"""After a cleaning, readers get the same state from fewer records, at the same offsets."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.disk_room import Room
from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import Batch, TimestampType, batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.validation import NO_LIMIT, ProduceRules
from brokers.storage.clean_worker import decode_job, encode_job
from brokers.storage.cleaning import CleaningFailed, Job, clean
from brokers.storage.errors import OutOfSpace
from brokers.storage.files import LocalFiles
from brokers.storage.log import PartitionLog
from tests.builders.cleaning import (
    KEPT_MS,
    Row,
    clean_now,
    cleaned,
    compacted,
    compacted_log,
    fill_keys,
    keyed,
    latest,
    plan,
    rows_of,
    swap_cleaned,
)
from tests.builders.logs import NOW_MS, append, batch, content, marker
from tests.scale import count

HOUR = 3_600_000
FILES = LocalFiles()
KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
VALUES = st.none() | st.binary(min_size=1, max_size=30)
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4), st.sampled_from(Compression)
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=count(40, 100, long=2_000), deadline=None)
@given(BATCHES, st.lists(st.integers(0, 2 * KEPT_MS), min_size=1, max_size=4), st.integers(2, 6))
def test_final_state_of_a_reader_survives_cleaning(
    rows: list[tuple[list[Row], Compression]], waits: list[int], max_keys: int
) -> None:
    with TemporaryDirectory() as folder:
        log = compacted_log(Path(folder) / "t-0", compacted(segment_bytes=400))
        now_ms, first_dirty = NOW_MS, 0
        share = -(-len(rows) // len(waits))
        for turn, wait in enumerate(waits):
            for batch_rows, codec in rows[turn * share : (turn + 1) * share]:
                append(log, keyed(*batch_rows, codec=codec))
            log.flush()
            before, last, end = rows_of(log), log.segments.active.base_offset, log.end_offset
            now_ms += wait
            cleaning = log.cleaning(
                first_dirty=first_dirty, high_watermark=end, now_ms=now_ms, next_horizon_ms=now_ms
            )
            if cleaning is None:
                continue
            result = clean(FILES, with_keys(decode_job(encode_job(cleaning)), 2 + max_keys))
            assert swap_cleaned(log, cleaning, result, now_ms)
            assert first_dirty <= result.end <= last
            first_dirty = result.end
            after = rows_of(log)
            assert latest(after) == latest(before)
            assert log.end_offset == end
            # The remaining records are unchanged and in order.
            assert after == [row for row in before if row.offset in {one.offset for one in after}]
            keys = [row.key for row in after if row.offset < first_dirty]
            assert len(keys) == len(set(keys)), "a key below the dirty part is there twice"
        served = content(log)
        log.close()
        again = compacted_log(Path(folder) / "t-0")
        assert content(again) == served
        assert again.damage is None


def with_keys(job: Job, max_keys: int) -> Job:
    return Job(
        **{name: getattr(job, name) for name in Job.__slots__ if name != "max_keys"},
        max_keys=max_keys,
    )


def full(folder: Path, rows: list[Row], **fields: int) -> PartitionLog:
    """A log with these rows in closed segments, behind which another one is active."""
    log = compacted_log(folder, compacted(segment_bytes=10_000))
    fill_keys(log, rows, **fields)
    close_segment(log)
    return log


def close_segment(log: PartitionLog) -> None:
    log._appends.roll(NOW_MS)  # noqa: SLF001
    fill_keys(log, [(b"active", b"x")])


def found(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(row.offset, row.key, row.value) for row in rows_of(log)][:-1]


def stored(log: PartitionLog) -> list[Batch]:
    return list(batches(memoryview(content(log))))[:-1]


def test_a_tombstone_lives_until_its_horizon_and_then_goes(tmp_path: Path) -> None:
    log = full(tmp_path, [(b"a", b"1"), (b"a", None), (b"b", b"2")])

    first = clean_now(log)
    assert found(log) == [(1, b"a", None), (2, b"b", b"2")]
    assert (first.next_horizon_ms, first.end) == (NOW_MS + KEPT_MS, 3)
    assert stored(log)[0].delete_horizon == NOW_MS + KEPT_MS
    assert rows_of(log)[0].timestamp == NOW_MS

    early = clean_now(log, first_dirty=3, now_ms=NOW_MS + KEPT_MS - 1)
    assert not early.groups
    assert early.next_horizon_ms == NOW_MS + KEPT_MS

    last = clean_now(log, first_dirty=3, now_ms=NOW_MS + KEPT_MS)
    assert found(log) == [(2, b"b", b"2")]
    assert last.next_horizon_ms is None


def test_the_last_batch_stays_as_a_mark_of_where_the_file_ends(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    fill_keys(log, [(b"a", b"1"), (b"b", b"2"), (None, b"3")])
    close_segment(log)

    clean_now(log)

    assert found(log) == [(0, b"a", b"1"), (1, b"b", b"2")]
    last = stored(log)[-1]
    assert (last.base_offset, last.record_count, last.max_timestamp) == (2, 0, -1)
    last.check_crc()


def test_a_producers_last_batch_keeps_its_sequence_until_the_producer_is_forgotten(
    tmp_path: Path,
) -> None:
    log = compacted_log(tmp_path, compacted(segment_bytes=10_000))
    for sequence in range(3):
        append(log, keyed((b"a", b"1"), producer=7, sequence=sequence))
    fill_keys(log, [(b"a", b"2")])
    close_segment(log)

    clean_now(log)

    kept = [(one.base_offset, one.producer_id, one.base_sequence) for one in stored(log)]
    assert kept == [(2, 7, 2), (3, -1, -1)]
    clean_now(log, now_ms=NOW_MS + log.config.producer_expiration_ms + 1)
    assert [one.base_offset for one in stored(log)] == [3]


def test_records_without_a_key_go(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    log.reconfigure(compacted(segment_bytes=10_000))
    append(log, batch())
    fill_keys(log, [(b"a", b"1")])
    close_segment(log)

    clean_now(log)

    assert found(log) == [(1, b"a", b"1")]


def test_segments_with_transactions_stay_whole_and_so_do_tombstones_behind_them(
    tmp_path: Path,
) -> None:
    log = full(tmp_path, [(b"a", b"1")])
    append(log, keyed((b"a", b"2")))
    append(log, batch(producer=5, is_transactional=True))
    append(log, marker(5, commit=False))
    close_segment(log)
    fill_keys(log, [(b"a", None), (b"a", None)])
    close_segment(log)
    before = [one.base_offset for one in stored(log)]

    for _ in range(2):
        clean_now(log, now_ms=NOW_MS + 10 * KEPT_MS)
    last = clean_now(log, now_ms=NOW_MS + 30 * KEPT_MS)

    left = [one.base_offset for one in stored(log)]
    assert before[1:5] == left[1:5], "the whole segment"
    tombstones = [row.offset for row in rows_of(log) if row.key == b"a" and row.value is None]
    assert tombstones == [7]
    assert last.next_horizon_ms is None
    assert len(log.aborted_transactions(0, 100)) == 1


@pytest.mark.parametrize(
    "stamped",
    [
        [(b"a", b"old", NOW_MS), (b"dead", None, NOW_MS - NO_LIMIT)],
        [(b"a", b"old", 0), (b"b", b"v", NOW_MS - NO_LIMIT), (b"c", b"v", NOW_MS + HOUR)],
    ],
    ids=["a-horizon", "no-more-middle"],
)
def test_times_too_far_apart_for_what_is_left_harm_one_batch_only(
    tmp_path: Path, stamped: list[tuple[bytes, bytes | None, int]]
) -> None:
    """They pass with what lies between them, and what hides a value in their batch stays."""
    log = compacted_log(tmp_path)
    builder = BatchBuilder()
    for key, value, timestamp in stamped:
        builder.append(key, value, (), timestamp)
    append(log, memoryview(builder.build()))
    fill_keys(log, [*((b"x", b"v" * 300) for _ in range(10)), (b"a", None)])
    fill_keys(log, [(b"x", b"v" * 300) for _ in range(10)])
    before = latest(rows_of(log))

    result = clean_now(log)
    clean_now(log, now_ms=NOW_MS + 10 * KEPT_MS)

    rows = rows_of(log)
    assert latest(rows) == before
    assert len(rows) < 15
    assert [row.key for row in rows[: len(stamped)]] == [key for key, *_ in stamped]
    # Else it would be cleaned again and again for a tombstone that cannot go.
    assert result.next_horizon_ms is None


def test_small_neighbours_become_one_file_and_never_a_large_one(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, compacted(segment_bytes=2_000))
    fill_keys(log, [(b"%d" % (number % 30), b"v" * 50) for number in range(300)])
    before = len(log.segments)

    for _ in range(3):
        clean_now(log)

    assert before > 10
    assert len(log.segments) == 3
    assert all(segment.size <= 2_000 for segment in log.segments)


def test_unchanged_segment_is_not_written(tmp_path: Path) -> None:
    log = full(tmp_path, [(b"a", b"1"), (b"b", b"2")])
    cleaning = plan(log)

    assert not cleaned(cleaning).groups
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".cleaned")]


def test_a_map_that_is_full_ends_the_cleaning_early(tmp_path: Path) -> None:
    log = full(tmp_path, [(b"a", b"1"), (b"a", b"2"), (b"b", b"1"), (b"b", b"2"), (b"a", b"3")])
    cleaning = plan(log)

    result = clean(FILES, with_keys(decode_job(encode_job(cleaning)), 1))
    assert swap_cleaned(log, cleaning, result, NOW_MS)

    assert result.end == 2
    assert found(log) == [(1, b"a", b"2"), (2, b"b", b"1"), (3, b"b", b"2"), (4, b"a", b"3")]


def test_a_batch_with_more_keys_than_the_map_is_refused(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    append(log, keyed((b"a", b"1"), (b"b", b"1")))
    log.flush()
    close_segment(log)

    with pytest.raises(CleaningFailed, match="more keys than 1"):
        clean(FILES, with_keys(decode_job(encode_job(plan(log))), 1))


@pytest.mark.parametrize("position", [5, 16, 30, 70])
def test_a_bad_byte_ends_the_cleaning_and_leaves_nothing_behind(
    tmp_path: Path, position: int
) -> None:
    log = full(tmp_path, [(b"a", b"1"), (b"a", b"2"), (b"a", b"3")])
    cleaning = plan(log)
    path = Path(log.segments[0].file.path)
    data = bytearray(path.read_bytes())
    data[len(data) // 3 + position] ^= 0x40
    path.write_bytes(data)
    before = sorted(one.name for one in tmp_path.iterdir())

    with pytest.raises((CleaningFailed, KafkaError)):
        cleaned(cleaning)

    assert sorted(one.name for one in tmp_path.iterdir()) == before


def test_a_file_that_has_changed_its_size_or_is_gone_is_refused(tmp_path: Path) -> None:
    log = full(tmp_path, [(b"a", b"1"), (b"a", b"2")])
    cleaning = plan(log)
    path = Path(log.segments[0].file.path)
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(CleaningFailed, match="bytes, not"):
        cleaned(cleaning)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        cleaned(cleaning)


def test_times_that_the_broker_set_stay_those_of_their_batch(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    stamped = ProduceRules(timestamp_type=TimestampType.LOG_APPEND_TIME)
    log.reconfigure(compacted(segment_bytes=10_000, rules=stamped))
    append(log, keyed((b"a", b"1"), (b"b", None), timestamp=5))
    append(log, keyed((b"a", b"2")))
    log.flush()
    close_segment(log)

    clean_now(log)

    assert [(row.offset, row.timestamp) for row in rows_of(log)][:-1] == [(1, NOW_MS), (2, NOW_MS)]
    assert stored(log)[0].uses_log_append_time


class SmallDisk(LocalFiles):
    """A disk on which nothing but one folder takes room."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self.size_bytes = size
        self.least_free = 2**62

    def room(self, place: str | int) -> Room:  # type: ignore[override]
        used = sum(file.stat().st_size for file in self.folder.iterdir())
        free = self.size_bytes - used
        self.least_free = min(self.least_free, free)
        return Room(device=1, size_bytes=self.size_bytes, used_bytes=used, free_bytes=free)


def test_a_disk_with_room_for_one_new_segment_cleans_a_log_in_parts(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, compacted(segment_bytes=10_000))
    # One of two batches stays, so that the new files are half as large as the log.
    for number in range(300):
        fill_keys(log, [(b"%d" % number, b"v" * 300), (b"same", b"v" * 300)])
    log._appends.roll(NOW_MS)  # noqa: SLF001
    truth, before = latest(rows_of(log)), log.size_bytes
    disk = SmallDisk(tmp_path, 0)
    # Above the floor there is room for two segments.
    disk.size_bytes = (disk.room("").used_bytes + 22_000) * 8 // 7
    disk.least_free = disk.size_bytes
    floor = disk.room("").records_floor

    ends: list[int] = []
    while not ends or ends[-1] == 0:
        cleaning = plan(log)
        result = cleaned(cleaning, disk)
        assert result.groups
        assert swap_cleaned(log, cleaning, result, NOW_MS)
        log.delete_pending(NOW_MS + cleaning.config.file_delete_delay_ms)
        ends.append(result.end)

    assert len(ends) > 3
    assert ends[-1] == cleaning.end
    assert disk.least_free >= floor
    assert latest(rows_of(log)) == truth
    assert log.size_bytes < 0.6 * before


def test_a_disk_without_room_for_the_first_new_segment_refuses_and_is_left_as_it_was(
    tmp_path: Path,
) -> None:
    log = full(tmp_path, [(b"k", b"v" * 500)] * 40)
    disk = SmallDisk(tmp_path, log.size_bytes)

    with pytest.raises(OutOfSpace, match="free and"):
        cleaned(plan(log), disk)

    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".cleaned")]
