"""Converts MessagePack to the text of a JSON document, with exact numbers.

Pure and bounded: bytes are untrusted input. msgspec compares every length with the bytes left, and
the document is measured before it is written. A value that JSON cannot express becomes an object
with one field that starts with `$`.
"""

import json
from base64 import b64encode
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

MAX_DEPTH: Final = 32
# Values of one document, which take some milliseconds.
MAX_VALUES: Final = 20_000
# Bytes of the length that precedes the data of an extension, after the byte of its type.
EXTENSION_HEADS: Final = {0xC7: 3, 0xD6: 2, 0xD7: 2}

# What msgspec says before each reason.
PREAMBLE: Final = "MessagePack data is malformed: "


class NotMsgpack(ValueError):
    """Invalid input; the text says what was wrong."""


def text_of(data: bytes) -> str:
    """Return the single value that fills the bytes."""
    try:
        value = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotMsgpack(str(error).removeprefix(PREAMBLE)) from None
    _require_small(value)

    def expressed(inner: object) -> dict[str, Any]:
        if isinstance(inner, datetime) and msgspec.msgpack.encode(inner) not in data:
            raise NotMsgpack("a timestamp finer than a microsecond, or longer than it has to be")
        return _expressed(inner)

    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=expressed)
    except TypeError:
        raise NotMsgpack("a key of a map is a list, a map or bytes") from None


def is_container(data: bytes) -> bool:
    """Tell whether the first byte is that of an array or a map."""
    first = data[0]
    return 0x80 <= first <= 0x9F or first in {0xDC, 0xDD, 0xDE, 0xDF}


def _require_small(value: object) -> None:
    values, level = 0, [value]
    for _ in range(MAX_DEPTH):
        values += len(level)
        if not level or values > MAX_VALUES:
            break
        level = [inner for one in level for inner in _inside(one)]
    if level:
        raise NotMsgpack(f"more than {MAX_DEPTH} levels or {MAX_VALUES} values")


def _inside(value: object) -> Iterable[object]:
    """Return the values directly inside a list or a map, keys included."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list | tuple) else ()


def _expressed(value: object) -> dict[str, Any]:
    """Return a value that JSON cannot express as an object that it can."""
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode()}
    if isinstance(value, datetime):
        encoded = msgspec.msgpack.encode(value)
        return _extension(-1, encoded[EXTENSION_HEADS[encoded[0]] :])
    assert isinstance(value, msgspec.msgpack.Ext), f"msgspec decodes no {type(value).__name__}"
    return _extension(value.code, bytes(value.data))


def _extension(kind: int, data: bytes) -> dict[str, Any]:
    return {"$ext": kind, "bytes": b64encode(data).decode()}
