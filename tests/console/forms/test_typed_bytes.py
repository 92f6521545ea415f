"""What is typed into a form, as bytes: exact, or refused with the value and what to do."""

import random

import pytest

from console.forms.typed_bytes import NotTyped, read, typed


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("null", "", None),
        ("null", " \r\n", None),
        ("empty", "", b""),
        ("text", "ü\r\nb", "ü\nb".encode()),
        ("text", " spaces stay ", b" spaces stay "),
        (
            "json",
            '{"i": 9007199254740993,\r\n "x": 1.50}',
            b'{"i": 9007199254740993,\n "x": 1.50}',
        ),
        ("json", "1" + "0" * 5000, b"1" + b"0" * 5000),
        ("hex", "00 Ff\r\n1a", b"\x00\xff\x1a"),
        ("base64", "AP8a\r\nAA==", b"\x00\xff\x1a\x00"),
    ],
)
def test_bytes_are_what_was_typed(kind: str, text: str, wanted: bytes | None) -> None:
    assert read(kind, text) == wanted


def test_lines_end_as_they_are_chosen_to() -> None:
    assert read("text", "a\r\nb", has_crlf=True) == b"a\r\nb"


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("null", "x", "null is chosen, but 'x' is typed"),
        ("empty", "x" * 500, "empty is chosen"),
        ("text", "", "nothing is typed: choose empty for 0 bytes, or null"),
        ("json", '{"a": }', "expecting value in line 1, column 7"),
        ("json", "NaN", "NaN is not one of its numbers"),
        ("json", "[" * 100_000, "nested too deep"),
        ("hex", "0g", "'g' is not a hexadecimal digit"),
        ("hex", "123", "3 digits are half a byte too many"),
        ("base64", "ab", "it is not base64"),
        ("base64", "ü", "it is not base64"),
        ("xml", "x", "'xml' is not a form: choose one of text, json"),
        ("text", "a\ud800", "character 2 is half of a pair"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_next_step(kind: str, text: str, words: str) -> None:
    with pytest.raises(NotTyped) as refused:
        read(kind, text)

    assert words in str(refused.value)
    assert len(str(refused.value)) < 300


def test_whatever_a_record_holds_can_be_typed_again() -> None:
    draw = random.Random(3)
    drawn = [draw.randbytes(draw.randrange(200)) for _ in range(300)]
    texts = [b"a\nb", b"\na", b"a\r\nb", b"a\rb", b"\tx", b" ", b'{"a":1}', b"[1]\n", b"12", b'"x"']

    for data in (None, b"", *drawn, *texts):
        kind, text = typed(data)
        # A browser sends the ends of lines in its own way.
        assert read(kind, text.replace("\n", "\r\n")) == data


def test_a_form_begins_with_what_people_read_best() -> None:
    kinds = [typed(data)[0] for data in (b'{"a":1}', b"12", b"hello", b"\0\1", b"\xff" * 65)]

    assert kinds == ["json", "text", "text", "hex", "base64"]
