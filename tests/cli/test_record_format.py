"""Records as text: kcat's tokens, its JSON, and what a terminal may see."""

import json

import pytest

from cli.record_format import Shape, harmless, renderer, unescape
from gateway.kafka.values import Record, TimestampKind

RECORD = Record(
    topic="orders",
    partition=3,
    offset=42,
    key=b"k",
    value=b"value",
    headers=(("a", b"1"), ("b", None)),
    timestamp_ms=1_700_000_000_000,
    timestamp_kind=TimestampKind.CREATE_TIME,
)
BARE = Record(topic="orders", partition=0, offset=0, key=None, value=None)


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("%s", b"value"),
        ("%S", b"5"),
        ("%R", b"\0\0\0\5"),
        ("%k", b"k"),
        ("%K", b"1"),
        ("%t", b"orders"),
        ("%p", b"3"),
        ("%o", b"42"),
        ("%T", b"1700000000000"),
        ("%h", b"a=1,b=NULL"),
        ("100%%", b"100%"),
        (r"%k:\t%s\n", b"k:\tvalue\n"),
        (r"\x00\xfe", b"\x00\xfe"),
        (r"\\n", b"\\n"),
        ("äöü %o", "äöü 42".encode()),
        ("", b""),
    ],
)
def test_a_token_stands_for_a_part_of_the_record(template: str, printed: bytes) -> None:
    assert renderer(Shape(template=template))(RECORD) == printed


def test_a_null_has_the_length_minus_one_and_no_text() -> None:
    assert renderer(Shape(template="%K %S [%k] [%s] %T"))(BARE) == b"-1 -1 [] [] -1"
    assert renderer(Shape(template="%R"))(BARE) == b"\xff\xff\xff\xff"


def test_a_null_is_named_where_that_is_asked_for() -> None:
    assert renderer(Shape(template="%k %s", shows_null=True))(BARE) == b"NULL NULL"
    assert renderer(Shape(shows_null=True, key_delimiter=b":"))(BARE) == b"NULL:NULL\n"


@pytest.mark.parametrize("template", ["%y", "%", "100%", "%s %"])
def test_a_token_that_means_nothing_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="%"):
        renderer(Shape(template=template))


def test_without_a_format_the_value_stands_on_a_line() -> None:
    assert renderer(Shape())(RECORD) == b"value\n"
    assert renderer(Shape(delimiter=b"\0"))(RECORD) == b"value\0"
    assert renderer(Shape(key_delimiter=b"\t"))(RECORD) == b"k\tvalue\n"


def test_json_has_kcats_fields_in_kcats_order() -> None:
    printed = renderer(Shape(is_json=True))(RECORD)

    assert printed == (
        b'{"topic":"orders","partition":3,"offset":42,"tstype":"create","ts":1700000000000,'
        b'"headers":["a","1","b",null],"key":"k","payload":"value"}\n'
    )


def test_json_says_null_for_null_and_leaves_out_what_is_not_there() -> None:
    printed = json.loads(renderer(Shape(is_json=True))(BARE))

    assert printed == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "key": None,
        "payload": None,
    }


def test_json_keeps_bytes_that_are_no_text_beside_their_picture() -> None:
    record = Record(topic="t", partition=0, offset=0, key=b"\xff", value=b"plain")

    printed = json.loads(renderer(Shape(is_json=True))(record))

    assert printed["key"] == "\N{REPLACEMENT CHARACTER}"
    assert printed["key_base64"] == "/w=="
    assert "payload_base64" not in printed


def test_text_may_say_any_byte() -> None:
    assert unescape(r"a\x41\t\r\n\\x") == b"aA\t\r\n\\x"
    assert unescape(r"\q \x4") == rb"\q \x4"


def test_a_terminal_gets_no_character_that_it_would_act_on() -> None:
    assert harmless(b"\x1b[2Jhello\tthere\n\x07") == b"\\x1b[2Jhello\tthere\n\\x07"
    assert harmless("schlüssel".encode()) == "schlüssel".encode()
