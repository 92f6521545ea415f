"""The wire's number forms at their edges, and what the refusals say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.protocol import primitives
from brokers.protocol.errors import DecodeError, EncodeError
from brokers.protocol.primitives import (
    MAX_ELEMENTS,
    MAX_STRING_BYTES,
    ONE_BYTE,
    read_uvarint,
    skip_tags,
    string_length,
    uvarint,
)

EDGES = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8001",
    300: "ac02",
    16_383: "ff7f",
    16_384: "808001",
    2_097_151: "ffff7f",
    2**31 - 1: "ffffffff07",
    2**32 - 1: "ffffffff0f",
}


@pytest.mark.parametrize(("number", "wire"), EDGES.items())
def test_a_varint_takes_seven_bits_a_byte_the_lowest_first(number: int, wire: str) -> None:
    assert uvarint(number).hex() == wire
    assert read_uvarint(bytes.fromhex(wire), 0) == (number, len(wire) // 2)


@given(st.integers(0, 2**32 - 1), st.binary(max_size=5), st.binary(max_size=5))
def test_a_varint_is_read_wherever_it_stands(number: int, before: bytes, after: bytes) -> None:
    buffer = memoryview(before + uvarint(number) + after)

    assert read_uvarint(buffer, len(before)) == (number, len(buffer) - len(after))


def test_a_number_written_longer_than_it_needs_is_read() -> None:
    assert read_uvarint(b"\x80\x80\x00", 0) == (0, 3)


@pytest.mark.parametrize("wire", ["ffffffff10", "ffffffff7f", "8080808010"])
def test_a_varint_of_more_than_32_bits_is_refused(wire: str) -> None:
    with pytest.raises(DecodeError, match="32 bits"):
        read_uvarint(bytes.fromhex(wire), 0)


@pytest.mark.parametrize("wire", ["808080808001", "ff" * 9 + "01", "80" * 40])
def test_a_varint_of_more_than_five_bytes_is_refused(wire: str) -> None:
    with pytest.raises(DecodeError, match="5 bytes"):
        read_uvarint(bytes.fromhex(wire), 0)


def test_a_varint_that_the_bytes_cut_off_is_an_index_error_for_the_decoder_around() -> None:
    with pytest.raises(IndexError):
        read_uvarint(b"\x80\x80", 0)


def test_the_table_of_short_varints_holds_one_byte_each() -> None:
    assert [uvarint(number) for number in range(128)] == list(ONE_BYTE)
    assert {len(written) for written in ONE_BYTE} == {1}


def test_the_longest_string_has_32767_bytes() -> None:
    # A compact length is one more than the bytes it counts.
    assert string_length(MAX_STRING_BYTES + 1) == uvarint(MAX_STRING_BYTES + 1)

    with pytest.raises(EncodeError, match="32768 bytes exceeds the limit of 32767"):
        string_length(MAX_STRING_BYTES + 2)


def test_unknown_tags_are_skipped_by_their_sizes() -> None:
    section = b"\x02" + b"\x05\x01x" + b"\xc8\x01\x02yz" + b"rest"

    assert skip_tags(section, 1, 2) == len(section) - len(b"rest")


def test_a_count_of_tags_that_takes_two_bytes_is_read_from_its_start() -> None:
    section = uvarint(200) + b"\x07\x00" * 200

    # The caller has read the first byte as the count already.
    assert skip_tags(section, 1, section[0]) == len(section)


@pytest.mark.parametrize(
    ("section", "count", "complaint"),
    [
        (b"\x03\x00\x00", 3, "3 tagged fields do not fit into 2 bytes"),
        (b"\xff\xff\xff\xff\x0f\x00", 0xFF, "4294967295 tagged fields"),
        (b"\x01\x00\x05abcd", 1, "of 5 bytes runs past"),
    ],
)
def test_tags_that_are_not_there_are_refused(section: bytes, count: int, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        skip_tags(section, 1, count)


def test_refusals_name_the_place_the_value_and_the_limit() -> None:
    said = {
        str(primitives.bad_length("X.name", -1, 9)),
        str(primitives.bad_length("X.name", 50, 9)),
        str(primitives.bad_length("X.name", 50, -3)),
        str(primitives.left_over("X v1", 2)),
        str(primitives.cut_short("X v1", 7)),
        str(primitives.too_many("X.items", MAX_ELEMENTS + 1)),
        str(primitives.wrong_tag_size("X.tag", 3, 4)),
        str(primitives.lost_value("X.name", 4)),
        str(primitives.wrong_uuid("X.id", b"abc")),
    }

    assert said == {
        "X.name has length -1, and null is not legal there",
        "X.name has length 50, and 9 bytes are left",
        "X.name has length 50, and 0 bytes are left",
        "X v1: 2 bytes are left over after the last field",
        "X v1: the message ends after 7 bytes, inside a field",
        f"X.items brings {MAX_ELEMENTS + 1} elements, and one message may hold {MAX_ELEMENTS}",
        "tagged field X.tag declares 3 bytes and uses 4",
        "X.name holds a value, and version 4 cannot carry it",
        "X.id is b'abc', and a uuid is 16 bytes",
    }
