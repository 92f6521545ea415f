"""From batch to batch by headers, with few reads and no trust in what is not one."""

import os
from pathlib import Path

import pytest

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles
from brokers.storage.headers import Header, header_at, seek, walk
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
def test_what_cannot_be_a_batch_is_corrupt_at_its_position(
    tmp_path: Path, at: int, value: int
) -> None:
    fd, path, length = written(tmp_path, 50, 50)
    second = len(batch(records=2, size=50))
    os.pwrite(fd, bytes([value]), second + at)

    headers = walk(FILES, fd, path, 0, length)
    assert next(headers).position == 0
    with pytest.raises(StorageCorrupt) as caught:
        next(headers)

    assert (caught.value.path, caught.value.position) == (path, second)
    os.close(fd)


def test_a_header_that_is_cut_off_is_corrupt(tmp_path: Path) -> None:
    fd, path, length = written(tmp_path, 50, 50)

    with pytest.raises(StorageCorrupt):
        list(walk(FILES, fd, path, 0, length // 2 + 40))
    os.close(fd)


@pytest.mark.parametrize("offset", range(9))
def test_seek_finds_the_batch_that_a_walk_would(tmp_path: Path, offset: int) -> None:
    fd, path, length = written(tmp_path, 50, 5_000, 50, 20_000)

    found = seek(FILES, fd, path, 0, length, offset, None)

    walked = [h for h in walk(FILES, fd, path, 0, length) if h.last_offset >= offset]
    assert found == (walked[0] if walked else None)
    os.close(fd)


def test_seek_holds_an_index_to_what_it_said(tmp_path: Path) -> None:
    fd, path, length = written(tmp_path, 50, 50)
    second = len(batch(records=2, size=50))

    assert isinstance(seek(FILES, fd, path, second, length, 3, 3), Header)
    with pytest.raises(StorageCorrupt, match="ends at 3"):
        seek(FILES, fd, path, second, length, 3, 2)
    os.close(fd)


def test_a_single_header_is_what_a_walk_would_see_there(tmp_path: Path) -> None:
    fd, path, length = written(tmp_path, 50, 5_000, 50)

    for header in walk(FILES, fd, path, 0, length):
        assert header_at(FILES, fd, header.position, length) == header

    assert header_at(FILES, fd, length - 60, length) is None
    os.close(fd)
