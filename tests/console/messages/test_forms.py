"""How bytes are shown."""

import json
import random
import struct

import pytest

from console.messages.forms import MAX_CHECKED, MAX_SHOWN, Form, fields_of, show
from tests.scale import count


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (None, "null", ""),
        (b"", "empty", ""),
        (b'{"id": 9007199254740993}', "json", '{"id": 9007199254740993}'),
        (b' [1.10, 1e400, "\\u00e9"]\n', "json", ' [1.10, 1e400, "\\u00e9"]\n'),
        (b'{"a": NaN}', "text", '{"a": NaN}'),
        (b"{not json", "text", "{not json"),
        (b"12345678901234567890", "text", "12345678901234567890"),
        ("Zürich 💥".encode(), "text", "Zürich 💥"),
        (b"a\tb\r\nc\x1b[0m", "text", "a\tb\r\nc\x1b[0m"),
        (b"\xff\xfe", "hex", "fffe"),
        (b"a\x00b", "hex", "610062"),
        (b"\x82\xa1a\x01\xa1b\xc0", "msgpack", '{"a":1,"b":null}'),
        (b"[" * 100_000, "text", "[" * MAX_SHOWN),
        (b"[" + b"9" * 5_000 + b"]", "json", "[" + "9" * 5_000 + "]"),
    ],
)
def test_bytes_are_shown_as_what_they_are(data: bytes | None, kind: str, text: str) -> None:
    shown = show(data)

    assert (shown.kind, shown.text) == (kind, text)
    assert shown.size == len(data or b"")


def test_numbers_in_binary_are_told_beside_their_digits() -> None:
    assert show(struct.pack(">q", 2**53 + 1)).note == "no text; as int64 it is 9007199254740993"
    assert show(struct.pack(">i", -5)).note == "no text; as int32 it is -5"


@pytest.mark.parametrize(
    ("form", "packed", "kind", "text"),
    [
        (Form.INT8, struct.pack(">b", -1), "int", "-1"),
        (Form.INT16, struct.pack(">h", 300), "int", "300"),
        (Form.INT32, struct.pack(">i", -70_000), "int", "-70000"),
        (Form.INT64, struct.pack(">q", 2**63 - 1), "int", "9223372036854775807"),
        (Form.FLOAT32, struct.pack(">f", 0.5), "float", "0.5"),
        (Form.FLOAT64, struct.pack(">d", 0.1), "float", "0.1"),
        (Form.HEX, b"abc", "hex", "616263"),
        (Form.BASE64, b"abcd", "base64", "YWJjZA=="),
        (Form.TEXT, b"a\xffb\x00", "text", "a\ufffdb\x00"),
        (Form.JSON, b'"x"', "text", '"x"'),
    ],
)
def test_a_form_that_is_asked_for_is_used(form: Form, packed: bytes, kind: str, text: str) -> None:
    shown = show(packed, form)

    assert (shown.kind, shown.text) == (kind, text)


@pytest.mark.parametrize(
    ("form", "data", "note"),
    [
        (Form.JSON, b"{", "not json: Expecting property name"),
        (Form.JSON, b"\xff", "not json: 'utf-8' codec can't decode"),
        (Form.JSON, b"[" * 100_000, "not json: it is nested too deep"),
        (Form.INT32, b"12345", "not int32: it has 5 bytes, and int32 has 4"),
        (Form.MSGPACK, b"\xc1", "not msgpack: invalid opcode"),
        (Form.MSGPACK, b"\x01\x02", "not msgpack: trailing characters"),
    ],
)
def test_what_does_not_fit_is_shown_in_hex_with_the_reason(
    form: Form, data: bytes, note: str
) -> None:
    shown = show(data, form)

    assert shown.kind == "hex"
    assert shown.note.startswith(note)
    assert data.hex().startswith(shown.text)


def test_the_prefix_of_a_schema_is_named_and_the_rest_is_shown() -> None:
    prefix = b"\0" + (42).to_bytes(4)

    as_json, as_bytes = show(prefix + b'{"a":1}'), show(prefix + b"\x02\xff")

    assert (as_json.kind, as_json.text, as_json.schema_id) == ("json", '{"a":1}', 42)
    assert as_json.size == 12
    assert (as_bytes.kind, as_bytes.text, as_bytes.schema_id) == ("hex", "02ff", 42)
    assert "need that schema" in as_bytes.note
    assert show((7).to_bytes(8)).schema_id is None


def test_a_long_text_is_cut_between_two_characters() -> None:
    shown = show(("é" * MAX_SHOWN).encode())

    assert shown.is_cut
    assert shown.kind == "text"
    assert set(shown.text) == {"é"}
    assert shown.size == 2 * MAX_SHOWN


@pytest.mark.parametrize("form", Form)
def test_no_form_shows_more_than_a_list_has_room_for(form: Form) -> None:
    for data in (b'{"a": "' + b"x" * 10**6 + b'"}', b"\xff" * 10**6, b"x" * 10**6):
        shown = show(data, form)

        assert len(shown.text) <= MAX_SHOWN
        assert shown.is_cut
        assert shown.size == len(data)


def test_a_document_too_long_to_be_checked_says_so() -> None:
    shown = show(b"[" + b" " * MAX_CHECKED + b"]")

    assert shown.kind == "json"
    assert "not checked" in shown.note


def test_any_bytes_are_shown_in_any_form() -> None:
    rng = random.Random(11)
    begins = [b"", b"\0\0\0\0\7", b"{", b"\xdf", b"\xdd\xff\xff\xff\xff", b"\x9f", b"\xc7\xff"]
    for _ in range(count(2_000, 6_000, long=200_000)):
        data = rng.choice(begins) + rng.randbytes(rng.randint(0, 40))
        for form in (Form.AUTO, Form.MSGPACK, rng.choice(list(Form))):
            json.dumps(fields_of(show(data, form))).encode()
