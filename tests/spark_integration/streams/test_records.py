"""Values are read as their format says, or are bad; rows are written as Spark writes them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_integration.streams.building import stream
from spark_integration.streams.fields import Kind
from spark_integration.streams.formats import bytes_format, json_format, text_format
from spark_integration.streams.records import BadRecord, decode, encode, encode_object

FIELDS = {"a": "text", "n": "long", "d": "double", "b": "boolean", "t": "time"}
FORMAT = json_format(FIELDS)
NOTHING = dict.fromkeys(FIELDS)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"{}", {}),
        (b' {"a":"x","other":[1,{"a":2}]} ', {"a": "x"}),
        (b'{"a":5,"a":"y","n":null,"n":1}', {"a": "y", "n": 1}),
        (b'{"a":null,"A":"x"}', {}),
        (b'{"n":-9223372036854775808,"d":5,"b":true}', {"n": -(2**63), "d": 5.0, "b": True}),
        (b'{"t":"1970-01-01T00:00:01Z"}', {"t": 1_000_000}),
    ],
)
def test_an_object_has_the_fields_that_are_named(value: bytes, found: dict[str, object]) -> None:
    assert decode(FORMAT, value) == {**NOTHING, **found}


# The same values are tried on Spark.
BAD = [
    b"",
    b"null",
    b"[]",
    b"5",
    b'"s"',
    b'{"a":"x"',
    b'{"a":"x"} junk',
    b'{"a":"x"}{"a":"y"}',
    b'\xef\xbb\xbf{"a":"x"}',
    b'{"a":"\xff"}',
    b'{"a":"\\ud800"}',
    b'{"a":5}',
    b'{"a":{"b":1}}',
    b'{"n":1.0}',
    b'{"n":"","n":1}',
    b'{"a":"\\ud800","a":"x"}',
    b'{"n":"1"}',
    b'{"n":9223372036854775808}',
    b'{"d":1e999}',
    b'{"d":"NaN"}',
    b'{"d":NaN}',
    b'{"d":01}',
    b'{"b":1}',
    b'{"b":"true"}',
    b'{"t":0}',
    b'{"t":"2026-02-30T00:00:00Z"}',
    b"{'a':'x'}",
    b'{"z":tru}',
    b'{"a":"a\x01b"}',
    b'{"d":1' + b"0" * 1001 + b"}",
]


@pytest.mark.parametrize("value", BAD, ids=lambda value: repr(value)[:40])
def test_value_that_is_not_such_an_object_is_bad(value: bytes) -> None:
    with pytest.raises(BadRecord):
        decode(FORMAT, value)


def test_texts_are_utf_8_and_bytes_are_anything() -> None:
    assert decode(text_format(), "ä".encode()) == {"value": "ä"}
    assert decode(text_format(), None) is None
    assert decode(bytes_format(), None) == {"value": None}
    assert decode(bytes_format(), b"\xff") == {"value": b"\xff"}
    with pytest.raises(BadRecord, match="byte 1 is not UTF-8"):
        decode(text_format(), b"a\xff")


@given(st.dictionaries(st.sampled_from("abc"), st.text(st.characters(exclude_categories=["Cs"]))))
def test_written_records_can_be_read_again(found: dict[str, str]) -> None:
    columns = [(name, Kind.TEXT) for name in found]

    assert json.loads(encode_object(columns, found)) == found


def test_texts_are_escaped_as_java_escapes_them() -> None:
    written = encode_object([("a", Kind.TEXT)], {"a": '\x1f\x7f"\\/\n\u2028😀'})

    assert written == '{"a":"\\u001F\x7f\\"\\\\/\\n\u2028😀"}'.encode()


def test_times_are_written_as_milliseconds() -> None:
    assert encode_object([("t", Kind.TIME)], {"t": -1}) == b'{"t":-1}'
    assert encode_object([("t", Kind.TIME)], {"t": None}) == b'{"t":null}'


def test_one_field_by_the_name_value_is_written_as_it_is() -> None:
    topology = stream("a", text_format()).to("b")

    output = encode(topology, {"value": "ä"}, key=b"k")

    assert (output.key, output.value) == (b"k", "ä".encode())
