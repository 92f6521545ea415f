"""A flipped bit in the offsets of a batch, which no CRC covers or no broker checks.

Whichever bit is flipped, readers get each sound batch or an error for it, and never wait without
end.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from brokers.protocol.records.batch import CHECKED_POSITION, Batch
from brokers.protocol.records.crc32c import crc32c
from brokers.storage.headers import Header
from brokers.storage.holes import RecordsDamaged
from brokers.storage.index_rebuild import IndexUnfinished
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.cleaning import clean_now, compacted, compacted_log, fill_keys
from tests.builders.logs import NOW_MS, append, batch, open_log, read, spans

# Some twelve batches to an entry of the index, and sixty to a segment.
CONFIG = LogConfig(index_interval_bytes=2_000, segment_bytes=12_000)
BASE_OFFSET_AT, DELTA_AT = 0, 23
BITS = [(BASE_OFFSET_AT, bit) for bit in range(64)] + [(DELTA_AT, bit) for bit in range(32)]


class Placed(NamedTuple):
    """A batch as it was before a bit was flipped."""

    header: Header
    data: bytes


def placed(log: PartitionLog, segment: int) -> list[Placed]:
    found = log.segments[segment]
    content = Path(found.file.path).read_bytes()
    return [Placed(h, content[h.position : h.end]) for h in found.headers()]


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> PartitionLog:
    """Three segments; all offsets follow on one another."""
    log = open_log(tmp_path_factory.mktemp("dense") / "t-0", CONFIG)
    number = 0
    while len(log.segments) < 3:
        append(log, batch(records=1 + number % 3, size=80, timestamp=NOW_MS + number))
        number += 1
    log.close()
    return log


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> PartitionLog:
    """A compacted log, with gaps between its batches and offsets without records in them."""
    config = compacted(segment_bytes=12_000, index_interval_bytes=2_000)
    log = compacted_log(tmp_path_factory.mktemp("sparse") / "t-0", config)
    rng = random.Random(5)
    while len(log.segments) < 6:
        fill_keys(log, [(b"%d" % rng.randrange(300), b"v" * 80)])
    clean_now(log)
    assert len(log.segments) > 2
    log.close()
    return log


@contextmanager
def flipped(closed: PartitionLog, position: int, field: int, bit: int) -> Iterator[PartitionLog]:
    """The log as a later run finds it, with one bit of the first segment flipped."""
    path = Path(closed.folder) / "00000000000000000000.log"
    content = path.read_bytes()
    width = 8 if field == BASE_OFFSET_AT else 4
    at = position + field + width - 1 - bit // 8
    changed = content[at] ^ (1 << bit % 8)
    path.write_bytes(content[:at] + bytes([changed]) + content[at + 1 :])
    log = open_log(closed.folder, closed.config, is_clean=True)
    try:
        yield log
    finally:
        log.abandon()
        path.write_bytes(content)


def answer(log: PartitionLog, offset: int, max_bytes: int = 1) -> bytes | RecordsDamaged:
    """The answer that a client gets after retries while indexes are rebuilt."""
    while True:
        try:
            return read(log, offset, max_bytes=max_bytes, skips_empty=True)
        except RecordsDamaged as lost:
            return lost
        except IndexUnfinished:
            for rebuild in list(log.handles.rebuilds):
                rebuild.step()


def is_sound(data: bytes) -> bool:
    found = Batch(memoryview(data))
    return crc32c(data[CHECKED_POSITION : found.size]) == found.crc


def asked(rng: random.Random, batches: list[Placed], number: int) -> list[int]:
    """Offsets around a batch, which an index interval holds, and some of the rest, in any order."""
    near = batches[max(0, number - 3) : number + 30]
    offsets = {
        offset for one in near for offset in (one.header.base_offset, one.header.last_offset)
    }
    offsets |= {rng.randrange(batches[-1].header.last_offset) for _ in range(5)}
    return rng.sample(sorted(offsets), len(offsets))


def assert_told(log: PartitionLog, batches: list[Placed], wrong: int, offset: int) -> None:
    """Assert that the batch with an offset, or the next one, is read, or reported as lost."""
    number = next(n for n, one in enumerate(batches) if one.header.last_offset >= offset)
    found = answer(log, offset)
    if isinstance(found, RecordsDamaged):
        hole = found.hole
        assert hole.first_offset <= offset < hole.next_offset, f"{offset}: {hole}"
        # Nothing but the damaged batch and its neighbour may be given up.
        lost = [n for n, one in enumerate(batches) if hole.covers(one.header.position)]
        assert wrong in lost
        assert len(lost) <= 2, f"{offset}: {lost} for {wrong}"
        return
    assert found, f"{offset} is answered with nothing"
    if number == wrong:
        # Clients notice a wrong last offset by the CRC; no CRC covers the base offset.
        assert not is_sound(found), f"{offset}: {spans(found)}"
    else:
        assert found == batches[number].data, f"{offset}: {spans(found)}"


def is_in_its_gap(batches: list[Placed], end: int, number: int, field: int, bit: int) -> bool:
    """Return whether a flipped offset is still between its neighbours, so that no check can notice
    it.
    """
    header = batches[number].header
    behind = [*(one.header.base_offset for one in batches), end][number + 1]
    first, last = header.base_offset, header.last_offset
    if field == BASE_OFFSET_AT:
        moved = (first ^ (1 << bit)) - first
        first, last = first + moved, last + moved
    else:
        last = first + ((last - first) ^ (1 << bit))
    before = batches[number - 1].header.last_offset if number else -1
    return first > before and first <= last < behind


@pytest.mark.parametrize("number", [0, 1, 11, 12, 13, 20, -2, -1])
def test_flipped_bit_in_the_offsets_of_a_closed_segment_is_reported(
    dense: PartitionLog, number: int
) -> None:
    batches = placed(open_log(dense.folder, CONFIG, is_clean=True), 0)
    wrong = number % len(batches)
    rng = random.Random(wrong)

    for field, bit in BITS:
        with flipped(dense, batches[wrong].header.position, field, bit) as log:
            for offset in asked(rng, batches, wrong):
                assert_told(log, batches, wrong, offset)
            assert len(log.handles.take_damage()) <= 1, (field, bit)


@pytest.mark.parametrize("number", [0, 9, 13, 20, -2, -1])
def test_flipped_bit_in_a_log_with_gaps_is_reported_unless_plausible(
    sparse: PartitionLog, number: int
) -> None:
    log = open_log(sparse.folder, sparse.config, is_clean=True)
    batches, end = placed(log, 0), log.segments[1].base_offset
    wrong = number % len(batches)
    rng = random.Random(wrong)

    for field, bit in BITS:
        if is_in_its_gap(batches, end, wrong, field, bit):
            continue
        with flipped(sparse, batches[wrong].header.position, field, bit) as log:
            for offset in asked(rng, batches, wrong):
                assert_told(log, batches, wrong, offset)


@pytest.mark.parametrize("bit", [1, 4, 16, 40])
def test_last_batch_beyond_the_log_end_is_reported_and_later_ones_read(
    tmp_path: Path, bit: int
) -> None:
    log = open_log(tmp_path / "t-0")
    for _ in range(3):
        append(log, batch(records=2))
    log.close()
    log = open_log(log.folder, is_clean=True)
    active = log.segments.active
    with Path(active.file.path).open("r+b") as file:
        file.seek(2 * active.size // 3 + 7 - bit // 8)
        file.write(bytes([(4 ^ (1 << bit)) >> bit // 8 * 8 & 0xFF]))

    first = [answer(log, offset) for offset in (4, 5)]
    append(log, batch(records=2))
    again = [answer(log, offset) for offset in (5, 4)]

    for lost in (*first, *again):
        assert isinstance(lost, RecordsDamaged)
        assert lost.hole.first_offset == 4
    assert len(log.handles.take_damage()) == 1
    assert spans(read(log, 6)) == [(6, 7)]
    assert spans(read(log, 2)) == [(2, 3)]
    log.abandon()


def test_read_ends_before_a_batch_with_false_offsets(
    dense: PartitionLog,
) -> None:
    batches = placed(open_log(dense.folder, CONFIG, is_clean=True), 0)
    with flipped(dense, batches[5].header.position, BASE_OFFSET_AT, 16) as log:
        length = batches[5].header.end - batches[3].header.position
        found = answer(log, batches[3].header.base_offset, max_bytes=length)

    assert found == batches[3].data + batches[4].data
