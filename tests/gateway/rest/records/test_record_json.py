"""How keys and values are written."""

import json

import pytest

from gateway.kafka.values import Record
from gateway.rest.records.question import Format
from gateway.rest.records.record_json import record_text


def shown(value: bytes) -> str:
    record = Record(topic="t", partition=0, offset=0, key=None, value=value)
    text = record_text(record, Format.JSON)
    assert text.isascii()
    assert "\n" not in text
    json.loads(text)
    return text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (b"12345678901234567890.1234567890", "12345678901234567890.1234567890"),
        (b'{ "price": 1.10,\n "price": 2 }', '{"price":1.10,"price":2}'),
        ('["schön 🎉"]'.encode(), r'["sch\u00f6n \ud83c\udf89"]'),
        (b"1" * 5_000, "1" * 5_000),
    ],
)
def test_json_stays_as_it_was_written_but_for_blanks(value: bytes, written: str) -> None:
    record = Record(topic="t", partition=0, offset=0, key=None, value=value)

    assert f'"value":{written},"headers"' in record_text(record, Format.JSON)


@pytest.mark.parametrize(
    "value", [b"NaN", b"Infinity", b'"\xff"', b"[1,]", b'"a\nb"', b"[" * 9_999]
)
def test_what_is_no_json_is_base64(value: bytes) -> None:
    assert '"error":"value is not JSON, it is given as base64"' in shown(value)
