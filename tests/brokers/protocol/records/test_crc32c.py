"""The checksum is the Castagnoli one, not the CRC-32 of zip files."""

import pytest

from brokers.protocol.records.crc32c import crc32c


@pytest.mark.parametrize(
    ("data", "expected"),
    # The first three are test vectors of RFC 3720, appendix B.4.
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_published_vectors_give_their_checksum(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


def test_a_writable_view_is_read_without_a_copy_and_piecewise() -> None:
    view = memoryview(bytearray(b"123456789"))

    assert crc32c(view[4:], crc32c(view[:4])) == 0xE3069283
