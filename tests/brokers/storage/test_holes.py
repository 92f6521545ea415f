"""Damage inside of a log file: what lies around it is served, and meeting it costs little."""

import errno
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.protocol.records.batch import MAGIC_POSITION
from brokers.storage import index_rebuild
from brokers.storage.errors import OutOfSpace
from brokers.storage.files import LocalFiles
from brokers.storage.holes import RecordsDamaged
from brokers.storage.index_rebuild import IndexUnfinished
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.retention import expired_segments
from brokers.storage.segment import Segment
from tests.builders.logs import (
    ALL,
    NOW_MS,
    append,
    at_greatest_time,
    at_time,
    batch,
    finished,
    open_log,
    read,
    shifted_index,
    spans,
)
from tests.fakes.faulty_files import Fault, FaultyFiles
from tests.scale import count

CONFIG = LogConfig(index_interval_bytes=600, segment_bytes=30_000, retention_ms=1_000_000)
SIZE = len(batch(records=2, size=80))
LENGTH_POSITION = 8


class CountingFiles(LocalFiles):
    """Local files that count what is read of logs and indexes."""

    def __init__(self) -> None:
        self.bytes_read = 0
        self.reads = 0

    def pread(self, fd: int, length: int, position: int) -> bytes:
        data = os.pread(fd, length, position)
        self.reads += 1
        self.bytes_read += len(data)
        return data


def written(folder: Path, config: LogConfig = CONFIG, *, segments: int = 3) -> PartitionLog:
    """A log of some segments; batches of two records, a second apart, no two of them equal."""
    log = open_log(folder, config)
    number = 0
    while len(log.segments) < segments:
        append(log, batch(records=2, size=80, timestamp=NOW_MS + 1_000 * number))
        number += 1
    return log


def overwrite(segment: Segment, position: int, data: bytes) -> None:
    with Path(segment.file.path).open("r+b") as file:
        file.seek(position)
        file.write(data)


def break_header(segment: Segment, number: int) -> None:
    """Flips the magic byte of the batch with this number."""
    overwrite(segment, number * SIZE + MAGIC_POSITION, b"\x09")


def clean_start(
    log: PartitionLog, config: LogConfig = CONFIG, files: LocalFiles | None = None
) -> PartitionLog:
    log.close()
    return open_log(log.folder, config, files=files, is_clean=True)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    """As a later run finds it; batches 40 to 42 of the first segment are damaged."""
    log = written(tmp_path / "t-0")
    for number in (40, 41, 42):
        break_header(log.segments[0], number)
    log = clean_start(log)
    yield log
    log.abandon()


def test_a_read_in_front_of_damage_ends_there_once_it_is_known(log: PartitionLog) -> None:
    with pytest.raises(RecordsDamaged):
        log.read(80, max_bytes=1)

    offset, offsets = 0, []
    while offset < 80:
        found = spans(read(log, offset))
        offsets += found
        offset = found[-1][1] + 1

    assert offsets == [(number, number + 1) for number in range(0, 80, 2)]


@pytest.mark.parametrize("offset", range(80, 86))
def test_a_read_of_a_damaged_batch_says_what_is_lost(log: PartitionLog, offset: int) -> None:
    with pytest.raises(RecordsDamaged, match="from offset 80 to 85") as caught:
        log.read(offset, max_bytes=ALL)

    assert caught.value.hole.next_offset == 86
    assert caught.value.position == 40 * SIZE


def test_every_batch_behind_damage_is_read(log: PartitionLog) -> None:
    with pytest.raises(RecordsDamaged):
        log.read(80, max_bytes=1)

    offsets, offset = [], 86
    while offset < log.end_offset:
        found = spans(read(log, offset, max_bytes=1_000))
        offsets += found
        offset = found[-1][1] + 1

    assert offsets == [(number, number + 1) for number in range(86, log.end_offset, 2)]


def test_damage_is_noted_once(log: PartitionLog) -> None:
    for offset in (80, 82, 80, 85):
        with pytest.raises(RecordsDamaged):
            log.read(offset, max_bytes=1)
    read(log, 0)
    at_time(log, NOW_MS + 41_000)

    (damage,) = log.handles.take_damage()

    assert (damage.hole.first_offset, damage.hole.next_offset) == (80, 86)
    assert "magic 9" in str(damage)
    assert log.handles.take_damage() == []


def test_the_indexes_stay_as_they_were(log: PartitionLog) -> None:
    segment = log.segments[0]
    before = [Path(path).read_bytes() for path in segment.paths()[1:3]]

    for offset in (86, 0):
        with pytest.raises(RecordsDamaged):
            log.read(80, max_bytes=1)
        log.read(offset, max_bytes=1).release()
    at_time(log, NOW_MS + 41_000)
    segment.largest_timestamp(CONFIG)

    assert [Path(path).read_bytes() for path in segment.paths()[1:3]] == before
    assert not log.handles.rebuilds


def test_a_search_by_time_finds_what_is_behind_damage(log: PartitionLog) -> None:
    in_damage, behind = (at_time(log, NOW_MS + 1_000 * number) for number in (41, 50))

    assert in_damage is not None
    assert in_damage.offset == 86
    assert behind is not None
    assert behind.offset == 100


@pytest.mark.parametrize("number", [0, 40, -1], ids=["first", "middle", "last"])
def test_retention_by_time_knows_the_age_of_a_damaged_segment(tmp_path: Path, number: int) -> None:
    log = written(tmp_path / "t-0")
    segment = log.segments[0]
    batches = segment.size // SIZE
    break_header(segment, number % batches)
    log = clean_start(log)
    newest = NOW_MS + 1_000 * (batches - 1) + 1
    for offset in range(0, 2 * batches, 2):
        try:
            log.read(offset, max_bytes=ALL).release()
        except RecordsDamaged:
            assert offset == 2 * (number % batches)

    def expired(now_ms: int) -> int:
        finished(log.inspect_ages(now_ms))
        return expired_segments(
            log.segments, CONFIG, now_ms=now_ms, bound=log.end_offset, end_offset=log.end_offset
        )

    assert log.segments[0].largest_timestamp(CONFIG) == newest
    assert expired(newest + CONFIG.retention_ms) == 0
    assert expired(newest + CONFIG.retention_ms + 1) == 1
    log.abandon()


def large_log(folder: Path) -> tuple[PartitionLog, CountingFiles]:
    """A segment of 4 MiB with 22,000 batches, two of them damaged, after a clean start."""
    config = LogConfig(segment_bytes=4 * 1024 * 1024)
    log = open_log(folder, config)
    small = bytes(batch(size=100))
    while len(log.segments) < 2:
        append(log, memoryview(bytearray(small)))
    for number in (20_000, 21_000):
        overwrite(log.segments[0], number * len(small) + MAGIC_POSITION, b"\x09")
    files = CountingFiles()
    return clean_start(log, config, files), files


@pytest.mark.slow
def test_no_read_at_damage_walks_through_the_segment(tmp_path: Path) -> None:
    log, files = large_log(tmp_path / "t-0")
    index_bytes = os.path.getsize(log.segments[0].offset_index.file.path)
    files.bytes_read = 0

    with pytest.raises(RecordsDamaged):
        log.read(20_000, max_bytes=1)
    first, files.bytes_read = files.bytes_read, 0
    for offset in (20_000, 20_001, 19_999, 21_500):
        try:
            log.read(offset, max_bytes=1).release()
        except RecordsDamaged:
            assert offset == 20_000
    later = files.bytes_read

    assert first < index_bytes + 200_000
    assert later < 200_000
    assert log.segments[0].size > 3_900_000
    log.abandon()


@pytest.mark.slow
def test_indexes_of_a_large_segment_are_made_again_in_steps(tmp_path: Path) -> None:
    log, files = large_log(tmp_path / "t-0")
    segment = log.segments[0]
    Path(segment.offset_index.file.path).write_bytes(random.Random(7).randbytes(80_000))
    steps, files.bytes_read = 1, 0

    with pytest.raises(IndexUnfinished):
        log.read(15_000, max_bytes=1)
    most = files.bytes_read - 80_000
    with pytest.raises(IndexUnfinished):
        log.read(15_000, max_bytes=1)
    (rebuild,) = log.handles.rebuilds
    while log.handles.rebuilds:
        files.bytes_read = 0
        rebuild.step()
        most, steps = max(most, files.bytes_read), steps + 1

    assert most < 2_500_000
    assert steps >= 8
    assert [found.hole.first_offset for found in log.handles.take_damage()] == [20_000, 21_000]
    for offset in (15_000, 19_999, 20_001, 21_001):
        assert spans(read(log, offset, max_bytes=1)) == [(offset, offset)]
    assert segment.largest_timestamp(log.config) == NOW_MS
    log.abandon()


def test_a_rebuild_that_meets_damage_at_a_start_leaves_the_old_indexes(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0")
    segment = log.segments[0]
    before = [Path(path).read_bytes() for path in segment.paths()[1:3]]
    break_header(segment, 40)

    with pytest.raises(Exception, match="magic 9"):
        segment.rebuild_indexes(CONFIG)

    assert [Path(path).read_bytes() for path in segment.paths()[1:3]] == before
    assert not list((tmp_path / "t-0").glob("*.tmp"))
    header = segment.find(100, CONFIG)
    assert header is not None
    assert header.base_offset == 100
    log.abandon()


def test_indexes_are_made_again_under_appends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_rebuild, "STEP_BYTES", 4_000)
    log = written(tmp_path / "t-0", replace(CONFIG, segment_bytes=1 << 20), segments=1)
    for number in range(100):
        append(log, batch(records=2, size=80, timestamp=NOW_MS + 1_000 * number))
    index = Path(log.segments.active.offset_index.file.path)
    log.close()
    entries = index.read_bytes()
    index.write_bytes(shifted_index(entries[:40]) + entries[40:])
    log = open_log(log.folder, log.config, is_clean=True)

    with pytest.raises(IndexUnfinished):
        log.read(12, max_bytes=1)
    (rebuild,) = log.handles.rebuilds
    while log.handles.rebuilds:
        append(log, batch(records=2, size=80, timestamp=NOW_MS + 500_000))
        rebuild.step()

    for offset in range(0, log.end_offset, 2):
        header = log.segments.active.find(offset, log.config)
        assert header is not None
        assert header.base_offset == offset
    found = at_greatest_time(log)
    assert found is not None
    assert (found.offset, found.timestamp) == (201, NOW_MS + 500_001)
    assert log.end_offset > 204
    log.close()
    again = open_log(log.folder, log.config, is_clean=True)
    assert again.end_offset == log.end_offset
    again.abandon()


def test_a_full_disk_puts_the_end_of_a_rebuild_off(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0")
    index = Path(log.segments[0].offset_index.file.path)
    log.close()
    index.write_bytes(shifted_index(index.read_bytes()))
    files = FaultyFiles()
    log = open_log(log.folder, CONFIG, files=files, is_clean=True)
    files.plan(Fault(at=0, error=errno.ENOSPC, is_lasting=True))

    with pytest.raises(OutOfSpace):
        log.read(50, max_bytes=1)
    with pytest.raises(IndexUnfinished):
        log.read(50, max_bytes=1)
    files.heal()
    (rebuild,) = log.handles.rebuilds
    assert rebuild.step()

    assert spans(read(log, 50, max_bytes=1)) == [(50, 51)]
    assert log.handles.failure is None
    log.abandon()


@pytest.mark.parametrize("lost", ["leader-epoch-checkpoint", "*.snapshot"])
def test_a_damaged_log_opens_without_what_is_derived_from_it(tmp_path: Path, lost: str) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    sequence = 0
    while len(log.segments) < 3:
        append(log, batch(records=2, size=80, producer=7, sequence=sequence), epoch=sequence // 150)
        sequence += 2
    break_header(log.segments[0], 40)
    epochs = log.epochs.entries()
    log.close()
    for path in (tmp_path / "t-0").glob(lost):
        path.unlink()

    log = open_log(log.folder, CONFIG, is_clean=True)

    assert log.end_offset == sequence
    assert log.epochs.entries() == epochs
    (producer,) = log.producers.active()
    assert producer.last_sequence == sequence - 1
    assert [found.hole.first_offset for found in log.handles.take_damage()] == [80]
    log.abandon()


@pytest.mark.parametrize("way", ["abandon", "delete", "truncate", "expire"])
def test_a_rebuild_ends_with_its_segment(tmp_path: Path, way: str) -> None:
    log, _ = large_log(tmp_path / "t-0")
    Path(log.segments[0].offset_index.file.path).write_bytes(random.Random(7).randbytes(80_000))
    with pytest.raises(IndexUnfinished):
        log.read(15_000, max_bytes=1)

    if way == "truncate":
        log.truncate_fully_and_start_at(7)
    elif way == "expire":
        log.advance_log_start(log.segments[1].base_offset)
        assert log.delete_old_segments(NOW_MS) == 1
    else:
        getattr(log, way)()

    assert not log.handles.rebuilds
    assert not list((tmp_path / "t-0").glob("*.tmp"))


def test_a_file_with_too_many_holes_counts_as_damaged_to_its_end(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0", LogConfig(index_interval_bytes=600, segment_bytes=60_000))
    segment = log.segments[0]
    for number in range(10, 250, 3):
        break_header(segment, number)
    log = clean_start(log, log.config)

    readable = 0
    for offset in range(0, 2 * (segment.size // SIZE), 2):
        try:
            log.read(offset, max_bytes=1).release()
            readable += 1
        except RecordsDamaged:
            continue

    assert len(log.segments[0].holes) == 65
    assert readable >= 10 + 2 * 64
    log.abandon()


def test_the_first_batch_of_a_segment_may_be_the_damaged_one(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0")
    break_header(log.segments.active, 0)
    break_header(log.segments[1], 0)
    base = log.segments[1].base_offset
    log = clean_start(log)

    with pytest.raises(RecordsDamaged):
        log.read(base, max_bytes=1)

    assert spans(read(log, base + 2, max_bytes=1)) == [(base + 2, base + 3)]
    assert log.segments[1].read_first_timestamp() == NOW_MS + 500 * (base + 2) + 1
    assert spans(read(log, base - 1, max_bytes=1)) == [(base - 2, base - 1)]
    log.abandon()


HARMS = {
    "magic": lambda rng: (MAGIC_POSITION, bytes([rng.choice([0, 1, 9, 255])])),
    "length": lambda rng: (LENGTH_POSITION, rng.randbytes(4)),
    "short length": lambda rng: (LENGTH_POSITION, (49 + rng.randrange(60)).to_bytes(4, "big")),
    "header": lambda rng: (0, rng.randbytes(61)),
    "zeros": lambda rng: (0, bytes(SIZE)),
    "a page": lambda rng: (rng.randrange(SIZE), bytes(4_096)),
}


def flipped(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


INDEX_HARMS = {
    "": lambda data, rng: data,
    "empty": lambda data, rng: b"",
    "cut": lambda data, rng: data[: 8 * rng.randrange(len(data) // 8)],
    "garbage": lambda data, rng: rng.randbytes(len(data)),
    "a flipped bit": flipped,
}


@pytest.mark.parametrize("seed", range(count(12, 60, long=2_000)))
def test_whatever_is_damaged_what_is_read_is_what_was_written(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    config = LogConfig(
        index_interval_bytes=rng.choice([0, 300, 2_000]), segment_bytes=rng.choice([5_000, 40_000])
    )
    log = written(tmp_path / "t-0", config)
    segment = log.segments[0]
    content = Path(segment.file.path).read_bytes()
    batches = len(content) // SIZE
    harmed = bytearray(content)
    places = rng.choice([1, 1, 2, 3])
    for _ in range(places):
        begin = SIZE * rng.randrange(batches)
        where, data = HARMS[rng.choice(list(HARMS))](rng)
        data = data[: len(content) - begin - where]
        harmed[begin + where : begin + where + len(data)] = data
    sound = {
        2 * number: content[number * SIZE : (number + 1) * SIZE]
        for number in range(batches)
        if harmed[number * SIZE : (number + 1) * SIZE]
        == content[number * SIZE : (number + 1) * SIZE]
    }
    overwrite(segment, 0, bytes(harmed))
    index_harm = rng.choice(list(INDEX_HARMS))
    log.close()
    index = Path(segment.offset_index.file.path)
    index.write_bytes(INDEX_HARMS[index_harm](index.read_bytes(), rng))
    log = open_log(log.folder, config, is_clean=True)

    readable = set()
    for offset in rng.sample(range(2 * batches), 2 * batches):
        try:
            data = read(log, offset, max_bytes=1)
        except RecordsDamaged:
            continue
        base = offset - offset % 2
        if base in sound:
            assert data == sound[base]
            readable.add(base)

    # What lies between two places of damage and has no entry of its own may be given up.
    if index_harm == "" and places == 1:
        assert readable == set(sound), "an index that is right leads to all that is sound"
    behind = log.segments[1].base_offset
    assert spans(read(log, behind, max_bytes=1)) == [(behind, behind + 1)]
    log.abandon()


@pytest.mark.parametrize("number", range(30, 50))
def test_false_offset_rebuilds_the_indexes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(index_rebuild, "STEP_BYTES", 4_000)
    log = written(tmp_path / "t-0")
    overwrite(log.segments[0], number * SIZE, (2 * number + 4_096).to_bytes(8, "big"))
    log = clean_start(log)
    batches = range(log.segments[1].base_offset // 2)
    rebuilds: set[object] = set()
    answers = []

    for searched in batches:
        while True:
            try:
                answers.append(at_time(log, NOW_MS + 1_000 * searched))
            except IndexUnfinished:
                (rebuild,) = log.handles.rebuilds
                assert rebuilds <= {rebuild}, "the indexes were new already"
                rebuilds.add(rebuild)
                while not rebuild.step():
                    pass
            else:
                break

    late = [
        searched
        for searched, answer in zip(batches, answers, strict=True)
        if searched != number and (answer is None or answer.offset > 2 * searched)
    ]
    assert late == []
    log.abandon()
