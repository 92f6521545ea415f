"""Telling a page that was never written from bytes that rotted."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brokers.storage.files import LocalFiles
from brokers.storage.resync import PAGE_BYTES, has_lost_page, has_sound_batch
from tests.builders.logs import batch

FILES = LocalFiles()
NOISE = bytes(range(1, 251))


@contextmanager
def opened(folder: Path, data: bytes) -> Iterator[int]:
    path = folder / "0.log"
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.mark.parametrize("gap", [1, 61, 5_000, 1_048_576 - 30, 3_000_000])
def test_a_sound_batch_is_found_behind_any_amount_of_noise(tmp_path: Path, gap: int) -> None:
    noise = (NOISE * (gap // len(NOISE) + 1))[:gap]
    data = noise + bytes(batch(base_offset=700)) + NOISE

    with opened(tmp_path, data) as fd:
        assert has_sound_batch(FILES, fd, 0, len(data), 500)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(100_000),
        b"\x02" * 100_000,
        NOISE * 400,
        NOISE + bytes(batch(base_offset=499)),
        NOISE + bytes(batch(base_offset=700))[:-1],
    ],
    ids=["nothing", "zeros", "magics", "noise", "an earlier offset", "cut off"],
)
def test_batch_that_must_not_follow_is_not_accepted(tmp_path: Path, data: bytes) -> None:
    with opened(tmp_path, data) as fd:
        assert not has_sound_batch(FILES, fd, 0, len(data), 500)


def test_bad_batch_itself_does_not_prove_a_sound_one(tmp_path: Path) -> None:
    data = bytes(batch(base_offset=700))

    with opened(tmp_path, data) as fd:
        assert not has_sound_batch(FILES, fd, 0, len(data), 500)


def holed(position: int, size: int, hole: tuple[int, int]) -> bytes:
    """A batch at `position` in a file without zeros, except for those of a hole."""
    data = bytearray(b"\xff" * position + bytes(batch(size=size)).replace(b"\0", b"\xff"))
    data[position + 8 : position + 12] = (len(data) - position - 12).to_bytes(4, "big")
    data[slice(*hole)] = bytes(hole[1] - hole[0])
    return bytes(data)


@pytest.mark.parametrize(
    ("hole", "is_lost"),
    [
        ((5_000, 8_192), True),
        ((8_192, 12_288), True),
        ((12_288, 20_480), True),
        ((8_193, 12_288), False),
        ((5_000, 8_191), False),
        ((9_000, 13_000), False),
        ((0, 0), False),
    ],
    ids=["to the page's end", "a page", "pages", "less", "less to the end", "unaligned", "none"],
)
def test_only_whole_pages_of_zeros_count_as_lost(
    tmp_path: Path, hole: tuple[int, int], is_lost: bool
) -> None:
    data = holed(5_000, 20_000, hole)

    with opened(tmp_path, data) as fd:
        assert has_lost_page(FILES, fd, 5_000, len(data)) is is_lost


def test_end_of_a_file_is_not_a_lost_page(tmp_path: Path) -> None:
    with opened(tmp_path, bytes(batch())) as fd:
        size = os.fstat(fd).st_size
        assert not has_lost_page(FILES, fd, size, size)


def test_zeros_behind_the_bad_batch_are_not_its_own(tmp_path: Path) -> None:
    data = holed(5_000, 1_000, (0, 0)) + bytes(4 * PAGE_BYTES)

    with opened(tmp_path, data) as fd:
        assert not has_lost_page(FILES, fd, 5_000, len(data))
