"""From batch to batch by headers, with few reads and no trust in what is not one."""

import os
from pathlib import Path

import pytest

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles
from brokers.storage.headers import Header, NoBatch, header_at, seek, walk
from brokers.storage.offset_index import IndexEntry
from tests.builders.logs import NOW_MS, batch

FILES = LocalFiles()


class CountingFiles(LocalFiles):
    """Local files that count reads."""

    def __init__(self) -> None:
        self.reads = 0

    def pread(self, fd: int, length: int, position: int) -> bytes:
        self.reads += 1
        return os.pread(fd, length, position)


def written(folder: Path, *sizes: int) -> tuple[int, str, int]:
    """A log file with one batch of two records per size: its descriptor, path and length."""
    path = folder / "0.log"
    data = b"".join(
        batch(records=2, size=size, base_offset=2 * number, epoch=3, timestamp=NOW_MS + number)
        for number, size in enumerate(sizes)
    )
    path.write_bytes(data)
    return os.open(path, os.O_RDWR), str(path), len(data)


def test_every_batch_is_seen_with_its_place(tmp_path: Path) -> None:
    fd, path, length = written(tmp_path, 50, 5_000, 50, 20_000)

    headers = list(walk(FILES, fd, path, 0, length))

    assert [(h.base_offset, h.last_offset) for h in headers] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert [h.position for h in headers[1:]] == [h.end for h in headers[:-1]]
    assert headers[-1].end == length
    assert {h.leader_epoch for h in headers} == {3}
    assert headers[2].max_timestamp == NOW_MS + 3
    os.close(fd)


def test_small_batches_cost_one_read_per_block_and_large_ones_read_headers_only(
    tmp_path: Path,
) -> None:
    files = CountingFiles()
    fd, path, length = written(tmp_path, *[50] * 100)
    list(walk(files, fd, path, 0, length))
    os.close(fd)
    assert files.reads <= length // 8_000 + 1

    files.reads = 0
    fd, path, length = written(tmp_path, *[100_000] * 5)
    list(walk(files, fd, path, 0, length))
    os.close(fd)
    assert files.reads == 5


@pytest.mark.parametrize(
    ("at", "value"),
    [(16, 1), (8, 0x7F), (11, 48), (23, 0xFF)],
    ids=["magic", "too long", "too short", "negative delta"],
)
def test_invalid_batch_is_corrupt_at_its_position(tmp_path: Path, at: int, value: int) -> None:
    fd, path, length = written(tmp_path, 50, 50)
    second = len(batch(records=2, size=50))
    os.pwrite(fd, bytes([value]), second + at)

    headers = walk(FILES, fd, path, 0, length)
    assert next(headers).position == 0
    with pytest.raises(StorageCorrupt) as caught:
        next(headers)

    assert (caught.value.path, caught.value.position) == (path, second)
    os.close(fd)


def flipped(data: bytes, at: int, bit: int) -> bytes:
    """The bytes with one bit of a base offset at `at` flipped."""
    base = int.from_bytes(data[at : at + 8], "big") ^ (1 << bit)
    return data[:at] + base.to_bytes(8, "big") + data[at + 8 :]


def with_base_offsets(folder: Path, *offsets: int) -> tuple[int, str, int, int]:
    """A log file with one batch of two records for each base offset, and the size of one."""
    path = folder / "0.log"
    data = b"".join(batch(records=2, size=50, base_offset=offset) for offset in offsets)
    path.write_bytes(data)
    return os.open(path, os.O_RDWR), str(path), len(data), len(data) // len(offsets)


@pytest.mark.parametrize(
    ("offsets", "wrong", "doubted"),
    [
        ([0, 2, 0, 6, 8], 2, 1),
        ([0, 2, 68, 6, 8], 2, 1),
        ([0, 2, 6, 6, 8], 2, 1),
        ([0, 2, 12, 8, 20], 2, 2),
        ([0, 2, 4, 6, 99], 4, 1),
        ([0, 2, 4, 98, 8], 3, 1),
        ([64, 2, 4, 6, 8], 0, 1),
    ],
    ids=["too low", "too high", "of the next", "either", "at the bound", "above the next", "first"],
)
def test_batch_that_contradicts_its_neighbours_is_rejected(
    tmp_path: Path, offsets: list[int], wrong: int, doubted: int
) -> None:
    fd, path, length, size = with_base_offsets(tmp_path, *offsets)

    with pytest.raises(NoBatch) as caught:
        list(walk(FILES, fd, path, 0, length, last_offset=-1, bound=100))

    assert caught.value.position == wrong * size
    assert caught.value.doubted_until in (wrong * size + 1, (wrong + doubted) * size)
    assert caught.value.last_offset == (offsets[wrong - 1] + 1 if wrong else -1)
    os.close(fd)


def test_gaps_between_batches_contradict_nothing(tmp_path: Path) -> None:
    fd, path, length, _size = with_base_offsets(tmp_path, 3, 7, 20, 22, 90)

    found = list(walk(FILES, fd, path, 0, length, last_offset=-1, bound=100))

    assert [header.base_offset for header in found] == [3, 7, 20, 22, 90]
    for offset, base in ((0, 3), (4, 3), (5, 7), (9, 20), (23, 22), (24, 90)):
        header = seek(FILES, fd, path, IndexEntry(0, 0), length, offset, length)
        assert header is not None
        assert header.base_offset == base
    os.close(fd)


@pytest.mark.parametrize("bit", [0, 1, 3, 16, 62, 63])
@pytest.mark.parametrize("offset", [4, 5, 6, 68])
def test_seek_passes_no_batch_that_contradicts_another(
    tmp_path: Path, offset: int, bit: int
) -> None:
    fd, path, length, size = with_base_offsets(tmp_path, *range(0, 100, 2))
    os.pwrite(fd, flipped(os.pread(fd, size, 2 * size), 0, bit), 2 * size)

    with pytest.raises(StorageCorrupt):
        seek(FILES, fd, path, IndexEntry(0, 0), length, offset, length)
    os.close(fd)


def test_batches_that_follow_on_one_another_cost_no_look_at_the_one_behind(tmp_path: Path) -> None:
    files = CountingFiles()
    fd, path, length = written(tmp_path, *[100_000] * 5)

    seek(files, fd, path, IndexEntry(0, 0), length, 4, length)

    assert files.reads == 3
    os.close(fd)


def test_a_header_that_is_cut_off_is_corrupt(tmp_path: Path) -> None:
    fd, path, length = written(tmp_path, 50, 50)

    with pytest.raises(StorageCorrupt):
        list(walk(FILES, fd, path, 0, length // 2 + 40))
    os.close(fd)


@pytest.mark.parametrize("offset", range(9))
def test_seek_finds_the_batch_that_a_walk_would(tmp_path: Path, offset: int) -> None:
    fd, path, length = written(tmp_path, 50, 5_000, 50, 20_000)

    found = seek(FILES, fd, path, IndexEntry(0, 0), length, offset, length)

    walked = [h for h in walk(FILES, fd, path, 0, length) if h.last_offset >= offset]
    assert found == (walked[0] if walked else None)
    os.close(fd)


def test_seek_holds_an_index_to_what_it_said(tmp_path: Path) -> None:
    fd, path, length = written(tmp_path, 50, 50)
    second = len(batch(records=2, size=50))

    assert isinstance(seek(FILES, fd, path, IndexEntry(3, second), length, 3, length), Header)
    with pytest.raises(StorageCorrupt, match="ends at 3"):
        seek(FILES, fd, path, IndexEntry(2, second), length, 3, length)
    os.close(fd)


def test_a_single_header_is_what_a_walk_would_see_there(tmp_path: Path) -> None:
    fd, path, length = written(tmp_path, 50, 5_000, 50)

    for header in walk(FILES, fd, path, 0, length):
        assert header_at(FILES, fd, header.position, length) == header

    assert header_at(FILES, fd, length - 60, length) is None
    os.close(fd)
