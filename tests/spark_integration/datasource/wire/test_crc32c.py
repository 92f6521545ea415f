"""The checksum without its package is that of the package."""

import random

import pytest

from spark_integration.datasource.wire import crc32c as module
from spark_integration.datasource.wire.crc32c import MOST_BYTES, PIECE, crc32c, portable_crc32c


def test_the_known_answer_comes_with_and_without_the_package() -> None:
    known = b"123456789"

    assert crc32c(known) == 0xE3069283
    assert portable_crc32c(known) == 0xE3069283
    assert portable_crc32c(b"") == crc32c(b"") == 0


@pytest.mark.parametrize("around", [0, PIECE, 8 * PIECE, 4096])
def test_every_length_around_a_piece_is_right(around: int) -> None:
    data = random.Random(around).randbytes(around + 9)

    for length in range(max(0, around - 9), around + 9):
        assert portable_crc32c(memoryview(data)[:length]) == crc32c(data[:length])


@pytest.mark.parametrize("beyond", [1, 3, 4, PIECE + 1])
def test_checksum_of_long_data_continues(monkeypatch: pytest.MonkeyPatch, beyond: int) -> None:
    assert MOST_BYTES % PIECE == 0
    monkeypatch.setattr(module, "MOST_BYTES", 2 * PIECE)
    data = random.Random(beyond).randbytes(6 * PIECE + beyond)

    assert portable_crc32c(data) == crc32c(data)
