"""A scan stops in front of the first byte that cannot be trusted."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brokers.storage.files import LocalFiles
from brokers.storage.scan import BLOCK_BYTES, Scan
from tests.builders.logs import batch
from tests.scale import count


def batches(*sizes: int, base_offset: int = 0, epochs: tuple[int, ...] = ()) -> list[bytes]:
    """One batch of three records per size, at consecutive offsets."""
    return [
        bytes(
            batch(
                records=3,
                size=size,
                base_offset=base_offset + 3 * number,
                epoch=epochs[number] if epochs else 0,
            )
        )
        for number, size in enumerate(sizes)
    ]


@contextmanager
def scan(folder: Path, data: bytes, *, next_offset: int = 0, epoch: int = -1) -> Iterator[Scan]:
    path = folder / "0.log"
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        yield Scan(
            LocalFiles(), fd, position=0, stop=len(data), next_offset=next_offset, epoch=epoch
        )
    finally:
        os.close(fd)


def test_sound_batches_are_given_out_whole_and_in_order(tmp_path: Path) -> None:
    data = batches(50, 5_000, 50)

    with scan(tmp_path, b"".join(data)) as scanned:
        found = [
            (base, last, bytes(scanned.batch(position, size).buffer))
            for position, size, base, last, *_ in scanned
        ]

    assert found == [(0, 2, data[0]), (3, 5, data[1]), (6, 8, data[2])]
    assert scanned.flaw is None
    assert scanned.next_offset == 9
    assert scanned.position == sum(map(len, data))


def test_batches_across_block_borders_and_beyond_a_block_are_read(tmp_path: Path) -> None:
    data = batches(BLOCK_BYTES // 3 - 7, 200_000, 50, BLOCK_BYTES, 50)

    with scan(tmp_path, b"".join(data)) as scanned:
        sizes = [len(scanned.batch(position, size).buffer) for position, size, *_ in scanned]

    assert sizes == [len(one) for one in data]
    assert scanned.flaw is None


def test_gaps_between_offsets_are_sound(tmp_path: Path) -> None:
    data = batches(50) + batches(50, base_offset=100)

    with scan(tmp_path, b"".join(data)) as scanned:
        assert [base for _, _, base, *_ in scanned] == [0, 100]

    assert scanned.flaw is None


@pytest.mark.parametrize(
    ("data", "options", "reason"),
    [
        (batches(50, 50, base_offset=5), {"next_offset": 6}, "base offset 5 (at least 6)"),
        (batches(50, epochs=(4,)), {"epoch": 5}, "leader epoch 4 (at least 5)"),
        ([*batches(50), bytes(200)], {}, "magic 0"),
        ([*batches(50), b"\x7f" * 30], {}, "30 bytes hold no batch header"),
        (batches(50, 50, epochs=(7, 6)), {}, "leader epoch 6 (at least 7)"),
        ([*batches(50), *batches(50)], {}, "base offset 0 (at least 3)"),
    ],
)
def test_batch_that_must_not_follow_is_a_flaw(
    tmp_path: Path, data: list[bytes], options: dict[str, int], reason: str
) -> None:
    with scan(tmp_path, b"".join(data), **options) as scanned:
        sound = list(scanned)

    assert scanned.flaw is not None
    assert reason in scanned.flaw
    assert scanned.position == sum(size for _, size, *_ in sound)


@pytest.mark.parametrize(
    ("data", "is_cut_off", "is_whole"),
    [
        (b"".join(batches(50, epochs=(4,))), False, True),
        (b"".join(batches(50, epochs=(4,)))[:-1] + b"\x7f", False, False),
        (b"".join(batches(50, epochs=(5,)))[:-1], True, False),
        (b"".join(batches(50, epochs=(5,)))[:40], True, False),
        (bytes(200), False, False),
        (b"\xff" * 200, False, False),
    ],
    ids=["an older epoch", "and rotten", "no end", "no header", "zeros", "noise"],
)
def test_flaw_distinguishes_an_incomplete_batch_from_a_complete_one(
    tmp_path: Path, data: bytes, is_cut_off: bool, is_whole: bool
) -> None:
    with scan(tmp_path, data, epoch=5) as scanned:
        assert list(scanned) == []

    assert scanned.flaw is not None
    assert (scanned.is_cut_off, scanned.is_whole) == (is_cut_off, is_whole)


def test_a_flipped_bit_anywhere_ends_the_scan_at_that_batch(tmp_path: Path) -> None:
    data = batches(60, 60, 60)
    start, end = len(data[0]), len(data[0]) + len(data[1])
    rng = random.Random(7)

    for _ in range(count(200, 400, long=4_000)):
        broken = bytearray(b"".join(data))
        at = rng.randrange(start, end)
        broken[at] ^= 1 << rng.randrange(8)
        with scan(tmp_path, bytes(broken)) as scanned:
            sound = list(scanned)

        # Base offset and leader epoch lie outside of the CRC; only nonsense is noticed there.
        if start <= at < start + 8 or start + 12 <= at < start + 16:
            continue
        assert len(sound) == 1, f"bit at {at - start} of the second batch went unnoticed"
        assert scanned.position == start


def test_a_file_cut_anywhere_is_sound_up_to_the_last_whole_batch(tmp_path: Path) -> None:
    data = batches(20, 30)
    whole = b"".join(data)

    for length in range(len(whole)):
        with scan(tmp_path, whole[:length]) as scanned:
            found = list(scanned)
        assert len(found) == (1 if length >= len(data[0]) else 0)
        assert (scanned.flaw is None) == (length in {0, len(data[0])})


def test_false_length_allocates_no_memory(tmp_path: Path) -> None:
    data = bytearray(b"".join(batches(50)) + bytes(10 * BLOCK_BYTES))
    data[8:12] = (10 * BLOCK_BYTES).to_bytes(4, "big")

    with scan(tmp_path, bytes(data)) as scanned:
        assert list(scanned) == []

    assert scanned.flaw is not None
    assert "CRC" in scanned.flaw
