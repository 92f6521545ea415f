"""MessagePack as text."""

import json
import struct

import pytest

from console.messages.msgpack import MAX_DEPTH, MAX_VALUES, NotMsgpack, text_of


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x7f", "127"),
        (b"\xe0", "-32"),
        (b"\xcc\xff", "255"),
        (b"\xcd\xff\xff", "65535"),
        (b"\xce\xff\xff\xff\xff", "4294967295"),
        (b"\xcf" + b"\xff" * 8, "18446744073709551615"),
        (b"\xd0\x80", "-128"),
        (b"\xd1\x80\x00", "-32768"),
        (b"\xd2\x80\x00\x00\x00", "-2147483648"),
        (b"\xd3\x80" + b"\x00" * 7, "-9223372036854775808"),
        (b"\xca" + struct.pack(">f", 1.5), "1.5"),
        (b"\xcb" + struct.pack(">d", 0.1), "0.1"),
        (b"\xc0", "null"),
        (b"\xc2", "false"),
        (b"\xc3", "true"),
        (b"\xa3abc", '"abc"'),
        (b"\xd9\x02\xc3\xa9", '"é"'),
        (b"\xda\x00\x01a", '"a"'),
        (b"\xdb\x00\x00\x00\x01a", '"a"'),
        (b"\xc4\x01\x00", '{"$bytes":"AA=="}'),
        (b"\xc5\x00\x01\x00", '{"$bytes":"AA=="}'),
        (b"\xc6\x00\x00\x00\x01\x00", '{"$bytes":"AA=="}'),
        (b"\xd6\xff\x00\x00\x00\x01", '{"$ext":-1,"bytes":"AAAAAQ=="}'),
        (b"\xc7\x01\x05\x01", '{"$ext":5,"bytes":"AQ=="}'),
        (b"\x93\x01\x02\x90", "[1,2,[]]"),
        (b"\xdc\x00\x01\x01", "[1]"),
        (b"\xdd\x00\x00\x00\x01\x01", "[1]"),
        (b"\x81\xa1a\x81\x01\xc0", '{"a":{"1":null}}'),
        (b"\xde\x00\x01\xa1a\x01", '{"a":1}'),
        (b"\xdf\x00\x00\x00\x01\xa1a\x01", '{"a":1}'),
    ],
)
def test_every_kind_of_value_has_a_text(data: bytes, text: str) -> None:
    assert text_of(data) == text
    json.loads(text)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xc1", "invalid opcode"),
        (b"\xa5abc", "truncated"),
        (b"\xa1\xff", "utf-8"),
        (b"\xd4\xff\x01", "timestamp"),
        (b"\xd7\xff\x1d\x6f\x34\x54\x65\x53\xf1\x00", "finer than a microsecond"),
        (b"\x81\x91\x01\x01", "a key of a map"),
        (b"\xdd\xff\xff\xff\xff\x01", "truncated"),
        (b"\x8f\x01", "truncated"),
        (b"\xcf\x01", "truncated"),
        (b"\x01\x01", "trailing characters"),
        (b"\x91" * 100_000, "recursion"),
        (b"\x91" * (MAX_DEPTH + 1) + b"\x01", "32 levels"),
        (b"\xdd" + (MAX_VALUES + 1).to_bytes(4) + b"\x01" * (MAX_VALUES + 1), "20000 values"),
    ],
)
def test_malformed_data_is_refused_with_the_reason(data: bytes, message: str) -> None:
    with pytest.raises(NotMsgpack, match=message):
        text_of(data)
