"""A segment finds its batches, whatever has become of its indexes."""

import random
from pathlib import Path

import pytest

from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.segment import Segment
from tests.builders.logs import NOW_MS, append, at_time, batch, fill, open_log

CONFIG = LogConfig(index_interval_bytes=300, segment_bytes=1 << 20)


def written(folder: Path, batches: int = 60) -> PartitionLog:
    """A log of one segment with batches of two records and a growing timestamp."""
    log = open_log(folder, CONFIG)
    for number in range(batches):
        append(log, batch(records=2, size=80, timestamp=NOW_MS + 10 * number))
    return log


def reopened(folder: Path, batches: int = 60) -> Segment:
    """The same segment as a later run finds it after a clean end."""
    written(folder, batches).close()
    return open_log(folder, CONFIG, is_clean=True).segments.active


def entries(data: bytes, width: int) -> list[bytes]:
    return [data[at : at + width] for at in range(0, len(data), width)]


def test_index_entries_are_made_by_kafkas_rule(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0")
    headers = list(log.segments.active.headers())
    log.close()

    expected, since = [], 0
    for header in headers:
        if since > CONFIG.index_interval_bytes:
            expected.append((header.last_offset, header.position))
            since = 0
        since += header.size
    raw = (tmp_path / "t-0" / f"{0:020}.index").read_bytes()
    found = [(int.from_bytes(e[:4], "big"), int.from_bytes(e[4:], "big")) for e in entries(raw, 8)]
    assert found == expected
    assert len(expected) > 10


def test_the_time_index_ends_with_the_greatest_timestamp(tmp_path: Path) -> None:
    written(tmp_path / "t-0").close()

    raw = (tmp_path / "t-0" / f"{0:020}.timeindex").read_bytes()
    last = entries(raw, 12)[-1]
    assert int.from_bytes(last[:8], "big") == NOW_MS + 590 + 1
    assert int.from_bytes(last[8:], "big") == 119


@pytest.mark.parametrize("offset", [0, 1, 2, 57, 118, 119])
def test_every_offset_is_found_in_the_batch_that_holds_it(tmp_path: Path, offset: int) -> None:
    segment = reopened(tmp_path / "t-0")

    found = segment.find(offset, CONFIG)

    assert found is not None
    assert found.base_offset <= offset <= found.last_offset


def test_an_offset_behind_the_last_batch_is_not_found(tmp_path: Path) -> None:
    assert reopened(tmp_path / "t-0").find(120, CONFIG) is None


def damaged(path: Path, damage: str) -> None:
    content = path.read_bytes()
    rng = random.Random(damage)
    path.write_bytes(
        {
            "empty": b"",
            "garbage": rng.randbytes(len(content)),
            "short garbage": rng.randbytes(13),
            "too short": content[: len(content) // 2],
            "cut in an entry": content[:-3],
            "too long": content + rng.randbytes(600),
            "zeros behind": content + bytes(4_096),
            "zeros": bytes(len(content)),
            "another log's": bytes.fromhex("0000000500000123") * (len(content) // 8),
        }[damage]
    )


DAMAGES = [
    "empty",
    "garbage",
    "short garbage",
    "too short",
    "cut in an entry",
    "too long",
    "zeros behind",
    "zeros",
    "another log's",
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "unclean"])
def test_a_damaged_index_changes_no_answer(
    tmp_path: Path, suffix: str, damage: str, is_clean: bool
) -> None:
    written(tmp_path / "t-0").close()
    damaged(tmp_path / "t-0" / f"{0:020}{suffix}", damage)

    log = open_log(tmp_path / "t-0", CONFIG, is_clean=is_clean)

    assert log.end_offset == 120
    for offset in range(0, 120, 7):
        found = log.read(offset, max_bytes=250)
        assert found.base_offset == offset - offset % 2
        found.release()
    for number in range(60):
        found_at = at_time(log, NOW_MS + 10 * number)
        assert found_at is not None
        assert found_at.offset == 2 * number
    assert log.segments.active.largest_timestamp(CONFIG) == NOW_MS + 591
    log.close()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_damaged_index_of_an_old_segment_is_noticed_when_it_is_used(
    tmp_path: Path, suffix: str, damage: str
) -> None:
    config = LogConfig(index_interval_bytes=300, segment_bytes=10_000)
    log = open_log(tmp_path / "t-0", config)
    fill(log, 100, records=2, size=80)
    assert len(log.segments) > 2
    log.close()
    damaged(tmp_path / "t-0" / f"{0:020}{suffix}", damage)

    log = open_log(tmp_path / "t-0", config, is_clean=True)

    end = log.segments[1].base_offset
    for offset in range(0, end, 5):
        for max_offset in (None, offset + 5):
            found = log.read(offset, max_bytes=1_500, max_offset=max_offset)
            assert found.base_offset == offset - offset % 2
            data = found.read(log.handles.files)
            # The slice ends at a batch boundary: what follows it begins with the next offset.
            assert data.count(b"v" * 75) % 2 == 0
            found.release()
    assert log.segments[0].largest_timestamp(config) == NOW_MS + 1
    log.close()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_deleted_index_is_made_again(tmp_path: Path, suffix: str) -> None:
    written(tmp_path / "t-0").close()
    path = tmp_path / "t-0" / f"{0:020}{suffix}"
    before = path.read_bytes()
    path.unlink()

    open_log(tmp_path / "t-0", CONFIG, is_clean=True).close()

    assert path.read_bytes() == before


def index_files(segment: Segment) -> list[bytes]:
    return [Path(path).read_bytes() for path in segment.paths()[1:3]]


def test_a_rebuilt_index_equals_the_one_that_grew(tmp_path: Path) -> None:
    segment = written(tmp_path / "t-0").segments.active
    segment.seal()
    grown = index_files(segment)

    assert segment.rebuild_indexes(CONFIG) == 120

    assert index_files(segment) == grown


def test_the_first_timestamp_is_read_once_and_kept(tmp_path: Path) -> None:
    segment = reopened(tmp_path / "t-0")

    assert segment.first_timestamp is None
    assert segment.read_first_timestamp() == NOW_MS + 1
    assert segment.first_timestamp == NOW_MS + 1


def test_a_segment_takes_all_its_files_along_to_another_name(tmp_path: Path) -> None:
    segment = reopened(tmp_path / "t-0")

    for marker in (".swap", ""):
        segment.rename(marker)

        names = {path.name[20:] for path in (tmp_path / "t-0").iterdir() if path.name[0] == "0"}
        assert {f"{suffix}{marker}" for suffix in (".log", ".index", ".timeindex")} <= names
        segment.release()
        header = segment.find(57, CONFIG)
        assert header is not None
        assert header.last_offset == 57
