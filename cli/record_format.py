"""Formats a record as text: by kcat's format tokens, in its `-J` form, or as value and delimiter.

Pure: records in, bytes out. Keys and values stay bytes; only JSON needs text, and marks values
that are not UTF-8.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gateway.kafka.values import Record

ESCAPE: Final = re.compile(r"\\(?:x(?P<hex>[0-9a-fA-F]{2})|(?P<letter>[nrt\\]))")
ESCAPED: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
TOKEN: Final = re.compile(r"%(?P<letter>.)", re.DOTALL)
# The length of null, and its text if the caller shows nulls.
NULL_LENGTH: Final = -1
NULL_TEXT: Final = b"NULL"
# Control characters that affect a terminal; a new line and a tab do no harm.
HARMFUL: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")

Render = Callable[[Record], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What to print of each record; a format takes precedence."""

    template: str | None = None
    is_json: bool = False
    key_delimiter: bytes | None = None
    delimiter: bytes = b"\n"
    shows_null: bool = False


def unescape(text: str) -> bytes:
    r"""Decode \n, \r, \t, \\ and \xNN in a text to bytes."""
    parts, end = [], 0
    for found in ESCAPE.finditer(text):
        parts.append(text[end : found.start()].encode())
        parts.append(bytes.fromhex(found["hex"]) if found["hex"] else ESCAPED[found["letter"]])
        end = found.end()
    return b"".join([*parts, text[end:].encode()])


def renderer(shape: Shape) -> Render:
    """Return the function that prints one record; ValueError for an unknown token."""
    if shape.is_json:
        return as_json
    if shape.template is not None:
        return compiled(shape.template, shows_null=shape.shows_null)
    null = NULL_TEXT if shape.shows_null else b""

    def line(record: Record) -> bytes:
        value = null if record.value is None else record.value
        if shape.key_delimiter is None:
            return value + shape.delimiter
        key = null if record.key is None else record.key
        return key + shape.key_delimiter + value + shape.delimiter

    return line


def compiled(template: str, *, shows_null: bool) -> Render:
    """Compile a template to a function of literal bytes and tokens in order."""
    null = NULL_TEXT if shows_null else b""
    tokens: dict[str, Render] = {
        "s": lambda record: null if record.value is None else record.value,
        "S": lambda record: b"%d" % length(record.value),
        "R": lambda record: length(record.value).to_bytes(4, signed=True),
        "k": lambda record: null if record.key is None else record.key,
        "K": lambda record: b"%d" % length(record.key),
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % (-1 if record.timestamp_ms is None else record.timestamp_ms),
        "h": headers,
        "%": lambda _: b"%",
    }
    parts: list[Render] = []
    end = 0
    for found in TOKEN.finditer(template):
        token = tokens.get(found["letter"])
        if token is None:
            known = " ".join(f"%{letter}" for letter in tokens)
            raise ValueError(f"%{found['letter']} is not a format token; the tokens are {known}")
        parts += [literal(template[end : found.start()]), token]
        end = found.end()
    if template[end:].endswith("%"):
        raise ValueError("the format ends in a single %; write %% for a percent sign")
    parts.append(literal(template[end:]))
    return lambda record: b"".join([part(record) for part in parts])


def literal(text: str) -> Render:
    content = unescape(text)
    return lambda _: content


def length(content: bytes | None) -> int:
    return NULL_LENGTH if content is None else len(content)


def headers(record: Record) -> bytes:
    """Return `name=value` pairs with commas between them, as kcat prints them."""
    return b",".join(
        name.encode() + b"=" + (NULL_TEXT if value is None else value)
        for name, value in record.headers
    )


def as_json(record: Record) -> bytes:
    """Return kcat's JSON object of a record, on a line of its own.

    Bytes that are not UTF-8 are replaced in the text, and also given in base64.
    """
    found: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
    }
    if record.timestamp_kind is not None:
        found["tstype"] = record.timestamp_kind.value
        found["ts"] = record.timestamp_ms
    if record.headers:
        found["headers"] = [
            item for name, value in record.headers for item in (name, text_of(value))
        ]
    for name, content in (("key", record.key), ("payload", record.value)):
        found[name] = text_of(content)
        if content is not None and not is_text(content):
            found[f"{name}_base64"] = base64.b64encode(content).decode()
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def text_of(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "replace")


def is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def harmless(content: bytes) -> bytes:
    """Escape control characters for a terminal, so that they cannot move the cursor."""
    return HARMFUL.sub(lambda found: b"\\x%02x" % found[0][0], content)
