"""Streams of JSON objects, cut into objects."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rest.produce.splitter import Malformed, Splitter, TooLarge

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=4)
BLANKS = st.text(" \t\r\n", max_size=4)


def fed(splitter: Splitter, pieces: list[bytes]) -> list[bytes]:
    return [found for piece in pieces for found in splitter.feed(piece)]


def cut(text: bytes, places: list[int]) -> list[bytes]:
    at = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[begin:end] for begin, end in pairwise(at)]


@given(
    objects=st.lists(st.tuples(OBJECTS, BLANKS, st.booleans()), max_size=5),
    places=st.lists(st.integers(0, 10_000), max_size=12),
)
def test_objects_are_the_same_however_they_are_cut(
    objects: list[tuple[Any, str, bool]], places: list[int]
) -> None:
    text = b"".join(
        json.dumps(value, ensure_ascii=is_ascii).encode() + blanks.encode()
        for value, blanks, is_ascii in objects
    )
    splitter = Splitter()

    found = fed(splitter, cut(text, places))
    splitter.finish()

    assert [json.loads(each) for each in found] == [value for value, _, _ in objects]


def test_every_single_byte_may_come_alone() -> None:
    text = rb'{"a":"}\"{\\"} {"b":[{"c":"\\\""}]}' + b'\r\n{"\\u00e9":"\xc3\xa9"}'

    found = fed(Splitter(), [bytes([byte]) for byte in text])

    assert b"".join(found) == text.replace(b"} {", b"}{").replace(b"\r\n", b"")


@pytest.mark.parametrize(
    "text", [b"1", b"[]", b"null", b'"a"', b"{},{}", b"{}]", b"\xef\xbb\xbf{}", b"\x00", b"}"]
)
def test_what_is_no_object_is_refused_after_the_objects_before_it(text: bytes) -> None:
    splitter = Splitter()
    found = splitter.feed(b'{"a":1}' + text)

    assert next(found) == b'{"a":1}'
    with pytest.raises(Malformed):
        list(found)


@pytest.mark.parametrize("text", [b'{"a":[}', b'{"a":{]}', b'{"a":]'])
def test_a_wrong_bracket_is_told_at_once(text: bytes) -> None:
    with pytest.raises(Malformed, match="bracket"):
        fed(Splitter(), [text])


@pytest.mark.parametrize("text", [b"{", b'{"a', b'{"a":"\\', b'{"a":[{}'])
def test_a_stream_that_ends_within_an_object_is_told(text: bytes) -> None:
    splitter = Splitter()

    assert fed(splitter, [b"{}", text]) == [b"{}"]
    with pytest.raises(Malformed, match=f"after {len(text)} bytes"):
        splitter.finish()


def test_depth_has_a_limit() -> None:
    deepest = b'{"a":' + b"[" * 3 + b"]" * 3 + b"}"

    assert fed(Splitter(max_depth=4), [deepest]) == [deepest]
    with pytest.raises(Malformed, match="deeper than 3"):
        fed(Splitter(max_depth=3), [deepest])


@pytest.mark.parametrize("filler", [b" ", b"a", b'"a",', b"\\"])
def test_an_object_has_a_limit_wherever_its_bytes_are(filler: bytes) -> None:
    begin = b'{"a":"' if filler in {b"a", b"\\"} else b"{"
    splitter = Splitter(max_bytes=1_000)

    with pytest.raises(TooLarge):
        fed(splitter, [begin, *[filler] * 1_001])
    assert splitter.kept <= 1_000


def test_blanks_between_objects_are_endless_and_take_no_room() -> None:
    splitter = Splitter(max_bytes=100)

    assert fed(splitter, [b" \r\n\t" * 1_000] * 100) == []
    assert splitter.kept == 0
    splitter.finish()
