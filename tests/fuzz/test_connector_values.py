"""Bytes of strangers in converters: a value, or a DataError, and never long."""

import json
from random import Random
from typing import Final

import pytest

from connectors.runtime import converters
from connectors.sdk.errors import DataError
from tests.oracles import connect_cases
from tests.scale import count

CASES: Final = count(2000, 6000, long=300_000)
SEED: Final = 4
# What JSON, schemas and headers are made of.
PIECES: Final = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b'"',
        b"\\",
        b"null",
        b"true",
        b"-",
        b"1e999999999",
        b"9" * 30,
    ),
    *(
        b'"type"',
        b'"struct"',
        b'"fields"',
        b'"default"',
        b'"schema"',
        b'"payload"',
        b"\xff",
        b"\xef\xbb\xbf",
    ),
    *(b'"scale"', b'"\\ud800"', b"NaN", b"1.5", b'"int8"', b'"items"', b'"2024-02-29"', b"\x00"),
)


@pytest.mark.parametrize("has_schemas", ["true", "false"])
def test_changed_messages_are_read_or_refused(has_schemas: str) -> None:
    random = Random(f"{SEED} {has_schemas}")
    converter = converters.make("JsonConverter", {"schemas.enable": has_schemas}, is_key=False)
    for _ in range(CASES):
        payload = bytearray(json.dumps(connect_cases.message(random, is_struct=True)).encode())
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(payload))
            payload[at : at + random.randrange(8)] = random.choice(PIECES)
        try:
            schema, value = converter.to_value("t", bytes(payload))
            converter.from_value("t", schema, value)
        except DataError:
            pass


def test_any_bytes_are_a_header() -> None:
    random = Random(SEED)
    converter = converters.make_for_headers("SimpleHeaderConverter", {})
    for _ in range(CASES):
        payload = b"".join(random.choice(PIECES) for _ in range(random.randrange(12)))
        schema, value = converter.to_value("t", payload)
        converter.from_value("t", schema, value)
